"""Sentences without padding: all tokens of a batch in one row, and the way to a padded block and back.

Shapes are fixed by the data set and the batch size (`capacity`), not by who trains beside whom, but for the rare batch
that is six σ too large: so a member's numbers do not depend on its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Lengths = npt.NDArray[np.int64]


def capacity(lengths: Lengths, batch: int, multiple: int = 64) -> int:
    """Return room for the tokens of a random batch: six σ above the mean, or the largest possible if that is less."""
    mean, spread = float(lengths.mean()), float(lengths.std())
    likely = batch * mean + 6 * spread * batch**0.5
    largest = int(np.sort(lengths)[-batch:].sum())
    return -(-int(min(likely, largest)) // multiple) * multiple


@dataclass(frozen=True)
class Layout:
    """Where the tokens of packed sentences stand, for each member; all tensors are on the device.

    Places beyond a member's tokens belong to no sentence; whatever is computed there is never read.
    """

    #: (members, tokens): position of each token in its sentence
    position: Tensor
    #: (members, tokens): whether a token stands there
    real: Tensor
    #: (members * batch * longest,): the packed place, over all members, that fills each place of the padded block
    to_padded: Tensor
    #: (members * tokens,): the padded place of each packed one
    to_packed: Tensor
    #: (members * batch, longest): whether a token stands there
    mask: Tensor
    batch: int
    longest: int


def layout(lengths: Lengths, room: int, longest: int, device: Any) -> Layout:
    """Return the layout of sentences of these lengths, (members, batch), in `room` packed places each."""
    members, batch = lengths.shape
    ends = lengths.cumsum(axis=1)
    if int(ends[:, -1].max()) > room or int(lengths.max()) > longest:
        raise ValueError(
            f"{int(ends[:, -1].max())} tokens, sentences up to {int(lengths.max())}: room {room} x {longest}"
        )
    starts = ends - lengths
    places = np.arange(room)
    sentence = np.full((members, room), batch)
    for member, own in enumerate(lengths):
        sentence[member, : ends[member, -1]] = np.repeat(np.arange(batch), own)
    real = sentence < batch
    sentence = np.minimum(sentence, batch - 1)
    position = np.where(real, places[None] - np.take_along_axis(starts, sentence, axis=1), 0)
    offset = np.arange(members)[:, None]
    to_packed = np.where(real, (offset * batch + sentence) * longest + position, offset * batch * longest)
    within = np.arange(longest)
    mask = within[None, None] < lengths[:, :, None]  # (members, batch, longest)
    to_padded = np.where(mask, offset[:, :, None] * room + starts[:, :, None] + within, offset[:, :, None] * room)

    def moved(array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

    return Layout(
        position=moved(position.astype(np.int64)),
        real=moved(real),
        to_padded=moved(to_padded.ravel()),
        to_packed=moved(to_packed.ravel()),
        mask=moved(mask.reshape(members * batch, longest)),
        batch=batch,
        longest=longest,
    )


class _Moved(torch.autograd.Function):
    """Rows by an index whose inverse is known: the gradient is a gather too, so it is exact and the same every time."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor, real: Tensor) -> Tensor:
        ctx.save_for_backward(back, real)
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        back, real = ctx.saved_tensors
        return gradient.index_select(0, back) * real[:, None].to(gradient.dtype), None, None, None


def padded(rows: Tensor, place: Layout) -> Tensor:
    """Return packed rows (members, tokens, dim) as a padded block (members * batch, longest, dim)."""
    flat = rows.flatten(0, 1)
    moved: Tensor = _Moved.apply(flat, place.to_padded, place.to_packed, place.real.flatten())  # type: ignore[no-untyped-call]
    return moved.view(-1, place.longest, rows.shape[-1])


def packed(block: Tensor, place: Layout) -> Tensor:
    """Return a padded block as packed rows (members, tokens, dim)."""
    flat = block.flatten(0, 1)
    moved: Tensor = _Moved.apply(flat, place.to_packed, place.to_padded, place.mask.flatten())  # type: ignore[no-untyped-call]
    return moved.view(*place.position.shape, block.shape[-1])
