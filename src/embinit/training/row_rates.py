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


def row_factors(member: Member, training: Training, place: int, rows: int) -> Factors:
    """Return the factor of each row of one side: `embedding_rate`, times `found_rate` if the source had the row."""
    whole, rate = training.embedding_rate, training.found_rate
    found = None if member.found is None else member.found[place]
    return np.full(rows, whole) if found is None else np.where(found, whole * rate, whole)


def embedding_factors(
    stack: Stack, trainings: Sequence[Training], members: Sequence[Member]
) -> dict[str, float | Tensor]:
    """Return the factor on the rate of each embedding, by the name of its weight.

    It is a number if all rows of all members share it, otherwise a float64 tensor (members, rows, 1) on the stack's device.
    """
    factors: dict[str, float | Tensor] = {}
    for place, side in enumerate(stack.sides):
        rows = stack.architecture.vocabularies[place]
        stacked = np.full((stack.members, rows), [[training.embedding_rate] for training in trainings])
        for own, member, training in zip(stacked, members, trainings, strict=bool(members)):
            own[:] = row_factors(member, training, place, rows)
        first = float(stacked.flat[0])
        alike = bool((stacked == first).all())
        factors[f"{side}.embedding"] = first if alike else torch.from_numpy(stacked)[:, :, None].to(stack.seeds.device)
    return factors
