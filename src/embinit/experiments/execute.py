"""Train the jobs of a planned folder, on machines without typer and rich."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.execution.engine import execute
from embinit.experiments.execution.interruption import Interruption
from embinit.experiments.execution.observer import Watch, speed_text
from embinit.experiments.jobs import Group
from embinit.format import printable


class _LinePrinter(Watch):
    """Prints a line for each epoch."""

    def started(self, group: Group) -> None:
        """Print that the training of a group begins."""
        self.message(f"{group.name}: {len(group.jobs)} members begin")

    def moment(self, group: Group, moment: Any) -> None:
        """Print the progress of a group."""
        if moment.records is not None:
            speed = f"epoch {moment.epoch} of {moment.epochs}, {speed_text(group, moment)}"
            self.message(f"{group.name}: {len(group.jobs)} members, {speed}")

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Print that a group is done."""
        self.message(f"{group.name}: {len(folders)} runs done")

    def failed(self, group: Group, reason: str) -> None:
        """Print why a group failed."""
        self.message(f"{group.name}: failed: {reason}")

    def message(self, text: str) -> None:
        """Print any other message."""
        print(printable(text), file=sys.stderr, flush=True)


def main(words: list[str] | None = None) -> int:
    """Return the exit code: 0, 1 if runs failed, 2 for a wrong input, 130 if it was stopped."""
    parser = argparse.ArgumentParser(prog="python -m embinit.experiments.execute", description=__doc__)
    parser.add_argument("jobs", type=Path, help="jobs.json of a planned folder")
    parser.add_argument("--out", "-o", type=Path, required=True, help="folder of finished runs")
    parser.add_argument("--device", default="auto", help="auto (default), cpu, cuda, cuda:1 ...")
    parser.add_argument("--members", type=int, default=None, help="largest number of runs that train side by side")
    parser.add_argument(
        "--workers", type=int, default=None, help="number of processes; by default one for each core, or two on a GPU"
    )
    parser.add_argument("--every", type=float, default=60.0, help="seconds between checkpoints")
    parser.add_argument("--keep-weights", action="store_true", help="keep the weights of each run's best epoch")
    given = parser.parse_args(words)
    watch = _LinePrinter()
    try:
        with Interruption(watch.message) as stopping:
            summary = execute(
                given.jobs,
                given.out,
                device=given.device,
                members=given.members,
                workers=given.workers,
                every=given.every,
                watch=watch,
                stopping=stopping,
                keep_weights=given.keep_weights,
            )
    except EmbinitError as error:
        print(f"embinit: {printable(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # the second one
        print("stopped at once; run the same command again to continue from the last checkpoints", file=sys.stderr)
        return 130
    print(f"{len(summary.written)} runs finished, {summary.already} finished before, {len(summary.failed)} failed")
    return 130 if summary.stopped else 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
