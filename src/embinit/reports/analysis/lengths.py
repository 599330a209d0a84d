"""Scores by length: table rows against their baseline on short and on long sentences, paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from embinit.experiments.runs.length_buckets import LengthBucket
from embinit.format import NONE, fixed, interval, signed
from embinit.reports import metrics
from embinit.reports.model import Part, Table, TableCell
from embinit.reports.scores import LengthScores, Metric, ScoreName, TableRow
from embinit.statistics import MeanInterval, pooled

_Key = TypeVar("_Key")
#: The level of the interval that must exclude zero: every table row of every block is tested.
_SURE = 0.999


@dataclass(frozen=True)
class LengthLine:
    """One table row in every bucket: its differences to its baseline, or its own scores if it has none."""

    label: str
    series: str
    #: the series of the baseline; empty if the points are the row's own scores
    base: str
    #: bucket by bucket; intervals have one σ, pooled over all lines that have a baseline
    points: tuple[MeanInterval | None, ...]
    #: the gain on the longest sentences minus the gain on the shortest, with a 99.9 % interval
    growth: MeanInterval | None


@dataclass(frozen=True)
class ScoresByLength:
    """The scores of one split by length, a line for each table row of a block."""

    metric: Metric
    buckets: tuple[LengthBucket, ...]
    lines: tuple[LengthLine, ...]


@dataclass(frozen=True)
class LengthEffect:
    """A table row whose difference to its baseline grows or shrinks with length beyond noise."""

    label: str
    metric: Metric
    shortest: LengthBucket
    longest: LengthBucket
    #: the differences on the shortest and on the longest sentences
    short: MeanInterval
    long: MeanInterval
    growth: MeanInterval


def scores_by_length(rows: Sequence[TableRow], split: str) -> tuple[ScoresByLength, ...]:
    """Return the scores by length of a block, one value for each scored split; the split of the block comes first."""
    names = dict.fromkeys(name for row in rows for name in row.lengths)
    own = [name for name in names if name.split == split]
    return tuple(_of_score(rows, name) for name in dict.fromkeys([*own, *names]))


def length_effects(rows: Sequence[TableRow], split: str) -> tuple[LengthEffect, ...]:
    """Return the table rows whose difference to their baseline depends on length, by a 99.9 % interval."""
    effects = []
    for table in scores_by_length(rows, split):
        for line in table.lines:
            short, long, growth = line.points[0], line.points[-1], line.growth
            if short is None or long is None or growth is None or growth.bounds is None:
                continue
            low, high = growth.bounds
            if low > 0 or high < 0:
                effects.append(
                    LengthEffect(line.label, table.metric, table.buckets[0], table.buckets[-1], short, long, growth)
                )
    return tuple(effects)


def length_note(rows: Sequence[TableRow], split: str) -> str:
    """Return the effects of length in a sentence; empty if there is none."""
    texts = []
    for effect in length_effects(rows, split):
        metric = effect.metric
        ends = [
            f"{signed(point.mean, metric.digits)} {metric.unit} at {bucket} tokens"
            for point, bucket in ((effect.short, effect.shortest), (effect.long, effect.longest))
        ]
        texts.append(f"{effect.label} on {metric.split} {', '.join(ends)}")
    return f"Length matters: {'; '.join(texts)}." if texts else ""


def length_tables(part: Part) -> list[Table]:
    """Return a block's scores by length, a table for each split."""
    tables = []
    for scores in scores_by_length(part.rows, part.metric.split):
        rows = tuple(
            (TableCell(line.label), *(TableCell(_point_text(line, point, scores.metric)) for point in line.points))
            for line in scores.lines
        )
        bases = dict.fromkeys(line.base for line in scores.lines if line.base)
        counts = ", ".join(f"{bucket.sentences:,}" for bucket in scores.buckets)
        paired = (
            f"; the other rows are differences from {' or '.join(bases)} with the same seeds; their 95 % intervals use "
            "one σ, estimated from all of these differences"
            if bases
            else ""
        )
        title = f"{scores.metric.label} on {scores.metric.split} by the number of tokens that the model reads"
        tables.append(Table(f"{title} ({counts} sentences){paired}", ("tokens", *map(str, scores.buckets)), rows))
    return tables


def _point_text(line: LengthLine, point: MeanInterval | None, metric: Metric) -> str:
    if point is None:
        return NONE
    if not line.base:
        return fixed(point.mean, metric.digits)
    spread = f" {interval(point.low, point.high, metric.digits, sign=True)}" if point.low is not None else ""
    return f"{signed(point.mean, metric.digits)}{spread}"


def _of_score(rows: Sequence[TableRow], name: ScoreName) -> ScoresByLength:
    there = [row for row in rows if name in row.lengths]
    buckets = tuple(dict.fromkeys(entry.bucket for row in there for entry in row.lengths[name]))
    bases = {row.setting: row for row in reversed(there) if row.baseline}
    paired = [(row, base) for row in there if (base := bases.get(row.setting)) is not None and not row.baseline]
    gains = {row.label: _gains(row.lengths[name], base.lengths[name]) for row, base in paired}
    points = _pooled(
        {(label, at): list(by.values()) for label, by_bucket in gains.items() for at, by in by_bucket.items()}
    )
    growths = {label: _growth(by_bucket, buckets) for label, by_bucket in gains.items()}
    growth = _pooled({label: values for label, values in growths.items() if values}, _SURE)
    lines = []
    for row in there:
        if row.label in gains:
            differences = tuple(points.get((row.label, at)) for at in buckets)
            lines.append(
                LengthLine(row.label, row.series, bases[row.setting].series, differences, growth.get(row.label))
            )
        else:
            scores = {entry.bucket: list(entry.scores.values()) for entry in row.lengths[name]}
            alone = tuple(_mean(scores.get(at, [])) for at in buckets)
            lines.append(LengthLine(row.label, row.series, "", alone, None))
    return ScoresByLength(metrics.metric(name.score, name.split), buckets, tuple(lines))


def _gains(row: Sequence[LengthScores], base: Sequence[LengthScores]) -> dict[LengthBucket, dict[str, float]]:
    """Return bucket -> seed -> the row's score minus the baseline's, for the seeds that both have."""
    known = {entry.bucket: entry.scores for entry in base}
    differences = {
        entry.bucket: {seed: score - known[entry.bucket][seed] for seed, score in entry.scores.items()
                     if seed in known.get(entry.bucket, {})}
        for entry in row
    }  # fmt: skip
    return {bucket: gains for bucket, gains in differences.items() if gains}


def _growth(gains: Mapping[LengthBucket, Mapping[str, float]], buckets: Sequence[LengthBucket]) -> list[float]:
    short, long = gains.get(buckets[0], {}), gains.get(buckets[-1], {})
    return [gain - short[seed] for seed, gain in long.items() if seed in short]


def _pooled(groups: Mapping[_Key, Sequence[float]], level: float = 0.95) -> dict[_Key, MeanInterval]:
    return dict(zip(groups, pooled(list(groups.values()), level), strict=True)) if groups else {}


def _mean(scores: Sequence[float]) -> MeanInterval | None:
    if not scores:
        return None
    return MeanInterval(mean=sum(scores) / len(scores), std=None, n=len(scores), low=None, high=None, method="")
