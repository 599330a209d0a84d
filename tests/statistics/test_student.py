"""Student's t: known answers, and scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from embinit.errors import EmbinitError
from embinit.statistics.student import t_cdf, t_quantile, two_sided

DEGREES = [*range(1, 31), 49, 99, 250, 1_000, 3_333, 10_000]


def test_known_answers() -> None:
    assert t_cdf(1, 1) == pytest.approx(0.75, abs=1e-15)  # Cauchy: 1/2 + arctan(1)/π
    assert t_cdf(math.sqrt(2), 2) == pytest.approx(0.5 + math.sqrt(2) / 4, abs=1e-15)  # 1/2 + t / (2 √(2 + t²))
    assert t_quantile(0.975, 1) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-13)
    assert round(t_quantile(0.975, 2), 3) == 4.303  # any table
    assert round(t_quantile(0.975, 9), 3) == 2.262
    assert t_cdf(0, 7) == 0.5
    assert t_quantile(0.5, 7) == 0


@pytest.mark.parametrize("df", DEGREES)
def test_cdf_tail_and_quantile_agree_with_scipy_to_ten_digits(df: int) -> None:
    # Nearer to zero scipy's own cdf (at 1 degree) and quantile are off by 1e-9; that stretch has a test of its own.
    points = np.concatenate([-np.geomspace(1e-3, 1e6, 40), [0.0], np.geomspace(1e-3, 1e6, 40)])
    np.testing.assert_allclose([t_cdf(t, df) for t in points.tolist()], stats.t.cdf(points, df), rtol=0, atol=1e-10)
    tails = 2 * stats.t.sf(np.abs(points), df)
    seen = tails > 1e-280
    np.testing.assert_allclose([two_sided(t, df) for t in points[seen].tolist()], tails[seen], rtol=1e-10)
    shares = [1e-9, 1e-4, 0.005, 0.025, 0.2, 0.45, 0.55, 0.8, 0.975, 0.995, 0.9999]
    np.testing.assert_allclose([t_quantile(p, df) for p in shares], stats.t.ppf(shares, df), rtol=1e-10)


@given(st.floats(-1e9, 1e9))
def test_one_and_two_degrees_of_freedom_by_their_closed_forms(t: float) -> None:
    assert t_cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-14)
    assert t_cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-14)


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 10_000))
def test_the_quantile_inverts_the_cdf(p: float, df: int) -> None:
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, abs=1e-12)


def test_far_out_there_is_no_mass() -> None:
    assert t_cdf(math.inf, 3) == 1
    assert t_cdf(-1e200, 3) == 0


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_a_probability_outside_zero_and_one_is_an_error(p: float) -> None:
    with pytest.raises(EmbinitError, match="between 0 and 1"):
        t_quantile(p, 3)


def test_degrees_of_freedom_are_positive() -> None:
    with pytest.raises(EmbinitError, match="0 degrees of freedom"):
        t_cdf(1, 0)
