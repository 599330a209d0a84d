"""The cost of size: the change of each line of a sweep over scale from its smallest rows to its largest, paired by seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from embinit.format import NONE, compact
from embinit.reports.metrics import SEPARATOR
from embinit.reports.model import Part, Table, TableCell
from embinit.reports.scores import TableRow
from embinit.reports.sentences import difference_text
from embinit.reports.verdicts import SizeChange, SizeChanges
from embinit.statistics import MeanInterval, pooled


@dataclass(frozen=True)
class SizeCost:
    """The change of one line between the smallest and the largest place of its sweep."""

    line: str
    #: the recipe, or whatever else is compared in the block
    series: str
    #: the change of the score from the smallest rows to the largest; its interval has one σ, pooled over all lines
    change: MeanInterval
    #: that change minus that of the first line with the same series, or of the first line of all if each has its own series;
    #: None for the first line
    beside: MeanInterval | None


def size_costs(part: Part) -> list[SizeCost]:
    """Return the change of every line that has both ends of a sweep over scale; nothing for another sweep."""
    lines = _moved(part)
    if not lines:
        return []
    firsts = _firsts(lines)
    changes = pooled([list(moved.values()) for _, moved in lines.values()])
    against = {
        name: [change - base[seed] for seed, change in moved.items() if seed in base]
        for name, (_, moved) in lines.items()
        if (base := lines[firsts[name]][1]) is not moved
    }
    against = {name: values for name, values in against.items() if values}
    beside = dict(zip(against, pooled(list(against.values())), strict=True))
    return [
        SizeCost(name, series, change, beside.get(name))
        for (name, (series, _)), change in zip(lines.items(), changes, strict=True)
    ]


def _firsts(lines: Mapping[str, tuple[str, Mapping[str, float]]]) -> dict[str, str]:
    """Return for each line the line that it is compared with."""
    first: dict[str, str] = {}
    for name, (series, _) in lines.items():
        first.setdefault(series, name)
    alone = len(first) == len(lines)
    return {name: next(iter(lines)) if alone else first[series] for name, (series, _) in lines.items()}


def _moved(part: Part) -> dict[str, tuple[str, dict[str, float]]]:
    """Return line -> its series, and seed -> the change of its score from one end to the other."""
    ends = _ends(part)
    if ends is None or part.sweep is None:
        return {}
    by_label = {row.label: row for row in part.rows}
    lines = {}
    for name, line in part.sweep.lines.items():
        rows: dict[float, TableRow] = {point.x: by_label[point.label] for point in line}
        if all(end in rows for end in ends):
            small, large = (rows[end].scores for end in ends)
            moved = {seed: score - small[seed] for seed, score in large.items() if seed in small}
            if moved:
                lines[name] = (rows[ends[0]].series, moved)
    return lines


def _ends(part: Part) -> tuple[float, float] | None:
    """Return the smallest and the largest place of a sweep over scale."""
    if part.sweep is None or part.sweep.name != "scale":
        return None
    places = {point.x for line in part.sweep.lines.values() for point in line}
    return (min(places), max(places)) if len(places) > 1 else None


def size_changes(parts: Sequence[Part], recipe: str) -> tuple[SizeChanges, ...]:
    """Return the cost of size for the lines of one recipe, each line once; nothing if no block is a sweep over scale.

    A line is named by the words that distinguish it in its block. The name of its block is added if these words are missing
    or occur twice.
    """
    spans: dict[tuple[float, float], dict[tuple[float, int], tuple[str, SizeCost, Part]]] = {}
    for part in parts:
        ends = _ends(part)
        for cost in size_costs(part):
            if ends is not None and cost.series == recipe:
                # A line may be part of several blocks; its first name is used.
                known = spans.setdefault(ends, {})
                known.setdefault((cost.change.mean, cost.change.n), (_apart(part, cost), cost, part))
    return tuple(SizeChanges(recipe, *ends, _named(list(costs.values()))) for ends, costs in spans.items())


def _named(costs: Sequence[tuple[str, SizeCost, Part]]) -> tuple[SizeChange, ...]:
    names = Counter(name for name, _, _ in costs)
    changes = []
    for name, cost, part in costs:
        own = f"{part.name}, {name}" if names[name] > 1 else name
        changes.append(SizeChange(own if name else part.name, cost.change, part.metric))
    return tuple(changes)


def _apart(part: Part, cost: SizeCost) -> str:
    """Return a line's name without that of its recipe."""
    assert part.sweep is not None
    return SEPARATOR.join(word for word in part.sweep.words[cost.line] if word != cost.series)


def size_table(part: Part) -> Table | None:
    """Return the change of each line, and its difference to the first line; None for fewer than two lines."""
    ends, costs = _ends(part), size_costs(part)
    if ends is None or len(costs) < 2:
        return None
    span = f"from {compact(ends[0])} to {compact(ends[1])}"
    rows = tuple(
        (
            TableCell(cost.line),
            TableCell(difference_text(cost.change, part.metric)),
            TableCell(NONE if cost.beside is None else difference_text(cost.beside, part.metric)),
        )
        for cost in costs
    )
    caption = f"The cost of size, {span}: paired by seed; 95 % intervals from one σ, estimated from all lines"
    alone = len({cost.series for cost in costs}) == len(costs)
    return Table(caption, ("", span, f"against {costs[0].line if alone else _apart(part, costs[0])}"), rows)
