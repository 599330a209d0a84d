"""Dropout whose masks are a function of the member's seed, the step and the place alone.

torch's own dropout takes no generator, so what one member drops would depend on who trains beside it. Here each element
has a number of its own, a hash of (seed, step, place, row, column): the same across initializations of one seed, the same on
every device, and cheap enough to be computed again in the backward pass instead of being kept.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor

_MASK = 0x7FFFFFFF


def _mixed(value: Tensor) -> Tensor:
    """Return 32-bit numbers with their bits mixed (the finalizer of MurmurHash3), in int64 arithmetic."""
    value = ((value ^ (value >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ (value >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ (value >> 16)


@dataclass(frozen=True)
class Dropout:
    """What is dropped in one step; `keys` has a number for each member, of its seed and the step."""

    rate: float
    keys: Tensor  # (members,), int64

    def __call__(self, values: Tensor, place: str) -> Tensor:
        """Return values (members, rows, columns) with some dropped and the others enlarged."""
        if self.rate == 0:
            return values
        return values * self.factors(values.shape[1], values.shape[2], place, values)

    def factors(self, rows: int, columns: int, place: str, like: Tensor) -> Tensor:
        """Return 0 or 1/(1-rate) for each element: one 32-bit product a number, mixed twice."""
        device = self.keys.device
        own = _mixed(self.keys ^ zlib.crc32(place.encode()))  # (members,)
        row = _mixed(own[:, None] + torch.arange(rows, device=device) * 0x9E3779B1 & 0xFFFFFFFF)  # (members, rows)
        column = _mixed(torch.arange(columns, device=device) + 0x7F4A7C15) | 1  # (columns,)
        # int32 products wrap, which is what a hash wants; the high bits of a product are its best ones
        number = row.to(torch.int32)[:, :, None] * column.to(torch.int32)
        number = (number ^ (number >> 15)) * 0x2C1B3C6D
        kept = (number ^ (number >> 13)) & _MASK
        return (kept >= int(self.rate * (_MASK + 1))).to(like.dtype) * (1 / (1 - self.rate))


def keys(seeds: Tensor, step: int) -> Tensor:
    """Return a number for each member, of its seed and the step."""
    return _mixed(_mixed(seeds & 0xFFFFFFFF) + (step * 0x9E3779B1 & 0xFFFFFFFF) & 0xFFFFFFFF)
