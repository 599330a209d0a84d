"""What of a folder of runs nobody needs any more."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.execution.locks import holder
from embinit.experiments.experiment import Experiment
from embinit.experiments.status import stale


def removable(experiments: Sequence[Experiment], runs: Path) -> dict[str, list[Path]]:
    """Return what may go: runs that no experiment names, records of failures, checkpoints and halves of killed writes."""
    idle = [path for path in sorted(runs.glob(".checkpoints/*")) if path.is_dir() and holder(path / "lock") is None]
    busy = any(holder(path / "lock") is not None for path in runs.glob(".checkpoints/*"))
    return {
        "stale": stale(experiments, runs),
        "failed": sorted(runs.glob("*.failed.json")),
        "checkpoint": idle,
        # Somebody at work may be writing one just now.
        "unfinished": [] if busy else sorted(runs.glob(".*.part")),
    }


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise EmbinitError(f"cannot remove {path}: {error.strerror or error}") from None
