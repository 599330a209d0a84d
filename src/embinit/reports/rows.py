"""Rows of a block: runs that differ by seed alone, their statistics, and what they are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from embinit import statistics
from embinit.experiments.experiment import Block, Planned
from embinit.experiments.results import Result
from embinit.reports import paper, words
from embinit.reports.types import Beside, Difference, Metric, Row, Statistic

Results = Mapping[str, Result]
#: p below which a difference counts, after Holm.
LEVEL = 0.05
_METHODS = {"t": "t", "bootstrap": "bootstrap", "none": ""}
_MARKS = ((0.001, "***"), (0.01, "**"), (LEVEL, "*"))


def rows(block: Block, results: Results, baseline: str) -> tuple[Row, ...]:
    """Return a block's rows, setting by setting in the file's order, compared with their setting's baseline, best marked."""
    metric = words.metric(block.score, block.split)
    compared = compared_axes(block, baseline)
    varied = varied_axes(block)
    made = [_row(block, axes, runs, results, metric, compared, varied) for axes, runs in grouped(block).items()]
    settings = list(dict.fromkeys(row.setting for row in made))
    made.sort(key=lambda row: settings.index(row.setting))
    named = [replace(row, baseline=_is_baseline(row, compared, baseline)) for row in made]
    return _best(metric, [_against(row, named, metric) for row in named])


def grouped(block: Block) -> dict[tuple[tuple[str, str], ...], list[Planned]]:
    """Return a block's runs by their axes."""
    groups: dict[tuple[tuple[str, str], ...], list[Planned]] = {}
    for planned in block.runs:
        groups.setdefault(planned.axes, []).append(planned)
    return groups


def varied_axes(block: Block) -> tuple[str, ...]:
    """Return the axes on which a block's rows differ; a list of one value in the file is none of them."""
    values: dict[str, set[str]] = {}
    for planned in block.runs:
        for axis, value in planned.axes:
            values.setdefault(axis, set()).add(value)
    return tuple(axis for axis, found in values.items() if len(found) > 1)


def compared_axes(block: Block, baseline: str) -> tuple[str, ...]:
    """Return the axes whose values are compared: recipes, or else those on which the baseline is found."""
    names = {axis: None for planned in block.runs for axis, _ in planned.axes}
    recipes = tuple(axis for axis in names if paper.is_recipe(axis))
    found = {axis: None for planned in block.runs for axis, value in planned.axes if value == baseline}
    return recipes or tuple(found)


def finished(runs: Sequence[Planned], results: Results) -> list[Result]:
    """Return the results that are there, by seed."""
    found = {planned.spec.seed: results[planned.spec.key] for planned in runs if planned.spec.key in results}
    return [found[seed] for seed in sorted(found)]


def statistic(scores: Sequence[float]) -> Statistic | None:
    """Return mean, σ and interval of scores; None where there are none."""
    if not scores:
        return None
    cell = statistics.cell(list(scores))
    return Statistic(cell.mean, number(cell.std), cell.n, number(cell.low), number(cell.high), _METHODS[cell.method])


def number(value: float | None) -> float | None:
    """Return a number that JSON has; NaN and infinity become None."""
    return None if value is None or not math.isfinite(value) else float(value)


def _row(
    block: Block,
    axes: tuple[tuple[str, str], ...],
    runs: list[Planned],
    results: Results,
    metric: Metric,
    compared: tuple[str, ...],
    varied: tuple[str, ...],
) -> Row:
    done = finished(runs, results)
    found = {result.spec.seed: result.scores.get(block.split, {}).get(block.score) for result in done}
    scores = {str(seed): metric.factor * score for seed, score in found.items() if score is not None}
    epochs = [result.best_epoch for result in done if result.best_epoch]
    stated = statistic(list(scores.values()))
    others = _others(block, done)
    series = " / ".join(value for axis, value in axes if axis in compared)
    rest = [words.setting(axis, value) for axis, value in axes if axis in varied and axis not in compared]
    told = [(axis, value) for axis, value in axes if axis in varied or axis in compared]
    recipes = " / ".join(dict.fromkeys(side.recipe for _, side in runs[0].spec.sides))
    return Row(
        label=" · ".join([*([series] if series else []), *rest]) or recipes,
        axes=axes,
        series=series or " · ".join(rest) or recipes,
        setting=" · ".join(rest) if series else "",
        baseline=False,
        planned=len({planned.spec.seed for planned in runs}),
        diverged=sum(result.diverged for result in done),
        unscored=len(done) - len(scores),
        scores=scores,
        statistic=stated,
        epoch=sum(epochs) / len(epochs) if epochs else None,
        paper=_beside(block, told, runs[0], block.score, block.split, stated),
        others=others,
        others_paper={
            name: theirs
            for name, one in others.items()
            if (theirs := _beside(block, told, runs[0], name.partition(" ")[2], name.partition(" ")[0], one))
            is not None
        },
    )


