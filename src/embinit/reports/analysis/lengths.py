"""What length does to a start: its rows against their baseline on short sentences and on long ones, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from embinit.format import NONE, fixed, interval, signed
from embinit.reports import metrics
from embinit.reports.model import Cell, Metric, Part, Row, ScoreName, Stretched, Table
from embinit.statistics import MeanInterval, pooled

#: From `low` tokens to `high` (None: without end), and how many sentences there are.
Bounds = tuple[int, int | None, int]
_Key = TypeVar("_Key")
#: Every row of every block is looked at, so that what is said of length must be sure.
_SURE = 0.999


@dataclass(frozen=True)
class LengthLine:
    """One row on every stretch of lengths: against its baseline, or as it is where it has none."""

    label: str
    series: str
    #: the row that it is held against; empty where its numbers are its own scores
    base: str
    #: stretch by stretch; intervals have the σ within all lines that are held against another
    points: tuple[MeanInterval | None, ...]
    #: by how much more it gains on the longest sentences than on the shortest, with a 99.9 % interval
    grows: MeanInterval | None


@dataclass(frozen=True)
class ByLength:
    """One set's scores by length, a line for each row of a block."""

    metric: Metric
    bounds: tuple[Bounds, ...]
    lines: tuple[LengthLine, ...]


def by_length(rows: Sequence[Row], split: str) -> tuple[ByLength, ...]:
    """Return what is known of a block's rows by length, a value for each set that was scored; its own split comes first."""
    names = dict.fromkeys(name for row in rows for name in row.lengths)
    own = [name for name in names if name.split == split]
    return tuple(_of(rows, name) for name in dict.fromkeys([*own, *names]))


def _of(rows: Sequence[Row], name: ScoreName) -> ByLength:
    there = [row for row in rows if name in row.lengths]
    bounds = tuple(dict.fromkeys(_bounds(one) for row in there for one in row.lengths[name]))
    bases = {row.setting: row for row in reversed(there) if row.baseline}
    held = [(row, base) for row in there if (base := bases.get(row.setting)) is not None and not row.baseline]
    gains = {row.label: _gains(row.lengths[name], base.lengths[name]) for row, base in held}
    points = _pooled({(label, at): list(by.values()) for label, found in gains.items() for at, by in found.items()})
    grown = {label: _grown(found, bounds) for label, found in gains.items()}
    grows = _pooled({label: found for label, found in grown.items() if found}, _SURE)
    lines = []
    for row in there:
        if row.label in gains:
            told = tuple(points.get((row.label, at)) for at in bounds)
            lines.append(LengthLine(row.label, row.series, bases[row.setting].series, told, grows.get(row.label)))
        else:
            scores = {_bounds(one): list(one.scores.values()) for one in row.lengths[name]}
            alone = tuple(_mean(scores.get(at, [])) for at in bounds)
            lines.append(LengthLine(row.label, row.series, "", alone, None))
    return ByLength(metrics.metric(name.score, name.split), bounds, tuple(lines))


def _bounds(one: Stretched) -> Bounds:
    return one.low, one.high, one.sentences


def _gains(row: Sequence[Stretched], base: Sequence[Stretched]) -> dict[Bounds, dict[str, float]]:
    """Return by which scores a row lies above its baseline: stretch -> seed, of those that both have."""
    known = {_bounds(one): one.scores for one in base}
    made = {
        _bounds(one): {seed: score - known[_bounds(one)][seed] for seed, score in one.scores.items()
                       if seed in known.get(_bounds(one), {})}
        for one in row
    }  # fmt: skip
    return {at: found for at, found in made.items() if found}


def _grown(gains: Mapping[Bounds, Mapping[str, float]], bounds: Sequence[Bounds]) -> list[float]:
    short, long = gains.get(bounds[0], {}), gains.get(bounds[-1], {})
    return [gain - short[seed] for seed, gain in long.items() if seed in short]


def _pooled(groups: Mapping[_Key, Sequence[float]], level: float = 0.95) -> dict[_Key, MeanInterval]:
    return dict(zip(groups, pooled(list(groups.values()), level), strict=True)) if groups else {}


def _mean(scores: Sequence[float]) -> MeanInterval | None:
    if not scores:
        return None
    return MeanInterval(mean=sum(scores) / len(scores), std=None, n=len(scores), low=None, high=None, method="")


def named(bounds: Bounds) -> str:
    """Return a stretch in words: `up to 7`, `8 to 11`, `48 and more`."""
    low, high, _ = bounds
    if high is None:
        return f"{low} and more"
    return f"{low} to {high}" if low else f"up to {high}"


def length_tables(part: Part) -> list[Table]:
    """Return a block's scores by length, a table for each set."""
    made = []
    for one in by_length(part.rows, part.metric.split):
        rows = tuple(
            (Cell(line.label), *(Cell(_told(line, point, one.metric)) for point in line.points)) for line in one.lines
        )
        bases = dict.fromkeys(line.base for line in one.lines if line.base)
        counts = ", ".join(f"{sentences:,}" for _, _, sentences in one.bounds)
        held = (
            f"; rows against {' or '.join(bases)}, paired by seed, with 95 % intervals by one σ, that within all of these"
            if bases
            else ""
        )
        what = f"{one.metric.label} on {one.metric.split} by the number of tokens that the model reads"
        made.append(Table(f"{what} ({counts} sentences){held}", ("tokens", *map(named, one.bounds)), rows))
    return made


def _told(line: LengthLine, point: MeanInterval | None, metric: Metric) -> str:
    if point is None:
        return NONE
    if not line.base:
        return fixed(point.mean, metric.digits)
    spread = f" {interval(point.low, point.high, metric.digits, sign=True)}" if point.low is not None else ""
    return f"{signed(point.mean, metric.digits)}{spread}"


def length_note(rows: Sequence[Row], split: str) -> str:
    """Return the rows whose distance to their baseline surely grows or shrinks with length; empty where none's does."""
    said = []
    for one in by_length(rows, split):
        for line in one.lines:
            first, last, grows = line.points[0], line.points[-1], line.grows
            if grows is None or first is None or last is None or grows.low is None or grows.high is None:
                continue
            if grows.low > 0 or grows.high < 0:
                ends = [
                    f"{signed(point.mean, one.metric.digits)} {one.metric.unit} at {named(at)} tokens"
                    for point, at in ((first, one.bounds[0]), (last, one.bounds[-1]))
                ]
                said.append(f"{line.label} on {one.metric.split} {', '.join(ends)}")
    return f"length matters: {'; '.join(said)}" if said else ""
