"""Positions in a model: added to the embedding, or inside attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from embinit.models.architecture import TABLED, Architecture
from embinit.models.parameters import RELATIVE_BUCKETS, RELATIVE_FAR
from embinit.positions import sinusoidal
from embinit.seeds import stream


def added_table(architecture: Architecture) -> Tensor | None:
    """Return the fixed table that is added to rows, (length, dim); None if positions are learned or not added.

    If positions have their own dimensions, all columns but the last `position_dims` are zero.
    """
    if architecture.positions not in TABLED:
        return None
    own = architecture.position_dims or architecture.dim
    table = np.zeros((architecture.length, architecture.dim), dtype=np.float32)
    table[:, architecture.dim - own :] = (
        sinusoidal(architecture.length, own, architecture.base) * architecture.position_gain
    )
    if architecture.positions == "shuffled":
        # One permutation for all models: the same positions, but neighbours have unrelated ones.
        table = table[stream(0, "shuffled positions").permutation(len(table))]
    return torch.from_numpy(np.ascontiguousarray(table))


@dataclass(frozen=True)
class AttentionPositions:
    """Positions that act in attention: rotary, ALiBi, T5's relative bias. Other kinds have none."""

    architecture: Architecture
    #: (length, head / 2): angles of rotary positions; empty for other kinds
    angles: Tensor
    #: (heads,): slopes of ALiBi; empty for other kinds
    slopes: Tensor

    @cached_property
    def turns(self) -> tuple[Tensor, Tensor]:
        """Return cosines and sines of rotary positions, (length, head / 2)."""
        return self.angles.cos(), self.angles.sin()

    def turned(self, rows: Tensor, position: Tensor) -> Tensor:
        """Return queries or keys (members, tokens, dim), rotated by their position (RoFormer)."""
        if self.architecture.positions != "rotary":
            return rows
        # (members, tokens, 1, head / 2)
        cos, sin = (table[position][:, :, None].to(rows.dtype) for table in self.turns)
        heads = rows.reshape(*rows.shape[:-1], self.architecture.heads, -1)
        first, second = heads[..., ::2], heads[..., 1::2]
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1)
        return turned.flatten(-2).flatten(-2)

    def biased(
        self, scores: Tensor, stack: str, weights: Mapping[str, Tensor], member: Tensor, first: int = 0
    ) -> Tensor:
        """Return self-attention's scores (sentences, heads, queries, keys) with the bias of their distance.

        `member` is the member of each sentence, and `first` the position of the first query, for decoding by tokens.
        """
        kind = self.architecture.positions
        if kind not in ("alibi", "relative"):
            return scores
        queries, keys = scores.shape[-2:]
        there = torch.arange(first, first + queries, device=scores.device)
        distance = torch.arange(keys, device=scores.device) - there[:, None]
        if kind == "alibi":
            return scores - self.slopes.to(scores.dtype)[:, None, None] * distance.abs()
        buckets = relative_buckets(distance, both_ways=stack == "encoder")
        bias = weights[f"{stack}.bias"][:, buckets].permute(0, 3, 1, 2)  # (members, heads, queries, keys)
        return scores + bias.to(scores.dtype)[member]

    def curve(self, stack: str, weights: Mapping[str, Tensor], span: int) -> Tensor | None:
        """Return the bias of each distance from -span to span, (members or 1, heads, distances); None without a bias."""
        kind = self.architecture.positions
        if kind not in ("alibi", "relative"):
            return None
        distance = torch.arange(-span, span + 1, device=self.slopes.device)
        if kind == "alibi":
            return (-self.slopes[:, None] * distance.abs())[None]
        buckets = relative_buckets(distance, both_ways=stack == "encoder")
        return weights[f"{stack}.bias"].index_select(1, buckets).transpose(1, 2)


def attention_positions(architecture: Architecture, device: torch.device | str) -> AttentionPositions:
    """Return the positions that act in attention, with their tables on the device."""
    angles, slopes = torch.empty(0), torch.empty(0)
    if architecture.positions == "rotary":
        head = architecture.dim // architecture.heads
        rates = architecture.base ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
        angles = (torch.arange(architecture.length, dtype=torch.float64)[:, None] * rates).float()
    if architecture.positions == "alibi":
        slopes = torch.tensor(_slopes(architecture.heads))
    return AttentionPositions(architecture, angles.to(device), slopes.to(device))


def _slopes(heads: int) -> list[float]:
    """Return ALiBi's slopes (Press et al., 2022): a geometric sequence from 2^(-8/heads) on.

    If the number of heads is no power of two: the sequence of the next lower power, then every second slope of the next
    higher power.
    """
    lower = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * (i + 1) / lower) for i in range(lower)]
    return slopes + [2.0 ** (-8 * (i + 1) / (2 * lower)) for i in range(0, 2 * lower, 2)][: heads - lower]


def relative_buckets(distance: Tensor, both_ways: bool) -> Tensor:
    """Return T5's bucket of each distance: one for each short distance, logarithmic for longer ones, one beyond 128."""
    count = RELATIVE_BUCKETS
    bucket = torch.zeros_like(distance)
    if both_ways:
        count //= 2
        bucket = bucket + (distance > 0) * count
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    near = count // 2
    far = near + (torch.log(distance.clamp(min=1).float() / near) / math.log(RELATIVE_FAR / near) * (count - near)).to(
        torch.int64
    ).clamp(max=count - near - 1)
    return bucket + torch.where(distance < near, distance, far)
