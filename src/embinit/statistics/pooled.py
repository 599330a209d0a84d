"""Means of many small groups with intervals from one σ: where all vary alike, two seeds each tell enough together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from embinit.errors import EmbinitError
from embinit.statistics.student import t_quantile


@dataclass(frozen=True)
class Pooled:
    """A group's mean; the interval is None where no group has two values."""

    mean: float
    low: float | None
    high: float | None
    n: int


def pooled(groups: Sequence[Sequence[float]], level: float = 0.95) -> list[Pooled]:
    """Return each group's mean, with its interval by Student's t from the σ within all groups.

    That σ has as many degrees of freedom as there are values beyond the first of each group. It is right where all groups
    vary alike, as the seeds of one task do from one setting to the next.
    """
    if not all(groups):
        raise EmbinitError("a group has no values")
    means = [math.fsum(group) / len(group) for group in groups]
    freedom = sum(len(group) - 1 for group in groups)
    if freedom == 0:
        return [Pooled(mean, None, None, len(group)) for mean, group in zip(means, groups, strict=True)]
    squares = math.fsum((value - mean) ** 2 for mean, group in zip(means, groups, strict=True) for value in group)
    reach = t_quantile((1 + level) / 2, freedom) * math.sqrt(squares / freedom)
    return [
        Pooled(mean, mean - reach / math.sqrt(len(group)), mean + reach / math.sqrt(len(group)), len(group))
        for mean, group in zip(means, groups, strict=True)
    ]
