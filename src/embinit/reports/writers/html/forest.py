"""Differences with their intervals on one axis, drawn into a table's column."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.format import signed
from embinit.html import Html, element
from embinit.reports.scores import Difference, Metric

WIDTH, HEIGHT, _EDGE = 132, 26, 18


class Forest:
    """An axis that all differences of a block share, zero included."""

    def __init__(self, differences: Sequence[Difference], metric: Metric) -> None:
        bounds = [
            value
            for difference in differences
            for value in (difference.mean, difference.low, difference.high)
            if value is not None
        ]
        self._low, self._high = min([0.0, *bounds]), max([0.0, *bounds])
        if self._low == self._high:
            self._low, self._high = -1.0, 1.0
        self._metric = metric

    def _x(self, value: float) -> str:
        share = (value - self._low) / (self._high - self._low)
        return f"{_EDGE + share * (WIDTH - 2 * _EDGE):.1f}"

    def axis(self) -> Html:
        """Return the axis with labels at its ends and at zero, for the column's head."""
        names = [self._low, 0.0, self._high]
        near = 0.3 * (self._high - self._low)
        labels = [value for value in names if value == 0 or abs(value) > near]
        return element(
            "svg",
            *(self._tick(value) for value in labels),
            class_="forest",
            width=WIDTH,
            height=16,
            viewBox=f"0 0 {WIDTH} 16",
            aria_hidden="true",
        )

    def _tick(self, value: float) -> Html:
        return element("text", signed(value, self._metric.digits), x=self._x(value), y=12, text_anchor="middle")

    def line(self, difference: Difference | None) -> Html:
        """Return one difference as a dot on its interval, with a line at zero."""
        zero = element("line", x1=self._x(0), x2=self._x(0), y1=0, y2=HEIGHT, class_="zero")
        drawn: list[Html] = []
        if difference is not None:
            kind = difference.verdict or "open"
            if difference.low is not None and difference.high is not None:
                middle = HEIGHT // 2
                drawn.append(
                    element(
                        "line",
                        x1=self._x(difference.low),
                        x2=self._x(difference.high),
                        y1=middle,
                        y2=middle,
                        class_=f"span {kind}",
                    )
                )
            drawn.append(element("circle", cx=self._x(difference.mean), cy=HEIGHT // 2, r=4, class_=f"dot {kind}"))
        return element(
            "svg",
            zero,
            *drawn,
            class_="forest",
            width=WIDTH,
            height=HEIGHT,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            aria_hidden="true",
        )
