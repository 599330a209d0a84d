"""Batches of packed sentences for all members. Each seed has its own order, which the members of the seed share.

The whole split is on the device. Batches are made there from row numbers, in tensors whose shapes do not depend on the
sentences, so that a whole step can be captured and replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embinit.models.packing import Layout, capacity, layout
from embinit.prepared.folder import Packed, Prepared
from embinit.seeds import stream
from embinit.training.masking import Masked

#: Ids of the special tokens at the start of every prepared vocabulary: <unk> <pad> <bos> <eos>.
UNKNOWN, PADDING, BEGIN, END = range(4)

Numbers = npt.NDArray[np.int64]
#: The number of packed places of each side.
Rooms = tuple[int, ...]
#: The sizes of batches on a card, in σ above the mean number of tokens, smallest first.
_SIGMAS = (1.5, 2.25, 3.0, 6.0)
_BUCKETS = 50  # this number of batches is sorted by length together


@dataclass(frozen=True)
class BatchSide:
    """Packed ids (members, room) and their layout. A target also has the token after each id."""

    ids: Tensor
    place: Layout
    following: Tensor


@dataclass(frozen=True)
class Batch:
    """One step's sentences of every member."""

    sides: tuple[BatchSide, ...]
    #: (members, batch) for a classification
    labels: Tensor | None
    #: (members, batch): flags of existing sentences; the last batch may be smaller
    present: Tensor
    #: running text, (members, room): the places whose tokens are scored
    scored: Tensor | None = None
    #: a masked language model: the fixed mask of a split that is scored, and the number of places that a step masks
    masked: Masked | None = None
    count: int = 0


class Batches:
    """The batches of one split."""

    def __init__(
        self,
        prepared: Prepared,
        split: str,
        batch: int,
        device: Any = "cpu",
        order: Literal["shuffled", "bucketed"] = "shuffled",
    ) -> None:
        packed = [prepared.packed(split, side) for side in prepared.sides]
        self.batch, self._device, self._order = batch, torch.device(device), order
        self.sentences = len(packed[0])
        # Sentences stand between <bos> and <eos>. A model reads a target from <bos> on and predicts it up to <eos>.
        self._target = [side == "target" for side in prepared.sides]
        self._tokens = [self._moved(framed(side)) for side in packed]
        self._firsts = [self._moved(side.offsets[:-1] + 2 * np.arange(len(side))) for side in packed]
        self.lengths = [
            np.asarray(side.lengths + (1 if target else 2)) for side, target in zip(packed, self._target, strict=True)
        ]
        self._lengths = [self._moved(lengths) for lengths in self.lengths]
        self._longest = [int(lengths.max()) for lengths in self.lengths]
        self._labels = self._moved(prepared.labels(split)) if prepared.task == "classification" else None
        self._steps = [tuple(capacity(lengths, batch, sigmas, 32) for lengths in self.lengths) for sigmas in _SIGMAS]

    def __len__(self) -> int:
        return -(-self.sentences // self.batch)

    def orders(self, seeds: Sequence[int], epoch: int) -> Numbers:
        """Return each member's order of an epoch, (members, batches, batch), by its seed alone; -1: no sentence."""
        own = {seed: self._one_order(seed, epoch) for seed in set(seeds)}
        return np.stack([own[seed] for seed in seeds])

    def straight(self, members: int) -> Numbers:
        """Return the order of the split for all members, (members, batches, batch); -1: no sentence."""
        return np.tile(self._shaped(np.arange(self.sentences)), (members, 1, 1))

    def _one_order(self, seed: int, epoch: int) -> Numbers:
        rng = stream(seed, f"data order, epoch {epoch}")
        order = rng.permutation(self.sentences)
        if self._order == "shuffled":
            return self._shaped(order)
        # Sentences are sorted by length within a stretch of many batches, and then the batches are shuffled.
        stretch = _BUCKETS * self.batch
        pieces = [order[start : start + stretch] for start in range(0, self.sentences, stretch)]
        total = np.sum(self.lengths, axis=0)
        batches = self._shaped(np.concatenate([piece[np.argsort(total[piece], kind="stable")] for piece in pieces]))
        return batches[rng.permutation(len(batches))]

    def _shaped(self, order: Numbers) -> Numbers:
        missing = len(self) * self.batch - self.sentences
        return np.pad(order, (0, missing), constant_values=-1).reshape(len(self), self.batch)

    def rooms(self, orders: Numbers) -> list[Rooms]:
        """Return the number of places of each batch of these orders.

        On CUDA there are a few sizes, so that a captured step is used for many batches. On a CPU it is what the largest
        member needs.
        """
        needed = np.stack([self._needed(lengths, orders) for lengths in self.lengths], axis=1)  # (batches, sides)
        if self._device.type != "cuda" or self._order == "bucketed":
            return [tuple(int(-(-count // 32) * 32) for count in row) for row in needed]
        chosen = []
        for row in needed:
            fitting = [size for size in self._steps if all(a <= b for a, b in zip(row, size, strict=True))]
            chosen.append(fitting[0] if fitting else tuple(int(-(-count // 64) * 64) for count in row))
        return chosen

    @staticmethod
    def _needed(lengths: Numbers, orders: Numbers) -> Numbers:
        tokens = np.where(orders >= 0, lengths[orders], 0).sum(axis=2)  # (members, batches)
        return np.asarray(tokens.max(axis=0))

    def made(self, rows: Tensor, rooms: Rooms) -> Batch:
        """Return the batch of these rows of the split, (members, batch); -1: no row."""
        present = rows >= 0
        rows = rows.clamp(min=0)
        sides = tuple(self._side(which, rows, present, room) for which, room in enumerate(rooms))
        return Batch(sides, self._labels[rows] if self._labels is not None else None, present)

    def _side(self, which: int, rows: Tensor, present: Tensor, room: int) -> BatchSide:
        lengths = torch.where(present, self._lengths[which][rows], 0)
        place = layout(lengths, room, self._longest[which])
        first = self._firsts[which][rows].gather(1, place.sentence)
        tokens, at = self._tokens[which], torch.where(place.real, first + place.position, 0)
        ids = torch.where(place.real, tokens[at], PADDING)
        # Of `<bos> a b <eos>`, the model reads `<bos> a b` and predicts `a b <eos>`.
        following = torch.where(place.real, tokens[at + 1], PADDING) if self._target[which] else ids
        return BatchSide(ids, place, following)

    def each(self, orders: Numbers) -> Iterator[Batch]:
        """Yield the batches of these orders."""
        on_device = self._moved(orders)
        for number, rooms in enumerate(self.rooms(orders)):
            yield self.made(on_device[:, number], rooms)

    def _moved(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.array(array, dtype=np.int64)).to(self._device)


def framed(packed: Packed) -> Numbers:
    """Return all sentences in one array, each between <bos> and <eos>."""
    result = np.empty(len(packed.ids) + 2 * len(packed), dtype=np.int64)
    inside = np.ones(len(result), dtype=bool)
    begins = packed.offsets[:-1] + 2 * np.arange(len(packed))
    ends = packed.offsets[1:] + 2 * np.arange(len(packed)) + 1
    result[begins], result[ends] = BEGIN, END
    inside[begins] = inside[ends] = False
    result[inside] = packed.ids
    return result
