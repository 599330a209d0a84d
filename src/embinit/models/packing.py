"""Sentences without padding: the tokens of a batch are packed into one row, and can be moved to padded blocks and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Lengths = npt.NDArray[np.int64]


def capacity(lengths: Lengths, batch: int, sigmas: float = 6.0, multiple: int = 64) -> int:
    """Return the number of places that hold the tokens of a random batch.

    This is the mean plus a number of σ, or the largest possible number if that is smaller.
    """
    mean, spread = float(lengths.mean()), float(lengths.std())
    likely = batch * mean + sigmas * spread * batch**0.5
    largest = int(np.sort(lengths)[-batch:].sum())
    return -(-int(min(likely, largest)) // multiple) * multiple


@dataclass(frozen=True)
class Layout:
    """The places of packed sentences' tokens, for each member. All tensors are on the device.

    Places after a member's last token belong to no sentence. Values that are computed there are never used.
    """

    #: (members, batch): the number of tokens of each sentence, and the packed place of its first token
    lengths: Tensor
    starts: Tensor
    #: (members, room): the sentence of each place, its position in the sentence, and whether the place has a token
    sentence: Tensor
    position: Tensor
    real: Tensor
    longest: int
    #: every sentence has `longest` tokens, and every place has a token: blocks of running text
    full: bool = False
    #: blocks of this layout with another one, by the other layout's id
    paired: dict[int, tuple[Blocks, Blocks]] = field(default_factory=dict, repr=False, compare=False)
    #: likewise for kernels: the sentences of each size
    worked: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def batch(self) -> int:
        """Return the number of sentences of each member."""
        return self.lengths.shape[1]

    @property
    def room(self) -> int:
        """Return the number of packed places of each member."""
        return self.position.shape[1]

    @cached_property
    def member(self) -> Tensor:
        """Return the number of each member, (members, 1)."""
        return torch.arange(len(self.lengths), device=self.lengths.device)[:, None]

    @cached_property
    def mask(self) -> Tensor:
        """Return flags of places with a token in the padded block, (members * batch, longest)."""
        within = torch.arange(self.longest, device=self.lengths.device)
        return within < self.lengths.view(-1, 1)

    @cached_property
    def to_padded(self) -> Tensor:
        """Return the packed place, counted over all members, of each padded place, (members * batch * longest,)."""
        within = torch.arange(self.longest, device=self.lengths.device)
        inside = self.mask.view(*self.lengths.shape, -1)
        return torch.where(inside, (self.member * self.room + self.starts)[:, :, None] + within, 0).flatten()

    @cached_property
    def to_packed(self) -> Tensor:
        """Return the padded place of each packed place, (members * room,)."""
        block = self.batch * self.longest
        inside = torch.where(self.real, self.sentence * self.longest + self.position, 0)
        return (self.member * block + inside).flatten()

    @cached_property
    def for_kernels(self) -> tuple[Tensor, Tensor]:
        """Return each sentence's first place, counted over all members, and its length, (members * batch,), as int32."""
        first = self.member * self.room + self.starts
        return first.flatten().to(torch.int32), self.lengths.flatten().to(torch.int32)


def layout(lengths: Lengths | Tensor, room: int, longest: int, device: Any = None) -> Layout:
    """Return the layout of sentences of these lengths, (members, batch), in `room` packed places each.

    Lengths that are tensors are not checked, because reading them would wait for the device.
    """
    if not isinstance(lengths, Tensor):
        most, largest = int(lengths.sum(axis=1).max()), int(lengths.max())
        if most > room or largest > longest:
            raise ValueError(f"{most} tokens, sentences up to {largest}: room {room} x {longest}")
        lengths = torch.from_numpy(np.ascontiguousarray(lengths)).to(device)
    ends = lengths.cumsum(dim=1)
    starts = ends - lengths
    places = torch.arange(room, device=lengths.device).expand(len(lengths), room).contiguous()
    sentence = torch.searchsorted(ends, places, right=True)
    real = sentence < lengths.shape[1]
    sentence = sentence.clamp(max=lengths.shape[1] - 1)
    position = torch.where(real, places - starts.gather(1, sentence), 0)
    return Layout(lengths, starts, sentence, position, real, longest)


