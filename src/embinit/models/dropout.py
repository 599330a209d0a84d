"""Dropout whose masks depend only on the member's seed, the step and the place.

torch's dropout takes no generator, so the mask of a member would depend on the other members. Here each element has a
number of its own, a hash of (seed, step, place, row, column). The number is the same for all starts of a seed and on every
device. It is cheap, so the backward pass computes it again instead of keeping it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

#: Constants of the hash, shared with the CUDA kernels.
FIRST, SECOND, ROW, COLUMN, LAST = 0x85EBCA6B, 0xC2B2AE35, 0x9E3779B1, 0x7F4A7C15, 0x2C1B3C6D


def _mixed(value: Tensor) -> Tensor:
    """Return 32-bit numbers with their bits mixed (the finalizer of MurmurHash3), in int64 arithmetic."""
    value = ((value ^ (value >> 16)) * FIRST) & 0xFFFFFFFF
    value = ((value ^ (value >> 13)) * SECOND) & 0xFFFFFFFF
    return value ^ (value >> 16)


class Dropout:
    """The dropout masks of one step; `keys` has a number for each member, made of its seed and the step."""

    def __init__(self, rates: float | Sequence[float], keys: Tensor, places: Sequence[str]) -> None:
        each = (rates,) * len(keys) if isinstance(rates, float | int) else tuple(rates)
        #: the largest dropout rate of a member
        self.rate = max(each)
        self._limits = _limits(each, keys.device)
        self._alike = len(set(each)) == 1
        self._index = {place: i for i, place in enumerate(places)}
        self._own = _mixed(_numbers(tuple(places), keys.device)[:, None] ^ keys)  # (places, members)

    def own(self, place: str) -> Tensor:
        """Return each member's number at a place, from 0 to 2^32 - 1."""
        return self._own[self._index[place]]

    @cached_property
    def _for_kernels(self) -> Tensor:
        limits = torch.stack((self._limits.thresholds, self._limits.scales.view(torch.int32)), dim=-1)
        own = self._own.to(torch.int32)[:, :, None]
        return torch.cat((own, limits.expand(len(own), -1, -1)), dim=-1)

    def for_kernels(self, place: str) -> Tensor:
        """Return each member's number at a place, its threshold and the bits of its scale, (members, 3) int32."""
        return self._for_kernels[self._index[place]]

    def __call__(self, values: Tensor, place: str) -> Tensor:
        """Return values (members, rows, columns) with dropout."""
        if self.rate == 0:
            return values
        rows = torch.arange(values.shape[1], device=values.device)
        return values * self.factors(rows.expand(values.shape[:2]), values.shape[2], place, values.dtype)

    def factors(
        self, rows: Tensor, columns: int, place: str, dtype: torch.dtype = torch.float32, member: Tensor | None = None
    ) -> Tensor:
        """Return the factor of each element, 0 or 1/(1-rate): one for each row and each of `columns` columns.

        `rows` are row numbers, (members, ...). With `member`, the member of each row, they may have any shape that
        broadcasts with it.
        """
        own = self.own(place).view(-1, *[1] * (rows.dim() - 1)) if member is None else self.own(place)[member]
        row = _mixed(own + rows * ROW & 0xFFFFFFFF)
        column = _mixed(torch.arange(columns, device=rows.device) + COLUMN) | 1
        # int32 products wrap around, as a hash needs; the high bits of a product are the most random ones
        number = row.to(torch.int32).unsqueeze(-1) * column.to(torch.int32)
        number = number.bitwise_xor_(number >> 15).mul_(LAST)
        if self._alike:
            return (number >= self._limits.threshold).to(dtype).mul_(self._limits.scale)
        threshold, scale = (
            limit.view(-1, *[1] * rows.dim()) if member is None else limit[member].unsqueeze(-1)
            for limit in (self._limits.thresholds, self._limits.scales)
        )
        return ((number >= threshold) * scale).to(dtype)


@dataclass(frozen=True)
class _Limits:
    """The hash (an int32) below which an element is dropped, and the factor of all other elements."""

    #: the first member's
    threshold: int
    scale: float
    #: each member's, (members,)
    thresholds: Tensor
    scales: Tensor


@cache
def _limits(rates: tuple[float, ...], device: torch.device) -> _Limits:
    """Return the limits of dropout rates. They are made once, because a captured step cannot copy from the host."""
    thresholds, scales = [int(rate * 2**32) - 2**31 for rate in rates], [1 / (1 - rate) for rate in rates]
    return _Limits(
        thresholds[0], scales[0],
        torch.tensor(thresholds, dtype=torch.int32, device=device),
        torch.tensor(scales, dtype=torch.float32, device=device),
    )  # fmt: skip


@cache
def _numbers(places: tuple[str, ...], device: torch.device) -> Tensor:
    """Return a number for each place. It is made once, because a captured step cannot copy from the host."""
    return torch.tensor([zlib.crc32(place.encode()) for place in places], device=device)


def keys(seeds: Tensor, step: Tensor | int) -> Tensor:
    """Return a number for each member, made of its seed and the step."""
    return _mixed(_mixed(seeds & 0xFFFFFFFF) + (step * ROW & 0xFFFFFFFF) & 0xFFFFFFFF)


def hashed(own: Tensor, purpose: str, places: Tensor) -> Tensor:
    """Return a number from 0 to 2^32 - 1 for each place, made of the members' `keys` and the purpose."""
    return _mixed(_mixed(own ^ zlib.crc32(purpose.encode())) + (places * ROW & 0xFFFFFFFF) & 0xFFFFFFFF)
