"""Rows of a block: runs that differ by seed alone, their statistics, and what they are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from embinit import statistics
from embinit.experiments.experiment import SAME, Axes, Baseline, Block, Planned
from embinit.experiments.runs.result import Result
from embinit.reports import metrics
from embinit.reports.analysis import published
from embinit.reports.scores import (
    Difference,
    EpochChoice,
    LengthBucket,
    LengthScores,
    Metric,
    PaperScore,
    ScoreName,
    TableRow,
)
from embinit.statistics import MeanInterval

Results = Mapping[str, Result]
#: p below which a difference counts, after Holm.
LEVEL = 0.05
#: Significant digits of a history that count: those that a small file keeps.
DIGITS = 4
_MARKS = ((0.001, "***"), (0.01, "**"), (LEVEL, "*"))


def rows(
    block: Block, results: Results, baselines: Sequence[Baseline], metric: Metric | None = None
) -> tuple[TableRow, ...]:
    """Return a block's rows, setting by setting in the file's order, compared with their baselines, best marked."""
    metric = metric or metrics.metric(block.score, block.split)
    compared = compared_axes(block, [one.recipe for one in baselines])
    varied = varied_axes(block)
    made = [_row(block, axes, runs, results, metric, compared, varied) for axes, runs in grouped(block).items()]
    settings = list(dict.fromkeys(row.setting for row in made))
    made.sort(key=lambda row: settings.index(row.setting))
    return _best(metric, _compared(made, _bases(made, baselines, compared, varied), metric))


def grouped(block: Block) -> dict[Axes, list[Planned]]:
    """Return a block's runs by their axes."""
    groups: dict[Axes, list[Planned]] = {}
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


def compared_axes(block: Block, baselines: Sequence[str]) -> tuple[str, ...]:
    """Return the axes whose values are compared: recipes, or else those on which a baseline is found."""
    names = {axis: None for planned in block.runs for axis, _ in planned.axes}
    recipes = tuple(axis for axis in names if published.is_recipe(axis))
    found = {axis: None for planned in block.runs for axis, value in planned.axes if value in baselines}
    return recipes or tuple(found)


def finished(runs: Sequence[Planned], results: Results) -> list[Result]:
    """Return the results that are there, by seed."""
    found = {planned.spec.seed: results[planned.spec.key] for planned in runs if planned.spec.key in results}
    return [found[seed] for seed in sorted(found)]


def statistic(scores: Sequence[float]) -> MeanInterval | None:
    """Return mean, σ and interval of scores; None where there are none."""
    return statistics.cell(scores) if scores else None


def _row(
    block: Block,
    axes: Axes,
    runs: list[Planned],
    results: Results,
    metric: Metric,
    compared: tuple[str, ...],
    varied: tuple[str, ...],
) -> TableRow:
    done = finished(runs, results)
    found = {result.spec.seed: result.scores.get(block.split, {}).get(block.score) for result in done}
    scores = {str(seed): metric.factor * score for seed, score in found.items() if score is not None}
    epochs = [result.best_epoch for result in done if result.best_epoch]
    losses = {str(result.spec.seed): low for result in done if (low := _lowest_loss(result)) is not None}
    stated = statistic(list(scores.values()))
    others = _others(block, done)
    series = " / ".join(value for axis, value in axes if axis in compared)
    rest = [metrics.setting(axis, value) for axis, value in axes if axis in varied and axis not in compared]
    told = [(axis, value) for axis, value in axes if axis in varied or axis in compared]
    recipes = " / ".join(dict.fromkeys(side.recipe for _, side in runs[0].spec.sides))
    return TableRow(
        label=metrics.SEPARATOR.join([*([series] if series else []), *rest]) or recipes,
        axes=axes,
        series=series or metrics.SEPARATOR.join(rest) or recipes,
        setting=metrics.SEPARATOR.join(rest) if series else "",
        baseline=False,
        planned=len({planned.spec.seed for planned in runs}),
        diverged=sum(result.diverged for result in done),
        unscored=len(done) - len(scores),
        scores=scores,
        statistic=stated,
        epoch=sum(epochs) / len(epochs) if epochs else None,
        losses=losses,
        paper=_beside(block, told, runs[0], block.score, block.split, stated),
        others=others,
        others_paper={
            name: theirs
            for name, one in others.items()
            if (theirs := _beside(block, told, runs[0], name.score, name.split, one)) is not None
        },
        lengths=_lengths(done),
        epoch_choices=_epoch_choices(block.score, done, metric),
    )


