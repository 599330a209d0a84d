"""Batches of packed sentences for every member: each seed has its own order, and members of one seed share it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embinit.models.packing import Layout, capacity, layout
from embinit.prepared.reading import Packed, Prepared
from embinit.seeds import stream

#: Ids of the specials that every prepared vocabulary begins with: <unk> <pad> <bos> <eos>.
UNKNOWN, PADDING, BEGIN, END = range(4)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """Packed ids (members, room) and where they stand; for a target also what follows each of them."""

    ids: Tensor
    place: Layout
    following: Tensor


@dataclass(frozen=True)
class Batch:
    """One step's sentences of every member."""

    sides: tuple[Side, ...]
    #: (members, batch) for a classification
    labels: Tensor | None
    #: (members, batch): which sentences are there; a last batch may be smaller
    present: Tensor
    #: (members, batch): which row of the split each sentence is
    rows: Numbers


class Batches:
    """The batches of one split; all have the same shapes, whoever trains beside whom."""

    def __init__(self, prepared: Prepared, split: str, batch: int, device: Any = "cpu") -> None:
        self._packed = [prepared.packed(split, side) for side in prepared.sides]
        self._labels = prepared.labels(split) if prepared.task == "classification" else None
        self._batch, self._device = batch, device
        # Both sides stand between <bos> and <eos>; a target is read from <bos> on and asked for up to <eos>.
        self._extra = [1 if side == "target" else 2 for side in prepared.sides]
        self._rooms = [
            capacity(packed.lengths + extra, batch) for packed, extra in zip(self._packed, self._extra, strict=True)
        ]
        self._longest = [
            int(packed.lengths.max()) + extra for packed, extra in zip(self._packed, self._extra, strict=True)
        ]

    def __len__(self) -> int:
        return -(-self.sentences // self._batch)

    @property
    def sentences(self) -> int:
        """Return how many sentences the split has."""
        return len(self._packed[0])

    def shuffled(self, seeds: Sequence[int], epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch in each member's own order, which its seed and the epoch decide."""
        orders = {seed: stream(seed, f"data order, epoch {epoch}").permutation(self.sentences) for seed in set(seeds)}
        return self._in_order(np.stack([orders[seed] for seed in seeds]))

    def straight(self, members: int) -> Iterator[Batch]:
        """Yield the batches in the split's own order, the same for all members."""
        return self._in_order(np.tile(np.arange(self.sentences), (members, 1)))

    def _in_order(self, order: Numbers) -> Iterator[Batch]:
        for start in range(0, self.sentences, self._batch):
            yield self._made(order[:, start : start + self._batch])

    def _made(self, rows: Numbers) -> Batch:
        missing = self._batch - rows.shape[1]
        sides = tuple(self._side(place, rows, missing) for place in range(len(self._packed)))
        present = np.pad(np.ones(rows.shape, dtype=bool), ((0, 0), (0, missing)))
        labels = None
        if self._labels is not None:
            labels = self._moved(np.pad(self._labels[rows], ((0, 0), (0, missing))))
        return Batch(sides, labels, self._moved(present), rows)

    def _side(self, which: int, rows: Numbers, missing: int) -> Side:
        packed, extra = self._packed[which], self._extra[which]
        lengths = np.pad(packed.lengths[rows] + extra, ((0, 0), (0, missing)))
        room = max(self._rooms[which], -(-int(lengths.sum(axis=1).max()) // 64) * 64)
        ids = np.full((len(rows), room), PADDING, dtype=np.int64)
        following = np.full((len(rows), room), PADDING, dtype=np.int64)
        for member, own in enumerate(rows):
            tokens = framed(packed, own)
            if extra == 2:
                ids[member, : len(tokens)] = tokens
            else:
                # `<bos> a b <eos>` is read as `<bos> a b` and asked for as `a b <eos>`.
                ids[member, : len(tokens) - len(own)] = tokens[tokens_before_end(packed, own)]
                following[member, : len(tokens) - len(own)] = tokens[tokens_after_begin(packed, own)]
        place = layout(lengths, room, self._longest[which], self._device)
        return Side(self._moved(ids), place, self._moved(following))

    def _moved(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device, non_blocking=True)


def framed(packed: Packed, rows: Numbers) -> Numbers:
    """Return sentences one after another, each between <bos> and <eos>."""
    lengths = packed.lengths[rows]
    ends = (lengths + 2).cumsum()
    result = np.empty(int(ends[-1]), dtype=np.int64)
    inside = np.ones(len(result), dtype=bool)
    inside[ends - 1] = inside[ends - lengths - 2] = False
    result[ends - lengths - 2] = BEGIN
    result[ends - 1] = END
    before = lengths.cumsum() - lengths
    result[inside] = packed.ids[np.arange(int(lengths.sum())) + np.repeat(packed.offsets[rows] - before, lengths)]
    return result


def tokens_before_end(packed: Packed, rows: Numbers) -> npt.NDArray[np.bool_]:
    """Return which places of `framed` are not <eos> at the end of a sentence."""
    ends = (packed.lengths[rows] + 2).cumsum()
    keep = np.ones(int(ends[-1]), dtype=bool)
    keep[ends - 1] = False
    return keep


def tokens_after_begin(packed: Packed, rows: Numbers) -> npt.NDArray[np.bool_]:
    """Return which places of `framed` are not <bos> at the beginning of a sentence."""
    lengths = packed.lengths[rows] + 2
    keep = np.ones(int(lengths.sum()), dtype=bool)
    keep[lengths.cumsum() - lengths] = False
    return keep
