"""What a worker does with a group of jobs: the same as `embinit execute`, in a folder that is gone afterwards."""

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
from embinit.experiments.execution.ray.board import Board, FarBoard, GivenUp, Telling
from embinit.experiments.execution.ray.parcels import Parcel, archive_of, unpack
from embinit.experiments.runs.store import is_done


@dataclass(frozen=True)
class Made:
    """What comes back from a worker."""

    #: finished runs; empty where there are none
    archive: bytes
    #: key -> why it failed, and where
    failed: dict[str, tuple[str, str]]
    #: it was given up, as was asked
    stopped: bool = False


def make_group(
    number: int,
    version: str,
    jobs: bytes,
    device: str,
    board: Board | FarBoard,
    *parcels: Parcel,
    keep_weights: bool = False,
) -> Made:
    """Return the runs of a group; `number` is the group's on the board, `version` that of who asks."""
    if embinit.__version__ != version:
        host = socket.gethostname()
        raise EmbinitError(f"{host} has embinit {embinit.__version__}, and {version} asks; install the same on all")
    import torch  # takes seconds, in which nobody could be told to stop: before the work is announced

    if device == "cpu":
        torch.set_num_threads(1)  # as many as the cores that were asked for
    keys = [job["key"] for job in json.loads(jobs)["jobs"]]
    try:
        watch = Telling(board, number, len(keys))
        with tempfile.TemporaryDirectory(prefix="embinit-ray-") as name:
            root = Path(name)
            for parcel in parcels:
                unpack(parcel, root)
            (root / "jobs.json").write_bytes(jobs)
            return _made(root, keys, device, watch, keep_weights)
    except GivenUp:
        return Made(b"", {}, stopped=True)


def _made(root: Path, keys: list[str], device: str, watch: Watch, keep_weights: bool) -> Made:
    from embinit.experiments.execution.engine import execute

    out = root / "runs"
    # A checkpoint in this folder would be lost with the worker, so none is written.
    jobs = root / "jobs.json"
    summary = execute(
        jobs, out, device=device, workers=1, watch=watch, every=math.inf, keep_weights=keep_weights
    )  # fmt: skip
    done = [out / key for key in keys if is_done(out / key)]
    return Made(archive_of(done) if done else b"", {key: _details(out, key) for key in summary.failed})


def _details(out: Path, key: str) -> tuple[str, str]:
    content = json.loads((out / f"{key}.failed.json").read_text("utf-8"))
    return content["reason"], content["traceback"]
