"""Verdicts on sweeps: the best place of each line, places that are as good, and differences to the baseline's line."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.reports.model import Part, Sweep
from embinit.reports.scores import Metric, TableRow
from embinit.reports.sentences import NAMED
from embinit.reports.verdicts import BestPlaces, Direction, SweepDifference, SweepOptima, SweepOptimum
from embinit.statistics import pooled


def sweep_verdicts(rows: Sequence[TableRow], metric: Metric, sweep: Sweep) -> tuple[SweepOptima | SweepDifference, ...]:
    """Return the best place of each line of a sweep, and the places where it is better or worse than the baseline's line."""
    optima = _optima(rows, metric, sweep)
    return (SweepOptima(tuple(optima[:NAMED]), max(0, len(optima) - NAMED)), *_differences(rows, sweep))


def _optima(rows: Sequence[TableRow], metric: Metric, sweep: Sweep) -> list[SweepOptimum]:
    """Return the best place of each line of a sweep with its equally good neighbours, the best line first."""
    below = _below(rows, metric, sweep)
    sign = 1 if metric.higher else -1
    optima = []
    for name, line in sweep.lines.items():
        best = max(line, key=lambda point: sign * point.mean)
        low = high = line.index(best)
        while low > 0 and line[low - 1].label not in below:
            low -= 1
        while high < len(line) - 1 and line[high + 1].label not in below:
            high += 1
        optima.append(SweepOptimum(name, "", best.x, best.mean, metric, line[low].x, line[high].x))
    return sorted(optima, key=lambda optimum: -sign * optimum.mean)


def _below(rows: Sequence[TableRow], metric: Metric, sweep: Sweep) -> set[str]:
    """Return the labels of places that are worse than the best of their line beyond noise, by one σ of the whole sweep."""
    by_label = {row.label: row for row in rows}
    sign = 1 if metric.higher else -1
    behind: dict[str, list[float]] = {}
    for line in sweep.lines.values():
        best = by_label[max(line, key=lambda point: sign * point.mean).label].scores
        for point in line:
            scores = by_label[point.label].scores
            lost = [sign * (best[seed] - score) for seed, score in scores.items() if seed in best]
            if scores is not best and lost:
                behind[point.label] = lost
    losses = zip(behind, pooled(list(behind.values())), strict=True)
    return {label for label, loss in losses if loss.low is not None and loss.low > 0}


def _differences(rows: Sequence[TableRow], sweep: Sweep) -> list[SweepDifference]:
    """Return the places of a sweep at which each line is better or worse than the baseline's line."""
    known = {row.label: row.difference for row in rows if row.difference is not None}
    directions: tuple[Direction, ...] = ("better", "worse")
    differences = []
    for name, line in list(sweep.lines.items())[:NAMED]:
        for direction in directions:
            places = [point for point in line if point.label in known and known[point.label].verdict == direction]
            if places:
                baseline = known[places[0].label].baseline
                differences.append(SweepDifference(name, direction, baseline, tuple(point.x for point in places)))
    return differences


def best_places(parts: Sequence[Part]) -> BestPlaces:
    """Return the best place of each of several sweeps."""
    return BestPlaces(tuple(_best(part) for part in parts))


def _best(part: Part) -> SweepOptimum:
    """Return the best place of a sweep, with its line."""
    assert part.sweep is not None
    sign = 1 if part.metric.higher else -1
    points = [(point, name) for name, line in part.sweep.lines.items() for point in line]
    best, line = max(points, key=lambda pair: sign * pair[0].mean)
    return SweepOptimum(line, part.name, best.x, best.mean, part.metric, best.x, best.x)
