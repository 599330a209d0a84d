"""`embinit collect`: finished runs from elsewhere into the folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared
from embinit.cli import planning

NEEDS_ARGUMENTS = True


def command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="FROM",
            help="Folders with finished runs (what `embinit execute --out` wrote), or .tar.gz archives of them.",
            show_default=False,
        ),
    ],
    runs: planning.Runs = planning.RUNS,
    json: shared.Json = False,
) -> None:
    """Take finished runs in that were made elsewhere; each is checked to be what its name says.

    What is there already stays as it is. Nothing else of an archive is written than runs.

    embinit collect plan/runs other.tar.gz --runs runs
    """
    from embinit.cli.console import console, print_json, working
    from embinit.experiments.collecting import collect

    taken: list[str] = []
    already = failed = 0
    for source in sources:
        with working(f"collecting {source}"):
            found = collect(source, runs)
        taken += found.taken
        already += found.already
        failed += found.failed
    if json:
        print_json({"taken": taken, "already": already, "failed": failed})
        return
    text = f"{len(taken):,} runs taken in, {already:,} were there"
    console().print(f"{text}{f', {failed:,} had failed' if failed else ''}: {runs}", markup=False, soft_wrap=True)
