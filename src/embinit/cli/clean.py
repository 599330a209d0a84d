"""`embinit clean`: remove files that are no longer needed, after asking."""

from __future__ import annotations

from typing import Annotated

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared
from embinit.errors import EmbinitError

NEEDS_ARGUMENTS = True


def command(
    files: planning.Files,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    others: Annotated[
        bool,
        typer.Option("--others", help="Also remove the finished runs of other experiments, which no FILE plans."),
    ] = False,
    runs: planning.MadeRuns = planning.RUNS,
    work: planning.Work = None,
    data: planning.Data = None,
    vectors: planning.Vectors = None,
    json: shared.Json = False,
) -> None:
    """Remove stale runs, records of failures, and checkpoints that no process uses.

    A run is stale if a file planned it before and has since changed. Runs of other experiments in the
    same folder stay, unless `--others` is given. Everything is listed before it is removed.

    embinit clean my.toml --runs runs
    """
    from embinit.cli.console import console, print_json
    from embinit.experiments.clean import removable, remove
    from embinit.experiments.runs.registry import experiments_of_runs
    from embinit.format import plural

    plans = planning.looked_up_plans(files, planning.places_of(runs, work, data, vectors))
    unneeded = removable(plans, runs, others)
    if json and not yes and any(unneeded.values()):
        raise EmbinitError("--json cannot ask before it removes files; add --yes")
    names = experiments_of_runs(runs)
    count = sum(len(paths) for paths in unneeded.values())
    screen = console()
    if not json:
        for kind, paths in unneeded.items():
            for path in paths:
                owner = f" ({', '.join(names[path.name])})" if path.name in names else ""
                screen.print(f"{kind}: {path}{owner}", markup=False, soft_wrap=True)
        if not count:
            screen.print("nothing to remove")
    if count and not yes and not typer.confirm(f"Remove {plural(count, 'entry', 'entries')}?"):
        raise typer.Exit(1)
    for paths in unneeded.values():
        for path in paths:
            remove(path)
    if json:
        print_json({kind: [path.name for path in paths] for kind, paths in unneeded.items()})
    elif count:
        screen.print(f"removed {count}")
