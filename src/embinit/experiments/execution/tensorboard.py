"""Curves of each run for TensorBoard: losses, scores, and the σ of the embeddings after each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

from embinit.errors import require
from embinit.experiments.execution.observer import Watch
from embinit.experiments.experiment import Experiment
from embinit.experiments.jobs import Group
from embinit.experiments.runs.result import Result
from embinit.experiments.runs.store import results_of

#: TensorBoard draws the curves of one group below each other.
_GROUPS = {"train loss": "loss/train", "valid loss": "loss/valid", "bleu": "score/bleu", "accuracy": "score/accuracy"}
#: Characters that are replaced in the names of folders.
_UNUSUAL = re.compile(r"[^\w.=+-]+")


def curve_names(experiments: Iterable[Experiment]) -> dict[str, str]:
    """Return the name of each run's curves by the run's key: EXPERIMENT/BLOCK/START/seed-N.

    If runs are part of several blocks, the first block names them.
    """
    names: dict[str, str] = {}
    for experiment in experiments:
        for block in experiment.blocks:
            for planned in block.runs:
                start = " ".join(value if axis == "recipe" else f"{axis}={value}" for axis, value in planned.axes)
                parts = (experiment.name, block.name, start or "run", f"seed-{planned.spec.seed}")
                names.setdefault(planned.spec.key, "/".join(_plain(part) for part in parts))
    return names


class Curves(Watch):
    """Observer that writes the curves of each run below a folder, an event file for each run."""

    def __init__(self, folder: Path, names: Mapping[str, str]) -> None:
        require("tensorboard", "tensorboard", "--tensorboard")
        self._folder, self._names = folder, names
        self._writers: dict[str, Any] = {}

    def __enter__(self) -> Curves:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        for writer in self._writers.values():
            writer.close()

    def finished_runs(self, results: Mapping[str, Result]) -> None:
        """Write the curves of finished runs, unless they are there already."""
        for key, result in results.items():
            if key in self._names and not (self._folder / self._names[key]).exists():
                for epoch, record in enumerate(result.history, 1):
                    self._write(key, record, epoch)

    def moment(self, group: Group, moment: Any) -> None:
        """Write every member's record at the end of an epoch."""
        for job, record in zip(group.jobs, moment.records or (), strict=False):
            self._write(job.key, record, moment.epoch)
            self._writers[job.key].flush()

    def _write(self, key: str, record: Mapping[str, float | None], epoch: int) -> None:
        writer = self._writers.get(key)
        if writer is None:
            from torch.utils.tensorboard import SummaryWriter

            writer = self._writers[key] = SummaryWriter(str(self._folder / self._names.get(key, key)))
        for name, value in record.items():
            if value is not None:
                writer.add_scalar(_tag(name), value, epoch)


def curves_observer(
    folder: Path | None, experiments: Iterable[Experiment], runs: Path
) -> AbstractContextManager[Curves | None]:
    """Return an observer that writes curves below a folder, finished runs first; None without a folder."""
    if folder is None:
        return nullcontext()
    trained = [experiment for experiment in experiments if experiment.kind == "training"]
    curves = Curves(folder, curve_names(trained))
    for experiment in trained:
        curves.finished_runs(results_of(experiment, runs))
    return curves


def _tag(name: str) -> str:
    """Return the tag of a value: its group and its name, without the characters that TensorBoard replaces."""
    return _GROUPS.get(name, name.replace("σ", "sigma").replace(", ", "/").replace(" ", "_"))


def _plain(text: str) -> str:
    """Return a text as one part of a path."""
    return _UNUSUAL.sub("_", text).strip("._") or "_"
