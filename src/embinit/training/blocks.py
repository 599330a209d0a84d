"""Batches of a running text: blocks of one length, without padding.

A text is one sequence: `<eos>`, then every line with an `<eos>` after it. In training each epoch cuts it into blocks from a
new place on, which the seed and the epoch decide; the text is taken as a ring, so that every epoch has the same number of
blocks. For scoring, blocks begin `stride` tokens after each other and only the tokens that no block before had are scored.
The last block ends with the text; it begins earlier, so that it is not shorter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.packing import full_layout
from embinit.prepared.folder import Prepared
from embinit.seeds import stream
from embinit.training.batches import END, Batch, BatchSide, Numbers, Rooms
from embinit.training.masking import FixedMask, Masked, fixed_mask, masked


class TextBatches:
    """The batches of one split of a running text.

    Parameters
    ----------
    prepared
        A prepared running text.
    split
        The name of the split.
    batch
        The number of blocks in a batch.
    length
        The number of tokens in a block. A validation or test text that is shorter is one block of its own length.
    device
        The device of the text and of the batches.
    stride
        The number of tokens between the beginnings of blocks that are scored; None: blocks for training.
    mask_rate
        The share of tokens that a masked language model predicts.
    """

    def __init__(
        self, prepared: Prepared, split: str, batch: int, length: int, device: Any = "cpu", stride: int | None = None,
        mask_rate: float = 0.15,
    ) -> None:  # fmt: skip
        tokens = sequence(prepared, split)
        self.batch, self._device, self._stride = batch, torch.device(device), stride
        self._size = len(tokens) - 1  # the last token is only predicted
        if stride is None and self._size < length:
            raise EmbinitError(
                f"{prepared.path.name}, {split}: a block has {length:,} tokens, and the text has {self._size:,}"
            )
        self.length = min(length, self._size)
        self._tokens = torch.from_numpy(tokens).to(self._device)
        self._within = torch.arange(self.length, device=self._device)
        self._masked, self._vocabulary = prepared.task == "masked_language_model", len(prepared.vocabularies["text"])
        self._count = max(1, round(mask_rate * batch * self.length))
        self._mask: FixedMask | None = None
        if self._masked and stride is not None:
            self._mask = fixed_mask(tokens, split, mask_rate, self._vocabulary, self._device)
        self._starts = self._straight_starts() if stride is not None else np.empty(0, np.int64)
        self.sentences = len(self._starts) if stride is not None else self._size // self.length

    def _straight_starts(self) -> Numbers:
        last, stride = self._size - self.length, min(self._stride or self.length, self.length)
        starts = np.arange(0, last + 1, stride, dtype=np.int64)
        return starts if starts[-1] == last else np.append(starts, last)

    def __len__(self) -> int:
        return -(-self.sentences // self.batch)

    def orders(self, seeds: Sequence[int], epoch: int) -> Numbers:
        """Return the first place of each block of an epoch, (members, batches, batch), by the seed; -1: no block."""
        own = {seed: self._one_order(seed, epoch) for seed in set(seeds)}
        return np.stack([own[seed] for seed in seeds])

    def straight(self, members: int) -> Numbers:
        """Return the first place of each scored block, (members, batches, batch), in the text's order; -1: no block."""
        return np.tile(self._shaped(self._starts), (members, 1, 1))

    def _one_order(self, seed: int, epoch: int) -> Numbers:
        rng = stream(seed, f"data order, epoch {epoch}")
        first = int(rng.integers(self._size))
        starts = first + self.length * np.arange(self.sentences, dtype=np.int64)
        return self._shaped(starts[rng.permutation(self.sentences)] % self._size)

    def _shaped(self, starts: Numbers) -> Numbers:
        missing = len(self) * self.batch - len(starts)
        return np.pad(starts, (0, missing), constant_values=-1).reshape(len(self), self.batch)

    def rooms(self, orders: Numbers) -> list[Rooms]:
        """Return the number of places of each batch: its tokens, and the places that a masked model predicts."""
        count = self._count
        if self._mask is not None:
            # Enough for every batch of the split, so that all batches have one shape.
            before = np.concatenate(([0], np.cumsum(self._mask.chosen.cpu().numpy())))
            ends = self._starts + self.length
            each = np.diff(before[ends], prepend=0)
            count = int(np.add.reduceat(each, np.arange(0, len(each), self.batch)).max(initial=1))
        return [(self.batch * self.length, count)] * orders.shape[1]

    def made(self, rows: Tensor, rooms: Rooms) -> Batch:
        """Return the batch of the blocks that begin at these places, (members, batch); -1: no block."""
        members, batch = rows.shape
        present, starts = rows >= 0, rows.clamp(min=0)
        at = ((starts[:, :, None] + self._within) % self._size).flatten(1)
        ids = self._tokens[at]
        scored = present[:, :, None].expand(-1, -1, self.length)
        if self._stride is not None:
            stride = min(self._stride or self.length, self.length)
            before = torch.div(starts - 1, stride, rounding_mode="floor") * stride + self.length
            seen = torch.where(starts > 0, before - starts, 0)
            scored = scored & (self._within >= seen[:, :, None])
        scored = scored.flatten(1)
        place = full_layout(members, batch, self.length, self._device)
        side = BatchSide(ids, place, self._tokens[at + 1])
        fixed = self._mask.of(ids, at, scored, rooms[1]) if self._mask is not None else None
        return Batch((side,), None, present, scored, fixed, rooms[1])

    def each(self, orders: Numbers) -> Iterator[Batch]:
        """Yield the batches of these orders."""
        on_device = torch.from_numpy(orders).to(self._device)
        for number, rooms in enumerate(self.rooms(orders)):
            yield self.made(on_device[:, number], rooms)


def masked_batch(batch: Batch, seeds: Tensor, step: Tensor | int | None, vocabulary: int) -> Masked:
    """Return the input and the targets of a masked model: with the fixed mask of the split, or with that of a step."""
    if step is None:
        if batch.masked is None:
            raise ValueError("a batch for training has no fixed mask")
        return batch.masked
    assert batch.scored is not None, "a batch of running text has scored places"
    return masked(batch.sides[0].ids, batch.scored, seeds, step, batch.count, vocabulary)


def sequence(prepared: Prepared, split: str) -> Numbers:
    """Return a split as one sequence: `<eos>`, then every line with an `<eos>` after it."""
    packed = prepared.packed(split, "text")
    result = np.full(len(packed.ids) + len(packed) + 1, END, dtype=np.int64)
    ends = packed.offsets[1:] + 1 + np.arange(len(packed))
    inside = np.ones(len(result), dtype=bool)
    inside[0] = inside[ends] = False
    result[inside] = packed.ids
    return result
