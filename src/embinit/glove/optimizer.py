"""Fit vectors to counts of pairs: epochs in shuffled order, threads, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from embinit.errors import EmbinitError
from embinit.glove import checkpoint as checkpoints
from embinit.glove.checkpoint import Position, Settings
from embinit.glove.corpus import Progress
from embinit.glove.kernel import Entries, Parameters, initial, sweep
from embinit.records import Damaged
from embinit.seeds import stream
from embinit.types import Matrix

#: The entries that a thread processes between reports of progress: some tenths of a second.
_CHUNK = 1 << 18
#: About the largest number of seconds of work that a kill can lose.
_SECONDS = 30.0
#: After an epoch, a checkpoint is written if this takes less than this share of the time since the last one.
_SHARE = 0.05


def fit(
    entries: Entries,
    words: int,
    identity: str,
    *,
    dim: int,
    epochs: int,
    x_max: float,
    alpha: float,
    lr: float,
    threads: int,
    seed: int,
    checkpoint: Path | None,
    fresh: bool,
    progress: Progress,
) -> tuple[Matrix, tuple[float, ...], int, bool]:
    """Return word plus context vectors, the mean loss of each epoch, and the number of updates from a checkpoint.

    The last value says whether a damaged checkpoint was left out.

    `identity` tells these counts from others, for the checkpoint.
    """
    settings: Settings = {
        "dim": dim,
        "epochs": epochs,
        "x_max": x_max,
        "alpha": alpha,
        "lr": lr,
        "seed": seed,
        # One thread must give the same bits again, so it never continues the work of several threads.
        "threads": "1" if threads == 1 else "several",
        "counts": identity,
    }
    restored, damaged = None, False
    if checkpoint is not None and not fresh:
        try:
            restored = checkpoints.load(checkpoint, settings)
        except Damaged:
            damaged = True
    shapes = [(words, dim)] * 2 + [(words,)] * 2
    if restored is not None and [array.shape for array in restored[0]] != shapes * 2:
        restored, damaged = None, True
    parameters, position = restored or (initial(words, dim, seed), Position())
    number = len(entries.counts)
    resumed = position.epoch * number + position.done
    saver = _Saver(checkpoint, settings, parameters)
    with ThreadPoolExecutor(threads) as pool:
        while position.epoch < epochs:
            description = f"epoch {position.epoch + 1} of {epochs}"
            description += f", loss {position.losses[-1]:.4f}" if position.losses else ""
            order = _order(number, seed, position.epoch + 1)
            for chunk in _chunks(order, position.done, threads * _CHUNK):
                position.loss += math.fsum(
                    pool.map(
                        lambda part: _update(part, entries, parameters, x_max, alpha, lr),
                        np.array_split(chunk, threads),
                    )
                )
                position.done += len(chunk)
                if not math.isfinite(position.loss):
                    raise EmbinitError(f"training diverged in epoch {position.epoch + 1}; a smaller --lr helps")
                progress(description, position.epoch * number + position.done, epochs * number)
                saver.inside(position)
            position.losses.append(position.loss / number)
            position.epoch, position.done, position.loss = position.epoch + 1, 0, 0.0
            saver.after(position, last=position.epoch == epochs)
    return parameters.words + parameters.contexts, tuple(position.losses), resumed, damaged


def _order(number: int, seed: int, epoch: int) -> Any:
    """Return the epoch's order of entries, in the smallest type that can hold them."""
    order = np.arange(number, dtype=np.int32 if number < 2**31 else np.int64)
    stream(seed, f"glove epoch {epoch}").shuffle(order)
    return order


def _chunks(order: Any, done: int, size: int) -> Iterator[Any]:
    return (order[start : start + size] for start in range(done, len(order), size))


def _update(order: Any, entries: Entries, parameters: Parameters, x_max: float, alpha: float, lr: float) -> float:
    return float(sweep()(order, entries, parameters, np.float32(x_max), np.float32(alpha), np.float32(lr)))


class _Saver:
    """Writes checkpoints, but not so often that training slows down."""

    def __init__(self, path: Path | None, settings: Settings, parameters: Parameters) -> None:
        self._path, self._settings, self._parameters = path, settings, parameters
        self._saved, self._took = time.monotonic(), 0.0

    def inside(self, position: Position) -> None:
        """Save in the middle of an epoch, if the last checkpoint is old."""
        if time.monotonic() - self._saved >= _SECONDS:
            self._save(position)

    def after(self, position: Position, *, last: bool) -> None:
        """Save after an epoch; always after the last one, in case the vectors cannot be written."""
        if last or self._took <= _SHARE * (time.monotonic() - self._saved):
            self._save(position)

    def _save(self, position: Position) -> None:
        if self._path is not None:
            started = time.monotonic()
            checkpoints.save(self._path, self._settings, self._parameters, position)
            self._saved = time.monotonic()
            self._took = self._saved - started
