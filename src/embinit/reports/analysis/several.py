"""Answers where each row has several baselines: it must be better than all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embinit.experiments.experiment import SAME, Baseline
from embinit.format import interval, listed, plural, signed
from embinit.reports import metrics
from embinit.reports.analysis.rows import LEVEL, difference
from embinit.reports.model import Difference, Metric, Part, Row

#: How many recipes a sentence names.
_NAMED = 3


def is_plain(baselines: Sequence[Baseline]) -> bool:
    """Return whether there is one baseline, in each row's own setting."""
    return len(baselines) == 1 and not baselines[0].at


def versus(baselines: Sequence[Baseline]) -> str:
    """Return the baselines in words: `xavier`, `both xavier and pretrained_xavier (also with sinusoidal positions)`."""
    named = [one for one in baselines if one.recipe != SAME]
    recipes = list(dict.fromkeys(one.recipe for one in named))
    said = f"{'both ' if len(recipes) == 2 else 'each of ' if len(recipes) > 2 else ''}{listed(recipes)}"
    pins = _pins(named)
    if pins:
        said = f"{said} with {pins}" if all(one.at for one in named) else f"{said} (also with {pins})"
    same = _pins([one for one in baselines if one.recipe == SAME])
    return f"{said} and itself with {same}" if same else said


def _pins(baselines: Sequence[Baseline]) -> str:
    return ", or ".join(dict.fromkeys(metrics.setting(axis, value) for one in baselines for axis, value in one.at))


def block_answer(rows: Sequence[Row], metric: Metric, baselines: Sequence[Baseline]) -> str:
    """Return which start is better than all of its baselines, or which comes nearest, with each difference."""
    name = versus(_of_block(rows, baselines))
    compared = [row for row in rows if row.differences and not row.baseline]
    if not compared:
        return _settings(rows, metric) or f"there is nothing yet to compare with {name}"
    if all(one.n < 2 for row in compared for one in row.differences):
        return f"one seed tells nothing from chance: run more to compare with {name}"
    better = [row for row in compared if row.verdict == "better" and not row.unscored]
    if better:
        return _use(sorted(better, key=lambda row: _mean(row, metric), reverse=True), metric)
    nearest = max(compared, key=lambda row: min(_gain(one, metric) for one in row.differences))
    best = f"{nearest.label} comes nearest, {over(nearest.differences, metric)}"
    said = f"no initialization is better than {name} beyond noise; {best}"
    lacking = list(dict.fromkeys(title for row in compared for title in row.lacking))
    return f"{said}; {listed(lacking)} {'has' if len(lacking) == 1 else 'have'} no run yet" if lacking else said


def _settings(rows: Sequence[Row], metric: Metric) -> str:
    """Return how one start does in each setting against the one that is pinned; empty where no two can be compared."""
    found = [row for row in rows if any(one.n > 1 for one in row.differences)]
    said = [f"{row.label} {over(row.differences, metric)}" for row in found[:_NAMED]]
    left = f", and {plural(len(found) - _NAMED, 'more line')}" if len(found) > _NAMED else ""
    return "; ".join(said) + left


def _of_block(rows: Sequence[Row], baselines: Sequence[Baseline]) -> list[Baseline]:
    """Return the baselines without what is pinned on an axis that these rows do not differ on."""
    values: dict[str, set[str]] = {}
    for axis, value in (pair for row in rows for pair in row.axes):
        values.setdefault(axis, set()).add(value)
    return [replace(one, at=tuple(pair for pair in one.at if len(values.get(pair[0], ())) > 1)) for one in baselines]


def _use(better: Sequence[Row], metric: Metric) -> str:
    best = better[0]
    alone = any((one.floor or 0) > LEVEL for one in best.differences)
    seeds = plural(min(one.n for one in best.differences), "seed")
    text = f"use {best.label}: {over(best.differences, metric)}, {seeds}{', by the t test alone' if alone else ''}"
    equal = [row.label for row in better[1:] if not beaten(best, row, metric)][:_NAMED]
    return f"{text}; {listed(equal)} {'is' if len(equal) == 1 else 'are'} as good within noise" if equal else text


def over(differences: Sequence[Difference], metric: Metric) -> str:
    """Return `+1.2 BLEU [+0.8, +1.6] over xavier and +0.9 BLEU [+0.4, +1.3] over pretrained_xavier`."""
    return listed([f"{by(one, metric)} over {one.baseline}" for one in differences])


def by(found: Difference, metric: Metric) -> str:
    """Return a difference in words: `−2.8 BLEU [−3.3, −2.3]`."""
    bounds = interval(found.low, found.high, metric.digits, sign=True)
    return f"{signed(found.mean, metric.digits)} {metric.unit} {bounds}"


def beaten(best: Row, other: Row, metric: Metric) -> bool:
    """Return whether the interval of two rows' difference leaves no room for the other to be as good."""
    found = difference(best.scores, other.scores, other.label, metric)
    if found is None or found.low is None or found.high is None:
        return False
    return found.low > 0 if metric.higher else found.high < 0


def counted(parts: Sequence[Part], baselines: Sequence[Baseline]) -> str:
    """Return which starts are better than all of their baselines, in how many blocks; empty where nothing is compared."""
    tallies: dict[str, list[int]] = {}
    blocks = 0
    for part in parts:
        rows = [row for row in part.rows if row.differences and not row.baseline]
        blocks += bool(rows)
        for row in rows:
            tally = tallies.setdefault(row.label, [0, 0])
            tally[0] += row.verdict == "better" and not row.unscored
            tally[1] += 1
    if not blocks:
        return ""
    ordered = sorted(tallies.items(), key=lambda item: -item[1][0])
    said = [f"{name} in {better} of {plural(of, 'block')}" for name, (better, of) in ordered if better][:_NAMED]
    if not said:
        where = "the block that was run" if blocks == 1 else f"any of {blocks} blocks"
        return f"no initialization is better than {versus(baselines)} beyond noise in {where}"
    return f"better than {versus(baselines)}: {', '.join(said)}"


def _mean(row: Row, metric: Metric) -> float:
    assert row.statistic is not None
    return row.statistic.mean if metric.higher else -row.statistic.mean


def _gain(found: Difference, metric: Metric) -> float:
    return found.mean if metric.higher else -found.mean
