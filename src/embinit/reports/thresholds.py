"""The verdict's lines adjusted on one half of the cells, and what that is worth on the other half.

It reports only: `diagnosis/verdict.toml` is changed by hand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from embinit.diagnosis.verdict import Lines, limits
from embinit.reports.cells import Trial
from embinit.reports.verdicts import Tally, at_full_rate, tally

HALVES = ("A", "B")
#: Table of `verdict.toml` -> the lines, below and above its `aim`, that decide which recipe is advised; `good` only tells
#: two ways of saying `pretrained` apart.
ADJUSTED = {"ratio": ("buried", "border"), "classification": ("low", "high")}


@dataclass(frozen=True)
class Adjusted:
    """Lines that did best on one half, and both halves' outcome with the lines as they are and with these."""

    on: str
    #: name of a line -> its ratio
    lines: Mapping[str, float]
    shipped: Mapping[str, float]
    #: how many sets of lines were tried
    tried: int
    before: Mapping[str, Tally]
    after: Mapping[str, Tally]

    @property
    def moved(self) -> bool:
        """Return whether other lines than the shipped ones did better."""
        return self.lines != self.shipped


def adjusted(found: Sequence[Trial], on: str) -> Adjusted | None:
    """Return the lines with the most hits on a half, then the least regret, then nearest to the shipped; None without cells.

    Every set of lines that divides the half's ratios differently is tried. Lines say nothing of a rate, so that they are
    judged among the starts at the full one.
    """
    judged = [trial.of_full_rate for trial in found if not trial.open]
    by_half = {half: [trial for trial in judged if trial.half == half] for half in HALVES}
    if not all(by_half.values()):
        return None
    shipped = _adjusted(limits())
    tried = candidates(by_half[on])

    def rank(lines: Lines) -> tuple[float, ...]:
        done = tally(by_half[on], lambda trial: at_full_rate(trial, lines))
        far = sum(abs(math.log(ratio / shipped[name])) for name, ratio in _adjusted(lines).items())
        return -done.hits, round(done.cost or 0.0, 9), far

    chosen = min(tried, key=rank)
    return Adjusted(
        on=on,
        lines=_adjusted(chosen),
        shipped=shipped,
        tried=len(tried),
        before={half: tally(by_half[half], at_full_rate) for half in HALVES},
        after={half: tally(by_half[half], lambda trial: at_full_rate(trial, chosen)) for half in HALVES},
    )


def candidates(found: Sequence[Trial]) -> list[Lines]:
    """Return the lines to be tried: the shipped ones, and one between each two neighbouring ratios of the cells they judge.

    The lower line of a table stays below the ratio that the verdict aims at and the upper one above it; below the smallest
    ratio and above the largest one more lies a factor of two away.
    """
    made: list[Lines] = [limits()]
    for table, (lower, upper) in ADJUSTED.items():
        below, above = _tried(table, found)
        made = [_with(lines, table, {lower: one, upper: other}) for lines in made for one in below for other in above]
    return made


def _tried(table: str, found: Sequence[Trial]) -> tuple[list[float], list[float]]:
    """Return the places of a table's lower line and of its upper one, the shipped place first."""
    line, (lower, upper) = limits()[table], ADJUSTED[table]
    bases = [side.basis for trial in found for side in trial.sides if side.basis.table == table]
    ratios = sorted({basis.absorbed.ratio for basis in bases if basis.absorbed is not None})
    low = _between([*(ratio for ratio in ratios if ratio < line["aim"]), line["aim"]])
    high = _between([line["aim"], *(ratio for ratio in ratios if ratio > line["aim"])])
    if low:
        low.insert(0, _short(ratios[0] / 2))
    if high:
        high.append(_short(ratios[-1] * 2))
    return list(dict.fromkeys([line[lower], *low])), list(dict.fromkeys([line[upper], *high]))


def _adjusted(lines: Lines) -> dict[str, float]:
    return {name: lines[table][name] for table, names in ADJUSTED.items() for name in names}


def _between(ratios: Sequence[float]) -> list[float]:
    return [_short(math.sqrt(one * other)) for one, other in itertools.pairwise(ratios)]


def _short(ratio: float) -> float:
    """Return a ratio in three digits, so that the line that is printed is the one that was tried."""
    return float(f"{ratio:.3g}")


def _with(lines: Lines, table: str, places: Mapping[str, float]) -> Lines:
    line = {**lines[table], **places}
    if "good" in line:
        line["good"] = min(line["good"], line["border"])
    return {**lines, table: line}
