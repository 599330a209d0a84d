"""`embinit clean`: what nobody needs any more, after asking."""

from __future__ import annotations

from typing import Annotated

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    files: planning.Files,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    runs: planning.MadeRuns = planning.RUNS,
    work: planning.Work = None,
    data: planning.Data = None,
    vectors: planning.Vectors = None,
    json: shared.Json = False,
) -> None:
    """Remove stale runs, records of failures, and checkpoints that nobody is at work on.

    Stale are finished runs that none of the files names: give all files whose runs lie in the folder. What is to go is
    listed first.

    embinit clean experiments/demo.toml --runs runs
    """
    from embinit.cli.console import console, print_json
    from embinit.experiments.clean import removable, remove

    experiments = planning.experiments_of(files, runs, planning.places_of(runs, work, data, vectors))
    found = removable(experiments, runs)
    count = sum(len(paths) for paths in found.values())
    screen = console()
    if not json:
        for what, paths in found.items():
            for path in paths:
                screen.print(f"{what}: {path}", markup=False, soft_wrap=True)
        if not count:
            screen.print("nothing to remove")
    if count and not yes and not typer.confirm(f"Remove these {count}?", err=json):
        raise typer.Exit(1)
    for paths in found.values():
        for path in paths:
            remove(path)
    if json:
        print_json({what: [path.name for path in paths] for what, paths in found.items()})
    elif count:
        screen.print(f"removed {count}")
