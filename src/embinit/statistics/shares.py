"""Intervals of shares with few cases."""

from __future__ import annotations

import math
from statistics import NormalDist

from embinit.errors import EmbinitError


def wilson(count: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for a share. It stays between 0 and 1, and has a width even for none or all of n.

    >>> tuple(round(bound, 3) for bound in wilson(8, 10))
    (0.49, 0.943)
    """
    if not 0 <= count <= n or n == 0:
        raise EmbinitError(f"{count} of {n} is no share; give 0 ≤ count ≤ n and n ≥ 1")
    if not 0 < level < 1:
        raise EmbinitError(f"level {level}: give a value between 0 and 1, for example 0.95")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, more = count / n, z * z / n
    middle = (share + more / 2) / (1 + more)
    margin = z / (1 + more) * math.sqrt(share * (1 - share) / n + more / (4 * n))
    return max(0.0, middle - margin), min(1.0, middle + margin)
