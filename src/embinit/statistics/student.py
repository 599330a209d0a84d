"""Student's t distribution, from the incomplete beta function."""

from __future__ import annotations

import math
from functools import lru_cache

from embinit.errors import EmbinitError

#: Stands for a zero denominator in the continued fraction.
_TINY = 1e-300
_STEPS = 10_000


def t_cdf(t: float, df: float) -> float:
    """Return P(T ≤ t) at `df` degrees of freedom."""
    tail = _upper_tail(abs(t), df)
    return tail if t < 0 else 1 - tail


def two_sided(t: float, df: float) -> float:
    """Return P(|T| ≥ |t|), the p-value of a two-sided t test."""
    return 2 * _upper_tail(abs(t), df)


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """Return the t with P(T ≤ t) = p: Newton's method, kept between bounds."""
    if not 0 < p < 1:
        raise EmbinitError(f"probability {p}: give a value between 0 and 1")
    if p == 0.5:
        return 0.0
    wanted = min(p, 1 - p)
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > wanted:
        low, high = high, 2 * high
    t = (low + high) / 2
    for _ in range(200):
        excess = _upper_tail(t, df) - wanted
        low, high = (t, high) if excess > 0 else (low, t)
        following = t + excess / _density(t, df)
        if not low <= following <= high:
            following = (low + high) / 2
        if abs(following - t) <= 1e-15 * t:
            break
        t = following
    return t if p > 0.5 else -t


def _upper_tail(t: float, df: float) -> float:
    """Return P(T ≥ t) for t ≥ 0."""
    if not df > 0:
        raise EmbinitError(f"{df} degrees of freedom: give more than 0")
    ratio = t * t / df
    # Compute both x and 1 - x directly: a difference from 1 would lose the digits of the smaller one.
    x, y = 1 / (1 + ratio), ratio / (1 + ratio) if ratio < 1 else 1 / (1 + 1 / ratio)
    return 0.5 * _incomplete_beta(x, y, df / 2, 0.5, _log_beta(df / 2))


def _density(t: float, df: float) -> float:
    """Return the density at t."""
    return math.exp(-_log_beta(df / 2) - 0.5 * math.log(df) - (df + 1) / 2 * math.log1p(t * t / df))


def _log_beta(a: float) -> float:
    """Return log B(a, 1/2); for large a, log Γ(a + 1/2) - log Γ(a) comes from its series, which loses no digits."""
    if a < 20:
        return math.lgamma(a) + 0.5 * math.log(math.pi) - math.lgamma(a + 0.5)
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return 0.5 * math.log(math.pi / a) - series


def _incomplete_beta(x: float, y: float, a: float, b: float, log_beta: float) -> float:
    """Return the regularized I_x(a, b), with y = 1 - x, on the side of its mean on which the fraction converges fast."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(y, x, b, a, log_beta)
    if x == 0:
        return 0.0
    return math.exp(a * math.log(x) + b * math.log(y) - log_beta) / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """Return 1 + d₁/(1 + d₂/(1 + …)) of DLMF 8.17.22, by Lentz's method."""
    value, above, below = 1.0, 1.0, 0.0
    for step in range(1, _STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        above = 1 + term / above or _TINY
        below = 1 / (1 + term * below or _TINY)
        value *= above * below
        if abs(above * below - 1) < 1e-16:
            break
    return value