def _beside(
    block: Block, told: list[tuple[str, str]], first: Planned, score: str, split: str, stated: MeanInterval | None
) -> PaperScore | None:
    if score not in published.SCORES:
        return None
    printed = published.value(block.paper, told, split, first.spec)
    return published.beside(printed, stated, published.comparable(block.paper, first.spec, score))


def _others(block: Block, done: list[Result]) -> dict[ScoreName, MeanInterval]:
    names = {(split, score): None for result in done for split, scores in result.scores.items() for score in scores}
    made = {}
    for split, score in names:
        if (split, score) != (block.split, block.score):
            factor = metrics.metric(score, split).factor
            found = [r.scores[split][score] * factor for r in done if score in r.scores.get(split, {})]
            stated = statistic(found)
            if stated is not None:
                made[ScoreName(split, score)] = stated
    return made


def _lengths(done: Sequence[Result]) -> dict[ScoreName, tuple[LengthScores, ...]]:
    """Return what runs reach on each stretch of length; nothing where some that have scores were not scored so."""
    if not all(result.lengths for result in done if result.scores):
        return {}
    made: dict[ScoreName, dict[LengthBucket, dict[str, float]]] = {}
    for result in done:
        for split, scores in result.lengths.items():
            for score, found in scores.items():
                factor, known = metrics.metric(score, split).factor, made.setdefault(ScoreName(split, score), {})
                for one in found:
                    reached = known.setdefault(LengthBucket(one.low, one.high, one.sentences), {})
                    reached[str(result.spec.seed)] = factor * one.score
    return {
        name: tuple(LengthScores(*bucket, found) for bucket, found in known.items()) for name, known in made.items()
    }


def _epoch_choices(score: str, done: Sequence[Result], metric: Metric) -> tuple[EpochChoice, ...]:
    """Return a classifier's validation score at the epoch of the highest score, and at that of the lowest loss."""
    if metrics.kind(score) != "classification":
        return ()
    histories = [
        [
            (epoch, _short(value), _short(loss))
            for epoch, record in enumerate(result.history, 1)
            if (value := record.get(score)) is not None and (loss := record.get("valid loss")) is not None
        ]
        for result in done
    ]
    known = [history for history in histories if history]
    choices = {
        "highest score": [max(history, key=lambda one: one[1]) for history in known],
        "lowest loss": [min(history, key=lambda one: one[2]) for history in known],
    }
    return tuple(
        EpochChoice(criterion, sum(epoch for epoch, _, _ in chosen) / len(chosen), stated)
        for criterion, chosen in choices.items()
        if (stated := statistic([metric.factor * value for _, value, _ in chosen])) is not None
    )


def _short(value: float) -> float:
    """Return a number of a history in the digits that a small file keeps."""
    return float(f"{value:.{DIGITS}g}")


def _lowest_loss(result: Result) -> float | None:
    """Return the lowest validation loss of a run that was scored."""
    found = [loss for record in result.history if (loss := record.get("valid loss")) is not None]
    return _short(min(found)) if found and result.best_epoch else None


def _bases(
    made: Sequence[TableRow], baselines: Sequence[Baseline], compared: tuple[str, ...], varied: tuple[str, ...]
) -> list[dict[int | str, bool]]:
    """Return for each row the places of those that it is compared with, perhaps itself, or a name that is not there.

    True is a baseline of the report; a row that is compared with itself in another setting makes none of that.
    """

    def place(row: TableRow, base: Baseline) -> int | str:
        pinned = dict(base.at)
        wanted = {axis: pinned.get(axis, value) for axis, value in row.axes if axis in varied}
        wanted |= {axis: value if base.recipe == SAME else base.recipe for axis, value in row.axes if axis in compared}
        fits = (number for number, other in enumerate(made) if wanted.items() <= dict(other.axes).items())
        return next(fits, base.recipe) if compared else base.recipe

    found: list[dict[int | str, bool]] = []
    for row in made:
        places: dict[int | str, bool] = {}
        for base in baselines:
            where = place(row, base)
            places[where] = places.get(where, False) or base.recipe != SAME
        found.append(places)
    return found