def full_layout(members: int, batch: int, length: int, device: Any = None) -> Layout:
    """Return the layout of blocks of `length` tokens each, one after another."""
    places = torch.arange(batch * length, device=device).expand(members, -1)
    lengths = torch.full((members, batch), length, device=device)
    real = torch.ones_like(places, dtype=torch.bool)
    return Layout(lengths, lengths.cumsum(1) - lengths, places // length, places % length, real, length, full=True)


@dataclass(frozen=True)
class Blocks:
    """Sentences of similar length as padded blocks, one after another. Two sides have the same sentences in each block."""

    #: for each block its sentences, counted over all members, and the number of places of each sentence
    groups: tuple[tuple[Tensor, int], ...]
    #: (rows,): the packed place of each row, counted over all members, and whether the row has a token
    place: Tensor
    real: Tensor
    #: (members * room,): the row of each packed place, and whether the place has a token
    row: Tensor
    real_places: Tensor
    room: int

    def filled(self, packed: Tensor) -> Tensor:
        """Return packed rows (members, room, width) as rows of the blocks, (rows, width)."""
        rows: Tensor = _Moved.apply(packed.flatten(0, 1), self.place, self.row, self.real_places)  # type: ignore[no-untyped-call]
        return rows

    def emptied(self, rows: Tensor) -> Tensor:
        """Return rows of the blocks as packed rows, (members, room, width)."""
        packed: Tensor = _Moved.apply(rows, self.row, self.place, self.real)  # type: ignore[no-untyped-call]
        return packed.view(-1, self.room, rows.shape[-1])


_STEP = 8  # lengths are rounded up to a multiple of this, and sentences of equal rounded length share a block


def blocks(one: Layout, other: Layout) -> tuple[Blocks, Blocks]:
    """Return the blocks of two sides whose sentences attend to each other; they may be the same side.

    On a CPU, sentences of similar length share a block, which saves the work on padding. On a card, reading the lengths
    would wait for the device, so there is one block.
    """
    known = one.paired.get(id(other))
    if known is None:
        groups = _groups(one, other)
        first = _blocked(one, groups)
        known = one.paired[id(other)] = (first, first if other is one else _blocked(other, groups))
    return known


def _groups(one: Layout, other: Layout) -> tuple[tuple[Tensor, int], ...]:
    if one.lengths.device.type != "cpu":
        everything = torch.arange(one.lengths.numel(), device=one.lengths.device)
        return ((everything, max(one.longest, other.longest)),)
    longer = torch.maximum(one.lengths, other.lengths)
    sizes = (longer.clamp(min=1) + _STEP - 1) // _STEP * _STEP
    # Members have separate blocks, so that no sum depends on the other members.
    return tuple(
        ((own == size).nonzero()[:, 0] + member * one.batch, int(size))
        for member, own in enumerate(sizes)
        for size in own.unique()
    )


def _blocked(layout: Layout, groups: tuple[tuple[Tensor, int], ...]) -> Blocks:
    lengths, device = layout.lengths.flatten(), layout.lengths.device
    firsts = (layout.member * layout.room + layout.starts).flatten()
    place, real, start = [], [], 0
    row_of_sentence = torch.zeros_like(lengths)
    for sentences, size in groups:
        within = torch.arange(size, device=device)
        inside = within < lengths[sentences][:, None]
        place.append(torch.where(inside, firsts[sentences][:, None] + within, 0).flatten())
        real.append(inside.flatten())
        row_of_sentence[sentences] = start + size * torch.arange(len(sentences), device=device)
        start += size * len(sentences)
    own = row_of_sentence.view_as(layout.lengths).gather(1, layout.sentence) + layout.position
    row = torch.where(layout.real, own, 0).flatten()
    return Blocks(groups, torch.cat(place), torch.cat(real), row, layout.real.flatten(), layout.room)


class _Moved(torch.autograd.Function):
    """Rows by an index with a known inverse. The gradient is a gather too, so it is exact and deterministic."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor, real: Tensor) -> Tensor:
        ctx.save_for_backward(back, real)
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        back, real = ctx.saved_tensors
        return gradient.index_select(0, back) * real[:, None].to(gradient.dtype), None, None, None


def padded(rows: Tensor, place: Layout) -> Tensor:
    """Return packed rows (members, room, dim) as a padded block (members * batch, longest, dim)."""
    flat = rows.flatten(0, 1)
    moved: Tensor = _Moved.apply(flat, place.to_padded, place.to_packed, place.real.flatten())  # type: ignore[no-untyped-call]
    return moved.view(-1, place.longest, rows.shape[-1])
