"""Train a group of jobs on a worker, as `embinit execute` does, in a temporary folder."""

from __future__ import annotations

import json
import math
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

import embinit
from embinit.errors import EmbinitError
from embinit.experiments.execution.observer import Watch
from embinit.experiments.execution.ray.board import Board, BoardObserver, FarBoard, StopRequested
from embinit.experiments.execution.ray.parcels import Parcel, archive_of, unpack
from embinit.experiments.runs.store import is_done


@dataclass(frozen=True)
class WorkerResult:
    """The results that a worker sends back."""

    #: an archive of the finished runs; empty if there are none
    archive: bytes
    #: key of a failed run -> the reason, and the traceback
    failed: dict[str, tuple[str, str]]
    #: whether it stopped because it was told to
    stopped: bool = False


def train_group(
    number: int,
    version: str,
    jobs: bytes,
    device: str,
    board: Board | FarBoard,
    *parcels: Parcel,
    keep_weights: bool = False,
) -> WorkerResult:
    """Return the runs of a group.

    Parameters
    ----------
    number
        The number of the group on the board.
    version
        The version of embinit on the machine that started the work; it must be the version here.
    jobs
        The content of a jobs.json with the jobs of the group.
    device
        `cpu` or `cuda`.
    board
        The board for the progress.
    parcels
        The prepared tasks and the rows that the jobs read.
    keep_weights
        Whether run folders also get the weights of the best epoch.
    """
    if embinit.__version__ != version:
        host = socket.gethostname()
        raise EmbinitError(
            f"{host} has embinit {embinit.__version__}, but the work was started by {version}; "
            "install one version on all machines"
        )
    import torch  # before the first note: the import takes seconds, in which the worker could not be told to stop

    if device == "cpu":
        torch.set_num_threads(1)  # the task has one core
    keys = [job["key"] for job in json.loads(jobs)["jobs"]]
    try:
        watch = BoardObserver(board, number, len(keys))
        with tempfile.TemporaryDirectory(prefix="embinit-ray-") as name:
            root = Path(name)
            for parcel in parcels:
                unpack(parcel, root)
            (root / "jobs.json").write_bytes(jobs)
            return _executed(root, keys, device, watch, keep_weights)
    except StopRequested:
        return WorkerResult(b"", {}, stopped=True)


def _executed(root: Path, keys: list[str], device: str, watch: Watch, keep_weights: bool) -> WorkerResult:
    from embinit.experiments.execution.engine import execute

    out = root / "runs"
    jobs = root / "jobs.json"
    # `every` is infinite because a checkpoint in this folder would be lost with the worker.
    summary = execute(jobs, out, device=device, workers=1, watch=watch, every=math.inf, keep_weights=keep_weights)
    done = [out / key for key in keys if is_done(out / key)]
    return WorkerResult(archive_of(done) if done else b"", {key: _details(out, key) for key in summary.failed})


def _details(out: Path, key: str) -> tuple[str, str]:
    content = json.loads((out / f"{key}.failed.json").read_text("utf-8"))
    return content["reason"], content["traceback"]
