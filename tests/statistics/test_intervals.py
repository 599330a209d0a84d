"""Cells: mean, σ and interval, and how often the interval holds the truth."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from embinit.errors import EmbinitError
from embinit.statistics import MeanInterval, mean_interval
from embinit.statistics.intervals import bootstrap

# Scores as they are reported: two decimals.
SCORES = st.lists(st.integers(0, 10_000).map(lambda score: score / 100), min_size=2, max_size=15)


def test_a_cell_of_three_by_hand() -> None:
    found = mean_interval([3.0, 1.0, 2.0])
    margin = 4.302652729749464 / math.sqrt(3)
    assert (found.mean, found.std, found.n, found.method) == (2, 1, 3, "t")
    assert (found.low, found.high) == (pytest.approx(2 - margin, abs=1e-12), pytest.approx(2 + margin, abs=1e-12))


def test_one_score_has_neither_spread_nor_interval() -> None:
    found = mean_interval([30.5])
    assert found.std is None
    assert (found.mean, found.n, found.low, found.high, found.method) == (30.5, 1, None, None, "")


@pytest.mark.parametrize("n", [2, 3, 12])
def test_equal_scores_have_no_spread_and_claim_no_interval(n: int) -> None:
    assert mean_interval([0.1] * n) == MeanInterval(mean=0.1, std=0.0, n=n, low=None, high=None, method="")


@pytest.mark.parametrize(
    ("scores", "level", "words"),
    [
        ([], 0.95, "no scores"),
        ([1.0, math.nan, math.inf], 0.95, "2 of 3 scores are not finite"),
        ([1.0, 2.0], 95, "level 95"),
    ],
)
def test_what_cannot_be_a_cell_is_an_error(scores: list[float], level: float, words: str) -> None:
    with pytest.raises(EmbinitError, match=words):
        mean_interval(scores, level)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", range(2, 10))
def test_below_ten_the_interval_is_scipys_t_interval(n: int, level: float) -> None:
    scores = np.random.default_rng(n).normal(30, 0.5, n)
    found = mean_interval(scores.tolist(), level)
    expected = stats.t.interval(level, n - 1, loc=scores.mean(), scale=stats.sem(scores))
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-10)
    assert found.std == pytest.approx(scores.std(ddof=1), rel=1e-12)


@pytest.mark.parametrize("n", [10, 20])
def test_from_ten_the_interval_is_scipys_percentile_bootstrap_at_the_expanded_level(n: int) -> None:
    scores = np.random.default_rng(n).exponential(1, n)
    found = mean_interval(scores.tolist())
    expanded = 1 - 2 * NormalDist().cdf(-math.sqrt(n / (n - 1)) * float(stats.t.ppf(0.975, n - 1)))
    expected = stats.bootstrap(
        (scores,), np.mean, method="percentile", confidence_level=expanded, n_resamples=20_000, rng=1
    ).confidence_interval
    assert found.method == "bootstrap"
    assert expanded > 0.96
    tolerance = 0.12 * scores.std(ddof=1) / math.sqrt(n)
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=tolerance)


@settings(max_examples=60, deadline=None)
@given(SCORES, st.randoms())
def test_the_order_of_scores_and_the_global_generator_do_not_matter(
    scores: list[float], random: np.random.Generator
) -> None:
    before = mean_interval(scores)
    random.shuffle(scores)
    np.random.seed(len(scores))  # noqa: NPY002
    assert mean_interval(scores) == before


@settings(max_examples=60, deadline=None)
@given(SCORES, st.floats(-50, 50), st.floats(0.1, 10))
def test_a_cell_moves_and_stretches_with_its_scores(scores: list[float], shift: float, scale: float) -> None:
    plain, moved = mean_interval(scores), mean_interval([scale * score + shift for score in scores])
    assert moved.mean == pytest.approx(scale * plain.mean + shift, abs=1e-9)
    assert moved.std == pytest.approx(scale * plain.std, abs=1e-9)
    if plain.low is not None and plain.high is not None:
        assert (moved.low, moved.high) == pytest.approx(
            (scale * plain.low + shift, scale * plain.high + shift), abs=1e-9
        )


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_negated_scores_have_the_negated_interval(scores: list[float]) -> None:
    plain, negated = mean_interval(scores), mean_interval([-score for score in scores])
    if plain.low is None or plain.high is None:
        assert negated.method == ""
        return
    assert plain.low <= plain.mean <= plain.high
    assert (negated.low, negated.high) == pytest.approx((-plain.high, -plain.low), abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_a_higher_level_is_wider(scores: list[float]) -> None:
    narrow, wide = mean_interval(scores, 0.8), mean_interval(scores, 0.99)
    if narrow.low is not None and narrow.high is not None and wide.low is not None and wide.high is not None:
        assert wide.low <= narrow.low <= narrow.high <= wide.high


def share(covered: list[bool]) -> float:
    return sum(covered) / len(covered)


def covers(interval: tuple[float | None, float | None]) -> bool:
    low, high = interval
    assert low is not None and high is not None
    return low <= 0 <= high


def test_three_seeds_the_t_interval_covers_as_promised_and_the_percentile_bootstrap_does_not() -> None:
    samples = np.random.default_rng(7).standard_normal((1_500, 3))
    cells = [mean_interval(sample) for sample in samples.tolist()]
    by_t = share([covers((found.low, found.high)) for found in cells])
    # At three, to expand the percentiles does not help: beyond 2.5 % there is only the sample's own range.
    by_bootstrap = share([covers(bootstrap(np.sort(sample), 0.95)) for sample in samples[:500]])
    assert by_t == pytest.approx(0.95, abs=0.02)
    assert by_bootstrap == pytest.approx(0.73, abs=0.05)


def test_ten_seeds_the_interval_covers_nearly_as_promised_and_plain_percentiles_less() -> None:
    samples = np.random.default_rng(8).standard_normal((1_000, 10))
    ours = share([covers((found.low, found.high)) for found in map(mean_interval, samples.tolist())])
    places = np.random.default_rng(9).integers(0, 10, (1_000, 10))
    means = samples[:, places].mean(axis=2)
    plain = share([covers(tuple(np.quantile(row, [0.025, 0.975]).tolist())) for row in means])
    assert ours == pytest.approx(0.94, abs=0.02)
    assert plain < ours - 0.02
