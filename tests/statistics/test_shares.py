"""Wilson's interval for a share."""

from __future__ import annotations

import pytest
from scipy import stats

from embinit.errors import EmbinitError
from embinit.statistics import wilson


@pytest.mark.parametrize("n", [1, 7, 16])
def test_it_is_scipys(n: int) -> None:
    for count in range(n + 1):
        theirs = stats.binomtest(count, n).proportion_ci(0.9, method="wilson")
        assert wilson(count, n, 0.9) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_all_and_none_leave_room_on_one_side_alone() -> None:
    assert wilson(5, 5)[1] == 1
    assert wilson(0, 5)[0] == 0
    assert wilson(5, 5)[0] == pytest.approx(1 - wilson(0, 5)[1])


@pytest.mark.parametrize(("count", "n"), [(0, 0), (3, 2), (-1, 2)])
def test_no_share_is_said(count: int, n: int) -> None:
    with pytest.raises(EmbinitError, match="is no share"):
        wilson(count, n)
