"""A number with its interval: the one type that statistics, reports and research share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How an interval was made; "pooled" takes one σ from several groups, and "" means that there is no interval.
Method = Literal["t", "bootstrap", "pooled", ""]


@dataclass(frozen=True, kw_only=True)
class MeanInterval:
    """The mean of n values, with its spread and its interval.

    The interval is None for one value, and where no spread was seen.
    """

    mean: float
    #: sample σ with n - 1, or the pooled σ where `method` is "pooled"; None where nothing tells a spread
    std: float | None
    n: int
    low: float | None
    high: float | None
    method: Method

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the ends of the interval; None where there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)
