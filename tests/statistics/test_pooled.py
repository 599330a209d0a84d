"""Means of many small groups with one σ."""

from __future__ import annotations

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.statistics import mean_interval, pooled


def test_one_group_has_students_interval() -> None:
    (found,) = pooled([[1.0, 2.0, 4.0]])
    alone = mean_interval([1.0, 2.0, 4.0])
    assert (found.mean, found.low, found.high) == pytest.approx((alone.mean, alone.low, alone.high))


def test_sigma_is_that_within_groups_however_far_they_are_apart() -> None:
    near, far = (pooled([[0.0, 2.0], [away, away + 2.0], [away, away + 2.0]]) for away in (0.0, 1e3))
    assert far[0].low == pytest.approx(near[0].low)
    # σ² = (2 + 2 + 2) / 3, and t at 0.975 with 3 degrees of freedom is 3.18245
    assert near[0].high == pytest.approx(1 + 3.182446 * np.sqrt(2) / np.sqrt(2))


def test_larger_groups_have_smaller_intervals() -> None:
    small, large = pooled([[0.0, 2.0], [0.0, 2.0] * 4])
    assert small.high is not None and large.high is not None
    assert (small.high - 1) == pytest.approx(2 * (large.high - 1))


def test_groups_of_one_have_no_interval_alone_but_have_one_among_others() -> None:
    assert pooled([[3.0], [4.0]])[0].low is None
    alone, _ = pooled([[3.0], [4.0, 5.0]])
    assert alone.low is not None and alone.low < 3.0


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(EmbinitError, match="no values"):
        pooled([[1.0], []])


def test_it_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    within = 0
    for _ in range(400):
        groups = random.normal(size=(8, 2)) + np.arange(8)[:, None] * 10
        within += sum(one.low <= 10 * place <= one.high for place, one in enumerate(pooled(groups.tolist())))  # type: ignore[operator]
    assert within / 3200 == pytest.approx(0.95, abs=0.015)
