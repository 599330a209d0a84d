"""Two starts over the same seeds: their difference and its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embinit.errors import EmbinitError
from embinit.seeds import stream
from embinit.statistics.intervals import MeanInterval, Values, mean_interval
from embinit.statistics.student import two_sided

#: Up to this number of seeds, all flips of signs are tried.
EXACT_TO = 20
_FLIPS = 100_000
_BATCH = 10_000
#: Differences below this share of the largest score are rounding errors: 31.1 - 31.0 equals 30.1 - 30.0.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Comparison(MeanInterval):
    """Ours minus the baseline over the seeds that both have: the mean difference and its tests.

    `std` is that of the differences. For one seed, `std`, the interval and `t_p` are None.
    """

    #: p of the paired t test, two-sided; None if there is no spread
    t_p: float | None
    #: p of the sign-flip permutation test, two-sided
    permutation_p: float
    #: the smallest p that the permutation test can give with this number of seeds
    floor: float
    #: share of all pairs (ours, baseline) in which ours is better, ties counting half (Agarwal et al. 2021)
    improvement: float
    #: seeds that only one side has; they are left out
    dropped: tuple[int, ...]

    def can_show(self, alpha: float = 0.05) -> bool:
        """Return whether the permutation test can show any difference with this number of seeds."""
        return self.floor <= alpha


def compare(ours: Mapping[int, float], baseline: Mapping[int, float], level: float = 0.95) -> Comparison:
    """Return how scores differ from the baseline's, seed by seed; each side is seed -> score.

    >>> compare({0: 3.0, 1: 4.0, 2: 5.0}, {0: 2.0, 1: 2.0, 2: 2.0, 3: 9.0}).mean
    2.0
    """
    for name, scores in (("ours", ours), ("baseline", baseline)):
        for seed, score in scores.items():
            if not math.isfinite(score):
                raise EmbinitError(f"{name}, seed {seed}: score {score}; leave out runs that diverged")
    seeds = sorted(ours.keys() & baseline.keys())
    if not seeds:
        raise EmbinitError("the two sides have no seed in common; a paired comparison needs at least one")
    left, right = (np.array([side[seed] for seed in seeds], dtype=np.float64) for side in (ours, baseline))
    differences = left - right
    rounding = _ROUNDING * float(max(np.abs(left).max(), np.abs(right).max()))
    if np.ptp(differences) <= rounding:
        differences = np.full_like(differences, differences[0])
    summary = mean_interval(differences, level)
    n = summary.n
    t_p = two_sided(summary.mean / (summary.std / math.sqrt(n)), n - 1) if summary.std else None
    above, below = np.greater.outer(left, right).mean(), np.less.outer(left, right).mean()
    return Comparison(
        **vars(summary),
        t_p=t_p,
        permutation_p=_sign_flips(differences, rounding),
        floor=floor(n),
        improvement=float(0.5 + (above - below) / 2),
        dropped=tuple(sorted(ours.keys() ^ baseline.keys())),
    )


def floor(n: int) -> float:
    """Return the smallest p of the permutation test: the true signs and all of them flipped, out of 2ⁿ."""
    return 2.0 ** (1 - n) if n <= EXACT_TO else 1 / (_FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for multiple tests, in the given order (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    for p in p_values:
        if not 0 <= p <= 1:
            raise EmbinitError(f"p-value {p}: give a value from 0 to 1")
    adjusted, least = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def _sign_flips(differences: Values, rounding: float) -> float:
    """Return the share of sign flips whose sum is as far from zero as the true one, over all flips up to 20 seeds."""
    sizes, observed = np.sort(np.abs(differences)), abs(float(differences.sum())) - rounding
    if len(sizes) <= EXACT_TO:
        sums = sizes[:1]  # the first sign is fixed, because flipping all signs changes nothing
        for size in sizes[1:]:
            sums = np.concatenate([sums + size, sums - size])
        return float((np.abs(sums) >= observed).mean())
    rng = stream(0, "sign flips")
    extreme = 1  # the true signs are one of the draws (Phipson and Smyth 2010)
    for _ in range(0, _FLIPS, _BATCH):
        signs = 2.0 * rng.integers(0, 2, (_BATCH, len(sizes))) - 1
        extreme += int(np.count_nonzero(np.abs(signs @ sizes) >= observed))
    return extreme / (_FLIPS + 1)
