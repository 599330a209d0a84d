"""The verdict's lines adjusted on one half of the cells, and what that is worth on the other half.

It reports only: `diagnosis/verdict.toml` is changed by hand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from embinit.diagnosis.verdict import Lines, limits
from embinit.reports.verdicts import Tally, Trial, advised, tally

HALVES = ("A", "B")
#: The lines that decide which recipe is advised; `good` only tells two ways of saying `pretrained` apart.
ADJUSTED = ("buried", "border")


@dataclass(frozen=True)
class Adjusted:
    """Lines that did best on one half, and both halves' outcome with the lines as they are and with these."""

    on: str
    #: name of a line -> its ratio
    lines: Mapping[str, float]
    shipped: Mapping[str, float]
    #: how many pairs of lines were tried
    tried: int
    before: Mapping[str, Tally]
    after: Mapping[str, Tally]

    @property
    def moved(self) -> bool:
        """Return whether other lines than the shipped ones did better."""
        return any(self.lines[name] != self.shipped[name] for name in ADJUSTED)


def adjusted(found: Sequence[Trial], on: str) -> Adjusted | None:
    """Return the lines with the most hits on a half, then the least regret, then nearest to the shipped; None without cells.

    Every pair of lines that divides the half's ratios differently is tried.
    """
    by_half = {half: [trial for trial in found if trial.half == half and not trial.open] for half in HALVES}
    if not all(by_half.values()):
        return None
    shipped = limits()["ratio"]
    tried = candidates(by_half[on])

    def rank(lines: Lines) -> tuple[float, ...]:
        done = tally(by_half[on], lambda trial: advised(trial, lines))
        far = sum(abs(math.log(lines["ratio"][name] / shipped[name])) for name in ADJUSTED)
        return -done.hits, round(done.cost or 0.0, 9), far

    chosen = min(tried, key=rank)
    return Adjusted(
        on=on,
        lines={name: chosen["ratio"][name] for name in ADJUSTED},
        shipped={name: shipped[name] for name in ADJUSTED},
        tried=len(tried),
        before={half: tally(by_half[half], advised) for half in HALVES},
        after={half: tally(by_half[half], lambda trial: advised(trial, chosen)) for half in HALVES},
    )


def candidates(found: Sequence[Trial]) -> list[Lines]:
    """Return the lines to be tried: the shipped ones, and one between each two neighbouring ratios of these cells.

    `buried` stays below the ratio that the verdict aims at and `border` above it; below the smallest ratio and above the
    largest one more lies a factor of two away.
    """
    lines = limits()
    aim = lines["ratio"]["aim"]
    ratios = {side.basis.absorbed.ratio for trial in found for side in trial.sides if side.basis.absorbed is not None}
    low = _between([*sorted(ratio for ratio in ratios if ratio < aim), aim])
    high = _between([aim, *sorted(ratio for ratio in ratios if ratio > aim)])
    if low:
        low.insert(0, _short(min(ratios) / 2))
    if high:
        high.append(_short(max(ratios) * 2))
    buried = dict.fromkeys([lines["ratio"]["buried"], *low])
    border = dict.fromkeys([lines["ratio"]["border"], *high])
    return [_with(lines, one, other) for one, other in itertools.product(buried, border)]


def _between(ratios: Sequence[float]) -> list[float]:
    return [_short(math.sqrt(one * other)) for one, other in itertools.pairwise(ratios)]


def _short(ratio: float) -> float:
    """Return a ratio in three digits, so that the line that is printed is the one that was tried."""
    return float(f"{ratio:.3g}")


def _with(lines: Lines, buried: float, border: float) -> Lines:
    good = min(lines["ratio"]["good"], border)
    return {**lines, "ratio": {**lines["ratio"], "buried": buried, "good": good, "border": border}}
