"""What seeds can show: the smallest difference, the seeds needed, and the sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from embinit.errors import EmbinitError
from embinit.statistics import Comparison, compare, detectable, floor_note, power_note, seeds_needed


def comparison(n: int, difference: float, std: float) -> Comparison:
    """A comparison with exactly these numbers, n even."""
    spread = std * math.sqrt((n - 1) / n)
    ours = {seed: 30 + difference + (spread if seed % 2 else -spread) for seed in range(n)}
    return compare(ours, dict.fromkeys(range(n), 30.0))


def test_known_answers() -> None:
    # t at 3 degrees of freedom: 3.18245 (97.5 %) and 0.97847 (80 %), over √4
    assert detectable(1, 4) == pytest.approx((3.18245 + 0.97847) / 2, abs=1e-5)
    assert detectable(0.288, 4) == pytest.approx(0.6, abs=0.001)
    assert seeds_needed(0.288, 0.27) == 11
    # The textbooks' rule for many: (1.96 + 0.8416)² (σ/d)² = 784.9 and a little for t
    assert seeds_needed(1, 0.1) == 787
    assert detectable(0, 5) == 0


@pytest.mark.parametrize(("n", "low", "high"), [(2, 0.72, 0.74), (3, 0.76, 0.775), (5, 0.785, 0.8), (10, 0.795, 0.805)])
def test_the_true_power_is_as_documented(n: int, low: float, high: float) -> None:
    # Power by the noncentral t: over quantiles of the sample's σ, the chance that the mean clears t's line.
    sigmas = np.sqrt(stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, n - 1) / (n - 1))
    line, effect = stats.t.ppf(0.975, n - 1), detectable(1, n) * math.sqrt(n)
    power = (stats.norm.sf(line * sigmas - effect) + stats.norm.cdf(-line * sigmas - effect)).mean()
    assert low < power < high


def test_the_paired_test_finds_a_detectable_difference_four_times_in_five() -> None:
    n = 10
    samples = np.random.default_rng(1).normal(detectable(2, n), 2, (1_500, n))
    baseline = dict.fromkeys(range(n), 0.0)
    found = [compare(dict(enumerate(sample)), baseline).t_p for sample in samples[:300].tolist()]
    assert np.mean([p is not None and p <= 0.05 for p in found]) == pytest.approx(0.8, abs=0.07)
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue <= 0.05).mean() == pytest.approx(0.8, abs=0.03)


@given(st.floats(0.01, 10), st.floats(0.01, 10), st.sampled_from([0.01, 0.05, 0.1]), st.sampled_from([0.5, 0.8, 0.95]))
def test_seeds_needed_is_the_first_number_that_sees_the_difference(
    std: float, difference: float, alpha: float, power: float
) -> None:
    n = seeds_needed(std, difference, alpha, power)
    assert n == seeds_needed(std, -difference, alpha, power)
    assert 2 / 2**n <= alpha
    if n <= 10_000:
        assert detectable(std, n, alpha, power) <= difference
        assert 2 / 2 ** (n - 1) > alpha or detectable(std, n - 1, alpha, power) > difference


def test_more_seeds_see_less_without_a_jump_where_normal_takes_over() -> None:
    seen = [detectable(1, n) for n in (2, 3, 4, 5, 10, 100, 9_999, 10_000, 10_001)]
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == pytest.approx(seen[-2], rel=3e-4)


def test_the_note_for_a_difference_that_these_seeds_cannot_see() -> None:
    assert (
        power_note(comparison(4, 0.27, 0.288))
        == "with 4 seeds a difference under 0.6 BLEU cannot be seen; to see the observed 0.27, use 11 seeds"
    )
    assert (
        power_note(comparison(4, -0.01, 2.88), "points")
        == "with 4 seeds a difference under 6 points cannot be seen; to see the observed 0.01, use more than 1,000 seeds"
    )
    assert (
        power_note(comparison(4, 0, 28.8), "points")
        == "with 4 seeds a difference under 60 points cannot be seen; the observed difference is zero"
    )


def test_the_note_for_a_difference_that_was_seen() -> None:
    assert (
        power_note(comparison(10, 1.4, 0.3))
        == "with 10 seeds a difference of 0.3 BLEU or more is seen 80 % of the time"
    )
    assert power_note(comparison(4, 5, 0.288)) == (
        "with 4 seeds a difference of 0.6 BLEU or more is seen 80 % of the time, "
        "by the t test: the permutation test needs 6 seeds"
    )


def test_notes_without_spread_promise_nothing() -> None:
    assert power_note(compare({0: 2.0}, {0: 1.0})).startswith("one seed has no spread")
    assert power_note(compare({0: 2.0, 1: 3.0}, {0: 1.0, 1: 2.0})).startswith("all 2 seeds differ by the same amount")


def test_the_note_on_the_floor() -> None:
    assert floor_note(comparison(4, 5, 0.1)) == (
        "with 4 seeds the permutation test's p is at least 0.125, so it cannot show significance"
    )
    assert floor_note(compare({0: 2.0}, {0: 1.0})).startswith("with 1 seed the permutation test's p is at least 1")
    assert floor_note(comparison(6, 5, 0.1)) == ""
    assert floor_note(comparison(6, 5, 0.1), alpha=0.01) != ""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: detectable(1, 1), "1 seeds; at least two"),
        (lambda: detectable(math.nan, 3), "σ nan"),
        (lambda: detectable(1, 3, alpha=0), "alpha 0"),
        (lambda: seeds_needed(1, 0), "difference 0"),
        (lambda: seeds_needed(-1, 1), "σ -1"),
        (lambda: seeds_needed(1, 1, power=1), "power 1"),
    ],
)
def test_what_has_no_answer_is_an_error(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(EmbinitError, match=words):
        call()
