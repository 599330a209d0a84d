"""Learning rates of embedding rows: one factor for each member, side and row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embinit.models.model import Member, Stack
from embinit.training.options import Training

#: Factors are float64, so that a rate times a factor is rounded to float32 once, whether it applies to a row or to a weight.
Factors = npt.NDArray[np.float64]


def own_rates(member: Member, training: Training) -> tuple[float, float]:
    """Return a member's `embedding_rate` and `found_rate`: its own values, or else the training's."""
    whole = training.embedding_rate if member.embedding_rate is None else member.embedding_rate
    found = training.found_rate if member.found_rate is None else member.found_rate
    return whole, found


def row_factors(member: Member, training: Training, place: int, rows: int) -> Factors:
    """Return the factor of each row of one side: `embedding_rate`, times `found_rate` where the source had the row."""
    whole, rate = own_rates(member, training)
    found = None if member.found is None else member.found[place]
    return np.full(rows, whole) if found is None else np.where(found, whole * rate, whole)


def embedding_factors(stack: Stack, training: Training, members: Sequence[Member]) -> dict[str, float | Tensor]:
    """Return what multiplies the rate of each embedding, by the name of its weight.

    A number where all rows of all members share it, else a float64 tensor (members, rows, 1) on the stack's device.
    """
    factors: dict[str, float | Tensor] = {}
    for place, side in enumerate(stack.sides):
        rows = stack.architecture.vocabularies[place]
        each = [row_factors(member, training, place, rows) for member in members]
        stacked = np.stack(each) if each else np.full((1, rows), training.embedding_rate)
        first = float(stacked.flat[0])
        alike = bool((stacked == first).all())
        factors[f"{side}.embedding"] = first if alike else torch.from_numpy(stacked)[:, :, None].to(stack.seeds.device)
    return factors