def _compared(made: Sequence[TableRow], bases: Sequence[Mapping[int | str, bool]], metric: Metric) -> list[TableRow]:
    """Return rows with their differences; of two that are baselines of each other, the one that is named later has it."""
    named = {number for places in bases for number, plain in places.items() if plain}
    compared = []
    for number, (row, places) in enumerate(zip(made, bases, strict=True)):
        order = list(places)
        later = order[order.index(number) :] if number in places else []
        found: dict[str, Difference | None] = {}
        for place in order:
            if not isinstance(place, int):
                found[place] = None
            elif place != number and not (place in later and number in bases[place]):
                title = made[place].series if made[place].setting == row.setting else made[place].label
                found[title] = difference(row.scores, made[place].scores, title, metric)
        there = [one for one in found.values() if one is not None]
        compared.append(
            replace(
                row,
                baseline=number in named,
                difference=there[0] if there else None,
                also=tuple(there[1:]),
                lacking=tuple(title for title, one in found.items() if one is None),
            )
        )
    return compared


def difference(scores: Mapping[str, float], base: Mapping[str, float], name: str, metric: Metric) -> Difference | None:
    """Return scores against others, paired by the seeds that both have; None where there is none."""
    if not scores.keys() & base.keys():
        return None
    found = statistics.compare(_seeds(scores), _seeds(base))
    facts = vars(found) | {"improvement": found.improvement if metric.higher else 1 - found.improvement}
    return Difference(
        **facts,
        baseline=name,
        detectable=None if found.std is None else statistics.detectable(found.std, found.n),
        power=statistics.power_note(found, metric.unit),
    )


def _seeds(scores: Mapping[str, float]) -> dict[int, float]:
    return {int(seed): score for seed, score in scores.items()}


def _best(metric: Metric, made: list[TableRow]) -> tuple[TableRow, ...]:
    """Mark each setting's best mean; runs that left nothing to score rule a row out, for its mean leaves them out.

    A row that is alone in its setting is the best of nothing.
    """
    best: dict[str, float] = {}
    rivals = Counter(row.setting for row in made)
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
            and rivals[row.setting] > 1
            and round(row.statistic.mean, metric.digits) == best[row.setting],
        )
        for row in made
    )


def judged(tables: Sequence[tuple[Metric, Sequence[TableRow]]]) -> list[tuple[TableRow, ...]]:
    """Return the rows of all blocks with Holm's p, verdicts and marks: one correction over the whole report."""
    found = [(metric, one) for metric, listed in tables for row in listed for one in row.differences]
    decided = iter(decide(found))
    made = []
    for _, listed in tables:
        rows_of = []
        for row in listed:
            ones = [next(decided) for _ in row.differences]
            rows_of.append(replace(row, difference=ones[0], also=tuple(ones[1:])) if ones else row)
        made.append(tuple(rows_of))
    return made


def decide(found: Sequence[tuple[Metric, Difference]]) -> list[Difference]:
    """Return differences with Holm's p over all of them, verdicts and marks."""
    adjusted = iter(statistics.holm([one.t_p for _, one in found if one.t_p is not None]))
    return [one if one.t_p is None else _decided(one, next(adjusted), metric) for metric, one in found]


def _decided(found: Difference, p: float, metric: Metric) -> Difference:
    verdict = ("better" if (found.mean > 0) == metric.higher else "worse") if p < LEVEL else ""
    reachable = found.floor <= LEVEL
    mark = next((mark for line, mark in _MARKS if p < line), "") if reachable else ""
    return replace(found, holm_p=p, verdict=verdict, mark=mark)
