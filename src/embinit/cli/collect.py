"""`embinit collect`: finished runs from elsewhere into the folder of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="FROM",
            help="Folders with finished runs (what `embinit execute --out` wrote), .tar.gz archives of them, or files "
            "that `embinit report --format results` wrote.",
            show_default=False,
        ),
    ],
    runs: planning.Runs = planning.RUNS,
    json: shared.Json = False,
) -> None:
    """Take finished runs in that were made elsewhere; each is checked to be what its name says.

    What is there already stays as it is. Nothing else of an archive is written than runs. A file of results gives scores,
    histories in four digits and no sentences: enough to report on its runs, which are then not made again.

    embinit collect plan/runs other.tar.gz --runs runs

    embinit collect results/*.results.json
    """
    from embinit.cli.console import console, print_json, working
    from embinit.experiments.runs.collect import collect, take
    from embinit.format import plural
    from embinit.reports.results_reader import read_compact

    small = [source for source in sources if source.suffix == ".json"]
    found = []
    if small:
        with working("reading results"):
            files = [read_compact(source) for source in small]
            for message in (message for file in files for message in file.damaged):
                console(err=True).print(f"left out: {message}", markup=False, soft_wrap=True)
            found.append(take((result for file in files for result in file.results.values()), runs))
    for source in sources:
        if source not in small:
            with working(f"collecting {source}"):
                found.append(collect(source, runs))
    taken = [key for one in found for key in one.taken]
    already, failed = sum(one.already for one in found), sum(one.failed for one in found)
    if json:
        print_json({"taken": taken, "already": already, "failed": failed})
        return
    text = f"{plural(len(taken), 'run')} taken in, {already:,} were there"
    console().print(f"{text}{f', {failed:,} had failed' if failed else ''}: {runs}", markup=False, soft_wrap=True)
