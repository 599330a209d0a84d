"""What sweeps say: where each line is best, what is as good within noise, where a line parts from the baseline's."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.format import compact, fixed, listed, plural
from embinit.reports.model import Metric, Part, Point, Row, Sweep
from embinit.statistics import pooled

#: How many lines, and how many blocks, a sentence names.
_NAMED, _BLOCKS = 3, 4


def sweep_answer(rows: Sequence[Row], metric: Metric, sweep: Sweep) -> str:
    """Return where each line of a sweep is best, and where it is better or worse than the baseline's."""
    texts = _optima(rows, metric, sweep)[:_NAMED]
    more = len(sweep.lines) - len(texts)
    best = f"best: {', '.join(texts)}" + (f", and {plural(more, 'more line')}" if more > 0 else "")
    return "; ".join([best, *_where_better(rows, sweep)])


def _optima(rows: Sequence[Row], metric: Metric, sweep: Sweep) -> list[str]:
    """Return where each line of a sweep is best, the best line first, with its neighbours that are as good."""
    below = _below(rows, metric, sweep)
    texts = []
    for name, line in sweep.lines.items():
        best = max(line, key=lambda point: point.mean if metric.higher else -point.mean)
        place = line.index(best)
        low, high = place, place
        while low > 0 and line[low - 1].label not in below:
            low -= 1
        while high < len(line) - 1 and line[high + 1].label not in below:
            high += 1
        text = f"{name} at {compact(best.x)} ({fixed(best.mean, metric.digits)} {metric.unit}"
        if low < high:
            text += f", {compact(line[low].x)} to {compact(line[high].x)} as good within noise"
        texts.append((best.mean if metric.higher else -best.mean, text + ")"))
    return [text for _, text in sorted(texts, key=lambda found: -found[0])]


def _below(rows: Sequence[Row], metric: Metric, sweep: Sweep) -> set[str]:
    """Return the labels of places that are worse than the best of their line beyond noise: that within all of the sweep."""
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
    found = zip(behind, pooled(list(behind.values())), strict=True)
    return {label for label, one in found if one.low is not None and one.low > 0}


def _where_better(rows: Sequence[Row], sweep: Sweep) -> list[str]:
    """Return at which places of a sweep each line is better or worse than the baseline's."""
    verdicts = {row.label: row.difference for row in rows if row.difference is not None}
    said = []
    for name, line in list(sweep.lines.items())[:_NAMED]:
        for verdict in ("better", "worse"):
            places = [p.x for p in line if p.label in verdicts and verdicts[p.label].verdict == verdict]
            if places:
                base = next(verdicts[p.label].baseline for p in line if p.label in verdicts)
                said.append(f"{name} is {verdict} than {base} at {listed([compact(x) for x in places])}")
    return said


def best_places(parts: Sequence[Part]) -> str:
    """Return where several sweeps are best: one place where it is that of all, else each with its line and mean."""
    found = [_optimum(part) for part in parts]
    places = {point.x for point, _ in found}
    if len(places) == 1:
        every = "both sweeps" if len(parts) == 2 else f"all {len(parts)} sweeps"
        return f"best at {compact(places.pop())} in {every}"
    said = [
        f"{compact(point.x)} in {part.name} ({line}, {fixed(point.mean, part.metric.digits)} {part.metric.unit})"
        for part, (point, line) in zip(parts[:_BLOCKS], found[:_BLOCKS], strict=True)
    ]
    said += [f"and {plural(len(parts) - _BLOCKS, 'more sweep')}"] if len(parts) > _BLOCKS else []
    return f"best at {', '.join(said)}"


def _optimum(part: Part) -> tuple[Point, str]:
    """Return the best place of a sweep, and its line."""
    assert part.sweep is not None
    sign = 1 if part.metric.higher else -1
    points = [(point, name) for name, line in part.sweep.lines.items() for point in line]
    return max(points, key=lambda one: sign * one[0].mean)
