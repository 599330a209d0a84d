"""Find and remove the files in a folder of runs that are no longer needed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.execution.locks import holder
from embinit.experiments.experiment import Experiment
from embinit.experiments.runs.registry import unplanned


def removable(plans: Mapping[Path, Experiment], runs: Path, others: bool = False) -> dict[str, list[Path]]:
    """Return the files and folders that can be removed, by their kind.

    Parameters
    ----------
    plans
        The experiments, by their files.
    runs
        The folder of runs.
    others
        Whether runs that belong to other experiments, or to none that is known, can be removed too.
    """
    idle = [path for path in sorted(runs.glob(".checkpoints/*")) if path.is_dir() and holder(path / "lock") is None]
    busy = any(holder(path / "lock") is not None for path in runs.glob(".checkpoints/*"))
    old, other = unplanned(plans, runs)
    return {
        "stale": old,
        "other": other if others else [],
        "failed": sorted(runs.glob("*.failed.json")),
        "checkpoint": idle,
        # A running process may be writing one of them.
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
