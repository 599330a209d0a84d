"""`embinit collect`: add finished runs from elsewhere to the folder of runs."""

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
            help="Folders with finished runs (from `embinit execute --out`), .tar.gz archives of them, or results files "
            "(from `embinit report --format results`).",
            show_default=False,
        ),
    ],
    runs: planning.Runs = planning.RUNS,
    json: shared.Json = False,
) -> None:
    """Add finished runs from other machines to the folder of runs. The content of each run is checked against its name.

    Runs that exist already stay unchanged. Only runs are unpacked from an archive. A results file has the scores and the
    training histories (rounded to four digits), but no sentences. That is enough to report on its runs, and they are not
    trained again.

    embinit collect plan/runs other.tar.gz --runs runs

    embinit collect demo.results.json
    """
    from embinit.cli.console import console, print_json, working
    from embinit.experiments.runs.collect import collect, take
    from embinit.format import plural
    from embinit.reports.results_reader import read_compact

    small = [source for source in sources if source.suffix == ".json"]
    collected = []
    if small:
        with working("reading results"):
            files = [read_compact(source) for source in small]
            for message in (message for file in files for message in file.damaged):
                console(err=True).print(f"left out: {message}", markup=False, soft_wrap=True)
            collected.append(take((result for file in files for result in file.results.values()), runs))
    for source in sources:
        if source not in small:
            with working(f"collecting {source}"):
                collected.append(collect(source, runs))
    taken = [key for source in collected for key in source.taken]
    already, failed = sum(source.already for source in collected), sum(source.failed for source in collected)
    if json:
        print_json({"taken": taken, "already": already, "failed": failed})
        return
    text = f"{plural(len(taken), 'run')} added, {already:,} existed already"
    console().print(f"{text}{f', {failed:,} had failed' if failed else ''}: {runs}", markup=False, soft_wrap=True)
