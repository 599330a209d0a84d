"""Pooling over blocks and data sets: the seed is the unit, so that blocks that share seeds add no certainty of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.statistics import compare, pool_blocks, pool_data_sets

SCORES = {1: 0.4, 2: 1.1, 3: -0.2, 4: 0.9, 5: 0.6}


def test_one_block_is_the_paired_t_test() -> None:
    ours, zero = pool_blocks([SCORES]), compare(SCORES, dict.fromkeys(SCORES, 0.0))
    assert ours.mean == pytest.approx(zero.mean)
    assert (ours.low, ours.high) == (pytest.approx(zero.low), pytest.approx(zero.high))
    assert ours.p == pytest.approx(zero.t_p)
    assert ours.std == pytest.approx(zero.std)
    assert (ours.n, ours.blocks, ours.freedom) == (5, 1, 4.0)


def test_a_copied_block_adds_no_certainty_and_an_independent_one_does() -> None:
    rng = np.random.default_rng(0)
    blocks = [{seed: float(rng.normal()) for seed in range(200)} for _ in range(2)]
    alone, copied, together = pool_blocks(blocks[:1]), pool_blocks([blocks[0]] * 4), pool_blocks(blocks)
    assert alone.error is not None
    assert copied.error == pytest.approx(alone.error)
    assert together.error == pytest.approx(alone.error / math.sqrt(2), rel=0.15)


def test_the_interval_holds_the_truth_as_often_as_it_says_when_blocks_share_seeds() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(1000):
        shared = rng.normal(size=5)
        blocks = [dict(enumerate((shared + rng.normal(size=5)).tolist())) for _ in range(4)]
        pooled = pool_blocks(blocks)
        assert pooled.low is not None and pooled.high is not None
        held += pooled.low <= 0 <= pooled.high
    assert 0.93 < held / 1000 < 0.97


def test_data_sets_weigh_the_same_whatever_their_seeds() -> None:
    few, many = {1: 0.0, 2: 2.0, 3: 1.0}, {seed: 3.0 + seed % 2 for seed in range(10)}
    pooled = pool_data_sets([[few], [many, many]])
    assert pooled.mean == pytest.approx((1.0 + 3.5) / 2)
    assert (pooled.n, pooled.blocks) == (13, 3)
    assert 2 <= pooled.freedom <= 11


def test_unequal_seeds_do_not_mix_up_the_blocks_means() -> None:
    pooled = pool_blocks([{1: 0.0, 2: 0.2, 3: 0.1}, {3: 10.0, 4: 10.2}])
    assert pooled.mean == pytest.approx((0.1 + 10.1) / 2)
    assert pooled.error is not None and pooled.error < 0.2
    assert pooled.freedom == 1


def test_without_a_spread_there_is_a_mean_and_no_interval() -> None:
    for pooled in (pool_blocks([{1: 0.5}]), pool_blocks([{1: 0.5, 2: 0.5}]), pool_data_sets([[{1: 0.5}], [SCORES]])):
        assert (pooled.low, pooled.high, pooled.p) == (None, None, None)
    assert pool_blocks([{1: 0.5}]).mean == 0.5


@pytest.mark.parametrize("blocks", [[], [{}], [{1: math.nan}]])
def test_what_cannot_be_pooled_is_an_error(blocks: list[dict[int, float]]) -> None:
    with pytest.raises(EmbinitError):
        pool_blocks(blocks)
    with pytest.raises(EmbinitError):
        pool_data_sets([blocks] if blocks else [])
