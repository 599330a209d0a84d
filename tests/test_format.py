"""Numbers as text."""

from __future__ import annotations

import pytest

from embinit.format import interval


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.9, 1.9, "[+0.9, +1.9]"),
        (0.04, 1.2, "[+0.04, +1.2]"),
        (-1.2, -0.003, "[−1.2, −0.003]"),
        (-0.02, 0.02, "[−0.02, +0.02]"),
        (0.0, 1.0, "[0.0, +1.0]"),
        (-1e-15, 1.0, "[0.0, +1.0]"),
    ],
)
def test_a_bound_of_an_interval_shows_its_sign(low: float, high: float, text: str) -> None:
    assert interval(low, high, 1, sign=True) == text


def test_there_is_no_interval_without_both_bounds() -> None:
    assert interval(None, 1.0, 1) == "–"
