"""`embinit execute`: train the jobs of a plan."""

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
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The folder of finished runs; each run gets a folder in it.",
            show_default=False,
        ),
    ],
    device: planning.Device = "auto",
    members: planning.Members = None,
    workers: planning.Workers = None,
    keep_weights: planning.KeepWeights = False,
    json: shared.Json = False,
) -> None:
    """Train the runs of a planned folder. Finished runs are skipped, and stopped ones continue.

    This command needs torch, numpy, safetensors and sacrebleu. On a machine without typer and rich, run `python -m
    embinit.experiments.execute JOBS --out DIR` instead.

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
    observer: Watch | None = None,
    keep_weights: bool = False,
) -> ExecutionSummary:
    """Execute the jobs with a progress display and perhaps another observer; Ctrl-C stops after the step."""
    from embinit.cli.progress import Progress
    from embinit.experiments.execution.engine import execute
    from embinit.experiments.execution.interruption import Interruption
    from embinit.experiments.execution.observer import Watches

    with Progress() as progress, Interruption(progress.message) as stopping:
        watch = progress if observer is None else Watches([progress, observer])
        return execute(
            jobs, out, device=device, members=members, workers=workers, watch=watch, stopping=stopping,
            keep_weights=keep_weights,
        )  # fmt: skip


def report(summary: ExecutionSummary, out: Path, json: bool, command: str) -> None:
    """Print the outcome of the jobs and exit: with code 1 if runs failed, and with 130 if training was stopped."""
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
        parts = [f"{plural(len(summary.written), 'run')} finished", f"{summary.already:,} finished before"]
        parts += [f"{len(summary.elsewhere):,} left to another process"] if summary.elsewhere else []
        parts += [f"{len(summary.failed):,} failed"] if summary.failed else []
        screen.print(f"{', '.join(parts)}: {out}", markup=False, soft_wrap=True)
        for reason in dict.fromkeys(summary.failed.values()):
            count = list(summary.failed.values()).count(reason)
            screen.print(f"failed, {plural(count, 'run')}: {reason}", markup=False, soft_wrap=True)
        if summary.stopped:
            screen.print(f"stopped; to continue: {command}", markup=False, soft_wrap=True)
    if summary.stopped:
        raise typer.Exit(130)
    if summary.failed:
        raise typer.Exit(1)
