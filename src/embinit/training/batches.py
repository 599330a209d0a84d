"""Batches of packed sentences for every member: each seed has its own order, and members of one seed share it.

The split lies on the device, and a batch is made there from row numbers alone, in tensors whose shapes do not depend on
what is in them: so a whole step can be captured and replayed.
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

#: Ids of the specials that every prepared vocabulary begins with: <unk> <pad> <bos> <eos>.
UNKNOWN, PADDING, BEGIN, END = range(4)

Numbers = npt.NDArray[np.int64]
#: Packed places of each side.
Rooms = tuple[int, ...]
#: How many σ above the mean number of tokens the rooms are that a device's batches are put into, smallest first.
_SIGMAS = (1.5, 2.25, 3.0, 6.0)
_BUCKETS = 50  # batches of so many sizes are sorted by length together


@dataclass(frozen=True)
class BatchSide:
    """Packed ids (members, room) and where they stand; for a target also what follows each of them."""

    ids: Tensor
    place: Layout
    following: Tensor


@dataclass(frozen=True)
class Batch:
    """One step's sentences of every member."""

    sides: tuple[BatchSide, ...]
    #: (members, batch) for a classification
    labels: Tensor | None
    #: (members, batch): which sentences are there; a last batch may be smaller
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
        # Both sides stand between <bos> and <eos>; a target is read from <bos> on and asked for up to <eos>.
        self._target = [side == "target" for side in prepared.sides]
        self._tokens = [self._moved(framed(one)) for one in packed]
        self._firsts = [self._moved(one.offsets[:-1] + 2 * np.arange(len(one))) for one in packed]
        self.lengths = [
            np.asarray(one.lengths + (1 if target else 2)) for one, target in zip(packed, self._target, strict=True)
        ]
        self._lengths = [self._moved(lengths) for lengths in self.lengths]
        self._longest = [int(lengths.max()) for lengths in self.lengths]
        self._labels = self._moved(prepared.labels(split)) if prepared.task == "classification" else None
        self._steps = [tuple(capacity(one, batch, sigmas, 32) for one in self.lengths) for sigmas in _SIGMAS]

    def __len__(self) -> int:
        return -(-self.sentences // self.batch)

    def orders(self, seeds: Sequence[int], epoch: int) -> Numbers:
        """Return every member's order of an epoch, (members, batches, batch), which its seed alone decides; -1: none."""
        own = {seed: self._one_order(seed, epoch) for seed in set(seeds)}
        return np.stack([own[seed] for seed in seeds])

    def straight(self, members: int) -> Numbers:
        """Return the split's own order for all members, (members, batches, batch); -1: none."""
        return np.tile(self._shaped(np.arange(self.sentences)), (members, 1, 1))

    def _one_order(self, seed: int, epoch: int) -> Numbers:
        rng = stream(seed, f"data order, epoch {epoch}")
        order = rng.permutation(self.sentences)
        if self._order == "shuffled":
            return self._shaped(order)
        # Long beside long: within a stretch of many batches sentences are sorted by length, then batches are shuffled.
        stretch = _BUCKETS * self.batch
        pieces = [order[start : start + stretch] for start in range(0, self.sentences, stretch)]
        total = np.sum(self.lengths, axis=0)
        batches = self._shaped(np.concatenate([piece[np.argsort(total[piece], kind="stable")] for piece in pieces]))
        return batches[rng.permutation(len(batches))]

    def _shaped(self, order: Numbers) -> Numbers:
        missing = len(self) * self.batch - self.sentences
        return np.pad(order, (0, missing), constant_values=-1).reshape(len(self), self.batch)

    def rooms(self, orders: Numbers) -> list[Rooms]:
        """Return how much room each batch of these orders needs.

        On CUDA a few sizes, so that a captured step serves many batches; elsewhere no more than the largest member needs.
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
        """Return the batch of these rows of the split, (members, batch), -1 where there is none."""
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
        # `<bos> a b <eos>` is read as `<bos> a b` and asked for as `a b <eos>`.
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
    """Return all sentences one after another, each between <bos> and <eos>."""
    result = np.empty(len(packed.ids) + 2 * len(packed), dtype=np.int64)
    inside = np.ones(len(result), dtype=bool)
    begins = packed.offsets[:-1] + 2 * np.arange(len(packed))
    ends = packed.offsets[1:] + 2 * np.arange(len(packed)) + 1
    result[begins], result[ends] = BEGIN, END
    inside[begins] = inside[ends] = False
    result[inside] = packed.ids
    return result
