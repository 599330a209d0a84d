"""Mean differences over several blocks of one data set, and over several data sets, with the seed as the unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from embinit.errors import EmbinitError
from embinit.statistics.intervals import MeanInterval
from embinit.statistics.student import t_quantile, two_sided


@dataclass(frozen=True, kw_only=True)
class Clustered(MeanInterval):
    """A pooled mean difference over `n` seeds; `std` is that of one seed's pooled difference.

    Seeds of several data sets are counted once for each.
    """

    #: standard error of the mean; None if there is no spread between seeds
    error: float | None
    #: degrees of freedom of the t interval
    freedom: float
    #: p of the t test, two-sided; None if there is no spread
    p: float | None
    blocks: int


def pool_blocks(blocks: Sequence[Mapping[int, float]], level: float = 0.95) -> Clustered:
    """Return the mean over the blocks of one data set of their mean differences, with an interval clustered by seed.

    Blocks of one data set share the evaluation examples and, seed by seed, the order of the data and the other
    initial weights. They are not replications of each other: the seed is, and the number of blocks adds no degrees of
    freedom.

    Parameters
    ----------
    blocks
        One mapping a block, from a seed to the difference (ours minus the baseline) at that seed.
    level
        Of the interval.

    Returns
    -------
    Clustered
        Each block weighs the same. The degrees of freedom are the fewest seeds of a block less one.

    Raises
    ------
    EmbinitError
        If there is no block, a block has no seed, or a difference is not finite.

    Examples
    --------
    Two blocks with equal differences give the same error as one of them:

    >>> one, two = pool_blocks([{1: 0.0, 2: 1.0}]), pool_blocks([{1: 0.0, 2: 1.0}] * 2)
    >>> one.error == two.error, two.freedom
    (True, 1.0)
    """
    mean, variance, seeds = _variance(blocks)
    freedom = min(len(block) for block in blocks) - 1
    return _clustered(mean, variance, float(freedom), level, seeds, len(blocks))


def pool_data_sets(sets: Sequence[Sequence[Mapping[int, float]]], level: float = 0.95) -> Clustered:
    """Return the mean over data sets of their pooled differences; each data set weighs the same.

    Data sets are taken as independent, because a seed gives other batches to each of them. The degrees of freedom are
    Satterthwaite's. The interval speaks of further seeds on these data sets, not of further data sets.

    >>> pool_data_sets([[{1: 1.0, 2: 2.0, 3: 3.0}], [{1: 3.0, 2: 4.0, 3: 5.0}]]).mean
    3.0
    """
    if not sets:
        raise EmbinitError("no data set to pool; at least one is needed")
    parts = [_variance(blocks) for blocks in sets]
    freedoms = [min(len(block) for block in blocks) - 1 for blocks in sets]
    mean = math.fsum(part[0] for part in parts) / len(parts)
    seeds, blocks = sum(part[2] for part in parts), sum(len(blocks_of_set) for blocks_of_set in sets)
    if any(part[1] is None for part in parts):
        return _clustered(mean, None, 0.0, level, seeds, blocks)
    variances = [part[1] / len(parts) ** 2 for part in parts if part[1] is not None]
    variance = math.fsum(variances)
    squares = math.fsum(blocks_of_set**2 / freedom for blocks_of_set, freedom in zip(variances, freedoms, strict=True))
    freedom = variance**2 / squares if squares > 0 else float(sum(freedoms))
    return _clustered(mean, variance, freedom, level, seeds, blocks)


def _variance(blocks: Sequence[Mapping[int, float]]) -> tuple[float, float | None, int]:
    """Return the mean over blocks, its variance clustered by seed, and the number of distinct seeds."""
    if not blocks or not all(blocks):
        raise EmbinitError("a block has no seed; every block needs at least one")
    for block in blocks:
        for seed, value in block.items():
            if not math.isfinite(value):
                raise EmbinitError(f"seed {seed}: difference {value}; leave out runs that diverged")
    means = [math.fsum(block.values()) / len(block) for block in blocks]
    seeds = sorted(set().union(*blocks))
    mean = math.fsum(means) / len(means)
    if min(len(block) for block in blocks) < 2:
        return mean, None, len(seeds)
    # The contribution of each seed to the pooled mean, over all of its blocks.
    moves = [
        math.fsum(
            (block[seed] - center) / len(block) for block, center in zip(blocks, means, strict=True) if seed in block
        )
        / len(blocks)
        for seed in seeds
    ]
    return mean, math.fsum(move**2 for move in moves) * len(seeds) / (len(seeds) - 1), len(seeds)


def _clustered(mean: float, variance: float | None, freedom: float, level: float, seeds: int, blocks: int) -> Clustered:
    error = math.sqrt(variance) if variance else None
    reach = None if error is None else t_quantile((1 + level) / 2, freedom) * error
    return Clustered(
        mean=mean,
        std=None if error is None else error * math.sqrt(seeds),
        n=seeds,
        low=None if reach is None else mean - reach,
        high=None if reach is None else mean + reach,
        method="" if reach is None else "t",
        error=error,
        freedom=freedom,
        p=None if error is None else two_sided(mean / error, freedom),
        blocks=blocks,
    )
