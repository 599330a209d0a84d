"""Paired comparisons: known answers, scipy's, and properties that hold for any scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from embinit.errors import EmbinitError
from embinit.statistics import Comparison, compare, holm
from embinit.statistics.comparison import floor

Scores = dict[int, float]
DECIMAL = st.integers(0, 10_000).map(lambda score: score / 100)
PAIRS = st.dictionaries(st.integers(0, 99), st.tuples(DECIMAL, DECIMAL), min_size=1, max_size=12).map(
    lambda pairs: ({seed: pair[0] for seed, pair in pairs.items()}, {seed: pair[1] for seed, pair in pairs.items()})
)


def drawn(n: int, effect: float = 0.3) -> tuple[Scores, Scores]:
    rng = np.random.default_rng(n)
    baseline = rng.normal(30, 1, n)
    ours = baseline + rng.normal(effect, 0.4, n)
    return dict(enumerate(ours.tolist())), dict(enumerate(baseline.tolist()))


def test_three_seeds_by_hand() -> None:
    found = compare({0: 31.1, 1: 32.2, 2: 33.3}, {0: 30.1, 1: 30.2, 2: 30.3, 9: 1.0})
    assert (found.mean, found.std) == (pytest.approx(2), pytest.approx(1))
    assert found.low == pytest.approx(2 - 4.302652729749464 / math.sqrt(3))
    # t = 2√3 at 2 degrees of freedom: p = 1 - t / √(2 + t²) = 1 - √(6/7)
    assert found.t_p == pytest.approx(1 - math.sqrt(6 / 7))
    assert (found.permutation_p, found.floor, found.n) == (0.25, 0.25, 3)
    assert found.improvement == 1
    assert found.dropped == (9,)


def test_ties_on_paper_are_ties() -> None:
    # ±0.1 ±0.2 ±0.3 is 0.6 in size twice, 0.4 twice, 0.2 twice, 0 twice, none of them exactly so in float64.
    baseline = {0: 30.0, 1: 31.0, 2: 32.0}
    assert compare({0: 30.1, 1: 31.2, 2: 32.3}, baseline).permutation_p == 2 / 8
    assert compare({0: 29.9, 1: 31.2, 2: 32.3}, baseline).permutation_p == 4 / 8
    assert compare({0: 30.1, 1: 30.8, 2: 32.3}, baseline).permutation_p == 6 / 8
    assert compare({0: 30.1, 1: 31.2, 2: 31.7}, baseline).permutation_p == 1


@pytest.mark.parametrize(("n", "least"), [(1, 1.0), (2, 0.5), (3, 0.25), (5, 0.0625), (6, 0.03125), (10, 2 / 1024)])
def test_the_floor_is_what_the_clearest_difference_gets(n: int, least: float) -> None:
    clearest = compare({seed: 40.0 + seed for seed in range(n)}, dict.fromkeys(range(n), 1.0))
    assert clearest.floor == clearest.permutation_p == least


def test_few_seeds_cannot_show_significance() -> None:
    can = [n for n in range(1, 12) if compare(*drawn(n)).can_show(0.05)]
    assert can == [6, 7, 8, 9, 10, 11]
    assert compare(*drawn(5)).can_show(0.0625)


def test_one_seed_claims_nothing() -> None:
    found = compare({4: 35.0}, {4: 30.0})
    assert (found.mean, found.n, found.permutation_p, found.floor) == (5, 1, 1, 1)
    assert (found.low, found.high, found.t_p, found.method) == (None, None, None, "")
    assert found.std is None
    assert not found.can_show(0.5)


def test_equal_differences_have_no_spread_and_claim_nothing_but_the_permutation_test() -> None:
    assert 30.1 - 30.0 != 90.1 - 90.0  # float64's, not the scores'
    found = compare({0: 30.1, 1: 90.1}, {0: 30.0, 1: 90.0})
    assert (found.std, found.t_p, found.low, found.permutation_p) == (0, None, None, 0.5)
    same = compare({0: 30.1, 1: 31.1}, {0: 30.1, 1: 31.1})
    assert (same.mean, same.t_p, same.permutation_p, same.improvement) == (0, None, 1, 0.5)
    nothing = compare({0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0})
    assert (nothing.mean, nothing.permutation_p) == (0, 1)


def test_improvement_counts_all_pairs_of_seeds_and_ties_half() -> None:
    # 3 beats 1 and 2 and ties with 3; 1 ties with 1; 2 beats 1 and ties with 2: 3 wins and 3 ties of 9.
    assert compare({0: 3.0, 1: 1.0, 2: 2.0}, {0: 1.0, 1: 2.0, 2: 3.0}).improvement == pytest.approx(4.5 / 9)
    assert compare({0: 3.0, 1: 1.0}, {0: 1.0, 1: 2.0}).improvement == (2 + 0.5) / 4


@pytest.mark.parametrize(
    ("ours", "baseline", "words"),
    [
        ({}, {}, "no seed in common"),
        ({0: 1.0}, {1: 1.0}, "no seed in common"),
        ({0: 1.0, 7: math.nan}, {0: 1.0}, "ours, seed 7: score nan"),
        ({0: 1.0}, {0: -math.inf}, "baseline, seed 0: score -inf"),
    ],
)
def test_what_cannot_be_compared_is_an_error(ours: Scores, baseline: Scores, words: str) -> None:
    with pytest.raises(EmbinitError, match=words):
        compare(ours, baseline)


@pytest.mark.parametrize("n", [2, 3, 5, 9, 10, 15])
def test_both_tests_and_the_interval_agree_with_scipy(n: int) -> None:
    ours, baseline = drawn(n)
    found = compare(ours, baseline)
    left, right = np.array(list(ours.values())), np.array(list(baseline.values()))
    t_test = stats.ttest_rel(left, right)
    assert found.t_p == pytest.approx(t_test.pvalue, rel=1e-9)
    if n < 10:
        assert (found.low, found.high) == pytest.approx(tuple(t_test.confidence_interval()), abs=1e-9)
    flips = stats.permutation_test(
        (left, right),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert found.permutation_p == pytest.approx(flips.pvalue, rel=1e-12)
    u = stats.mannwhitneyu(left, right).statistic
    assert found.improvement == pytest.approx(u / n**2)


def against_zero(differences: np.ndarray) -> Comparison:
    return compare(dict(enumerate(differences.tolist())), dict.fromkeys(range(len(differences)), 0.0))


def test_all_flips_to_twenty_seeds_then_drawn_ones_that_come_near() -> None:
    differences = np.round(np.random.default_rng(0).normal(0.15, 0.4, 20), 2)
    exact = against_zero(differences).permutation_p
    # A difference of zero doubles the flips and changes no sum, so 21 seeds have the same p.
    more = np.append(differences, 0.0)
    drawn_p = against_zero(more).permutation_p
    assert 0.02 < exact < 0.5
    assert drawn_p != exact
    assert drawn_p == pytest.approx(exact, abs=4 * math.sqrt(exact / 100_000))
    assert drawn_p == against_zero(more[::-1]).permutation_p == against_zero(-more).permutation_p
    assert floor(20) == 2.0**-19
    assert against_zero(np.full(40, 0.25)).permutation_p == floor(40) == 1 / 100_001


def mirrored(found: Comparison, other: Comparison) -> bool:
    """Whether one comparison is the other with the sides exchanged."""
    same = (found.n, found.permutation_p, found.floor, found.method) == (
        other.n,
        other.permutation_p,
        other.floor,
        other.method,
    )
    numbers = [
        (found.mean, -other.mean),
        (found.improvement, 1 - other.improvement),
        (found.std, other.std),
    ]
    if found.low is not None:
        assert other.low is not None and other.high is not None and found.t_p is not None
        numbers += [(found.low, -other.high), (found.t_p, other.t_p or math.nan)]
    return same and all(a == pytest.approx(b, abs=1e-9, nan_ok=True) for a, b in numbers)


@settings(max_examples=80, deadline=None)
@given(PAIRS)
def test_exchanged_sides_give_the_mirror_image(pair: tuple[Scores, Scores]) -> None:
    ours, baseline = pair
    assert mirrored(compare(ours, baseline), compare(baseline, ours))


@pytest.mark.parametrize("n", [9, 10, 25])
def test_exchanged_sides_give_the_mirror_image_by_every_method(n: int) -> None:
    ours, baseline = drawn(n)
    assert mirrored(compare(ours, baseline), compare(baseline, ours))


@settings(max_examples=80, deadline=None)
@given(PAIRS)
def test_p_lies_between_the_floor_and_one(pair: tuple[Scores, Scores]) -> None:
    found = compare(*pair)
    assert found.floor == 2 / 2**found.n
    assert found.floor <= found.permutation_p <= 1
    assert found.t_p is None or 0 <= found.t_p <= 1
    assert 0 <= found.improvement <= 1


@settings(max_examples=80, deadline=None)
@given(PAIRS, st.integers(-1_000, 1_000), st.integers(1, 20))
def test_tests_do_not_depend_on_the_unit(pair: tuple[Scores, Scores], shift: int, scale: int) -> None:
    ours, baseline = pair
    found = compare(ours, baseline)
    moved = compare(*({seed: (shift + scale * score) / 10 for seed, score in side.items()} for side in pair))
    assert moved.mean == pytest.approx(scale * found.mean / 10, abs=1e-8)
    assert (moved.std is None) == (found.std is None)
    assert found.std is None or moved.std == pytest.approx(scale * found.std / 10, abs=1e-8)
    assert moved.permutation_p == found.permutation_p
    assert (moved.t_p is None) == (found.t_p is None)
    assert found.t_p is None or moved.t_p == pytest.approx(found.t_p, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(PAIRS, DECIMAL)
def test_a_seed_of_one_side_alone_is_named_and_changes_nothing(pair: tuple[Scores, Scores], score: float) -> None:
    ours, baseline = pair
    plain, more = compare(ours, baseline), compare(ours | {100: score}, baseline | {200: score})
    assert more.dropped == (100, 200)
    assert plain.dropped == ()
    assert (more.mean, more.permutation_p, more.improvement) == (
        plain.mean,
        plain.permutation_p,
        plain.improvement,
    )


def test_under_no_difference_the_permutation_test_is_wrong_no_more_often_than_it_says() -> None:
    samples = np.random.default_rng(5).standard_t(3, (2_000, 8))
    p = np.array([against_zero(sample).permutation_p for sample in samples])
    for alpha in (0.01, 0.05, 0.2):
        assert (p <= alpha).mean() == pytest.approx(alpha, abs=3 * math.sqrt(alpha / 2_000))


def test_holm_by_hand() -> None:
    # 4 × 0.005, 3 × 0.01, then 2 × 0.03 and never below: 0.04 × 1 is lifted to 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_is_no_smaller_than_the_raw_p_and_no_larger_than_bonferroni(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(raw <= new <= min(1, len(p) * raw) + 1e-15 for raw, new in zip(p, adjusted, strict=True))
    assert all(adjusted[i] <= adjusted[j] for i in range(len(p)) for j in range(len(p)) if p[i] <= p[j])
    assert min(adjusted) == pytest.approx(min(1, len(p) * min(p)))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_holm_takes_probabilities(p: float) -> None:
    with pytest.raises(EmbinitError, match="p-value"):
        holm([0.5, p])
