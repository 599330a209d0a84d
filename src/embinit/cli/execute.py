"""`embinit execute`: planned jobs into finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import inputs as planning
from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.experiments.execution.observer import ExecutionSummary, Watch

NEEDS_ARGUMENTS = True


def command(
    jobs: Annotated[
        Path,
        typer.Argument(
            metavar="JOBS", help="jobs.json of a folder that `embinit run --plan` wrote.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Where finished runs go, a folder each.", show_default=False),
    ],
    device: planning.Device = "auto",
    members: planning.Members = None,
    workers: planning.Workers = None,
    keep_weights: planning.KeepWeights = False,
    json: shared.Json = False,
) -> None:
    """Make the runs of a planned folder; what is there already is skipped, what was stopped goes on.

    Needs torch, numpy, safetensors and sacrebleu; `python -m embinit.experiments.execute JOBS --out DIR` does the same
    where typer and rich are not installed.

    embinit execute plan/jobs.json --out plan/runs
    """
    summary = executed(jobs, out, device, members, workers, keep_weights=keep_weights)
    report(summary, out, json, f"embinit execute {jobs} --out {out}")


def executed(
    jobs: Path,
    out: Path,
    device: str,
    members: int | None,
    workers: int | None,
    also: Watch | None = None,
    keep_weights: bool = False,
) -> ExecutionSummary:
    """Execute the jobs with a progress display; Ctrl-C stops after the step. `also` is a further observer."""
    from embinit.cli.progress import Progress
    from embinit.experiments.execution.engine import execute
    from embinit.experiments.execution.interruption import Interruption
    from embinit.experiments.execution.observer import Watches

    with Progress() as progress, Interruption(progress.said) as stopping:
        watch = progress if also is None else Watches([progress, also])
        return execute(
            jobs, out, device=device, members=members, workers=workers, watch=watch, stopping=stopping,
            keep_weights=keep_weights,
        )  # fmt: skip


def report(summary: ExecutionSummary, out: Path, json: bool, again: str) -> None:
    """Print what became of the jobs, and leave with the code that says so: 0, 1 for failures, 130 for stopped."""
    from embinit.cli.console import console, print_json
    from embinit.format import plural

    if json:
        print_json(
            {
                "written": [path.name for path in summary.written],
                "already": summary.already,
                "failed": summary.failed,
                "elsewhere": summary.elsewhere,
                "stopped": summary.stopped,
            }
        )
    else:
        screen = console()
        parts = [f"{plural(len(summary.written), 'run')} done now", f"{summary.already:,} were there"]
        parts += [f"{len(summary.elsewhere):,} left to another process"] if summary.elsewhere else []
        parts += [f"{len(summary.failed):,} failed"] if summary.failed else []
        screen.print(f"{', '.join(parts)}: {out}", markup=False, soft_wrap=True)
        for reason in dict.fromkeys(summary.failed.values()):
            count = sum(one == reason for one in summary.failed.values())
            screen.print(f"failed, {plural(count, 'run')}: {reason}", markup=False, soft_wrap=True)
        if summary.stopped:
            screen.print(f"stopped; to go on: {again}", markup=False, soft_wrap=True)
    if summary.stopped:
        raise typer.Exit(130)
    if summary.failed:
        raise typer.Exit(1)
