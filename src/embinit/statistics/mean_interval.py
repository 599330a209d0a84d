"""A mean with its interval: the type that statistics, reports and research share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How an interval was computed; "pooled" takes one σ from several groups, and "" is no interval.
Method = Literal["t", "bootstrap", "pooled", ""]


@dataclass(frozen=True, kw_only=True)
class MeanInterval:
    """The mean of n values, with its spread and its interval.

    The interval is None for one value, and for values without spread.
    """

    mean: float
    #: sample σ with n - 1, or the pooled σ if `method` is "pooled"; None if it is unknown
    std: float | None
    n: int
    low: float | None
    high: float | None
    method: Method

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the ends of the interval; None if there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)
