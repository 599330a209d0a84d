"""Means of many small groups, with intervals from one σ that is pooled over all groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

from embinit.errors import EmbinitError
from embinit.statistics.mean_interval import MeanInterval
from embinit.statistics.student import t_quantile


def pooled(groups: Sequence[Sequence[float]], level: float = 0.95) -> list[MeanInterval]:
    """Return each group's mean with its interval by Student's t, from the σ pooled over all groups.

    The pooled σ has n - 1 degrees of freedom for each group of n values. It is right if all groups have the same spread,
    as seeds of one task have in similar settings. There is no interval if no group has two values.
    """
    if not all(groups):
        raise EmbinitError("a group has no values")
    means = [math.fsum(group) / len(group) for group in groups]
    freedom = sum(len(group) - 1 for group in groups)
    if freedom == 0:
        return [_estimate(mean, None, len(group), None) for mean, group in zip(means, groups, strict=True)]
    squares = math.fsum((value - mean) ** 2 for mean, group in zip(means, groups, strict=True) for value in group)
    std = math.sqrt(squares / freedom)
    reach = t_quantile((1 + level) / 2, freedom) * std
    return [
        _estimate(mean, std, len(group), reach / math.sqrt(len(group)))
        for mean, group in zip(means, groups, strict=True)
    ]


def _estimate(mean: float, std: float | None, n: int, reach: float | None) -> MeanInterval:
    if reach is None:
        return MeanInterval(mean=mean, std=std, n=n, low=None, high=None, method="")
    return MeanInterval(mean=mean, std=std, n=n, low=mean - reach, high=mean + reach, method="pooled")