def _beside(
    block: Block, told: list[tuple[str, str]], first: Planned, score: str, split: str, stated: Statistic | None
) -> Beside | None:
    if score not in paper.SCORES:
        return None
    printed = paper.value(block.paper, told, split, first.spec)
    return paper.beside(printed, stated, paper.comparable(block.paper, first.spec, score, split))


def _others(block: Block, done: list[Result]) -> dict[str, Statistic]:
    names = {(split, score): None for result in done for split, scores in result.scores.items() for score in scores}
    made = {}
    for split, score in names:
        if (split, score) != (block.split, block.score):
            factor = words.metric(score, split).factor
            found = [r.scores[split][score] * factor for r in done if score in r.scores.get(split, {})]
            stated = statistic(found)
            if stated is not None:
                made[f"{split} {score}"] = stated
    return made


def _is_baseline(row: Row, compared: tuple[str, ...], baseline: str) -> bool:
    values = [value for axis, value in row.axes if axis in compared]
    return bool(values) and all(value == baseline for value in values)


def _against(row: Row, named: list[Row], metric: Metric) -> Row:
    base = next((other for other in named if other.baseline and other.setting == row.setting), None)
    if base is None or row.baseline:
        return row
    return replace(row, difference=difference(row.scores, base.scores, base.series, metric))


def difference(scores: Mapping[str, float], base: Mapping[str, float], name: str, metric: Metric) -> Difference | None:
    """Return scores against others, paired by the seeds that both have; None where there is none."""
    if not scores.keys() & base.keys():
        return None
    found = statistics.compare(_seeds(scores), _seeds(base))
    improvement = number(found.improvement)
    return Difference(
        baseline=name,
        mean=found.difference,
        low=number(found.low),
        high=number(found.high),
        n=found.n,
        t_p=number(found.t_p),
        permutation_p=number(found.permutation_p),
        floor=number(found.floor),
        improvement=improvement if improvement is None or metric.higher else 1 - improvement,
        detectable=statistics.detectable(found.std, found.n) if found.n > 1 else None,
        power=statistics.power_note(found, metric.unit),
    )


def _seeds(scores: Mapping[str, float]) -> dict[int, float]:
    return {int(seed): score for seed, score in scores.items()}


def _best(metric: Metric, made: list[Row]) -> tuple[Row, ...]:
    """Mark each setting's best mean; runs that left nothing to score rule a row out, for its mean leaves them out."""
    best: dict[str, float] = {}
    for row in made:
        if row.statistic is not None and not row.unscored:
            mean = round(row.statistic.mean, metric.digits)
            known = best.get(row.setting, mean)
            best[row.setting] = max(known, mean) if metric.higher else min(known, mean)
    return tuple(
        replace(
            row,
            best=row.statistic is not None
            and not row.unscored
            and round(row.statistic.mean, metric.digits) == best[row.setting],
        )
        for row in made
    )


def judged(tables: Sequence[tuple[Metric, Sequence[Row]]]) -> list[tuple[Row, ...]]:
    """Return the rows of all blocks with Holm's p, verdicts and marks: one correction over the whole report."""
    places = [
        (block, place, row.difference)
        for block, (_, listed) in enumerate(tables)
        for place, row in enumerate(listed)
        if row.difference is not None and row.difference.t_p is not None
    ]
    adjusted = statistics.holm([found.t_p for _, _, found in places if found.t_p is not None])
    made = [list(listed) for _, listed in tables]
    for (block, place, found), p in zip(places, adjusted, strict=True):
        higher = tables[block][0].higher
        seen = p < LEVEL
        verdict = ("better" if (found.mean > 0) == higher else "worse") if seen else ""
        reachable = found.floor is not None and found.floor <= LEVEL
        mark = next((mark for line, mark in _MARKS if p < line), "") if reachable else ""
        made[block][place] = replace(
            made[block][place], difference=replace(found, holm_p=p, verdict=verdict, mark=mark)
        )
    return [tuple(listed) for listed in made]
