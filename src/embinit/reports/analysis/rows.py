"""Table rows of a block: runs that differ only in their seed, their statistics, and their differences to baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from embinit import statistics
from embinit.experiments.experiment import SAME, Axes, Baseline, Block, Planned
from embinit.experiments.runs.length_buckets import LengthBucket
from embinit.experiments.runs.result import Result
from embinit.reports import metrics
from embinit.reports.analysis import published
from embinit.reports.scores import (
    Difference,
    EpochChoice,
    LengthScores,
    Metric,
    PaperScore,
    ScoreName,
    TableRow,
)
from embinit.statistics import MeanInterval

Results = Mapping[str, Result]
#: Differences count below this p, after Holm's correction.
LEVEL = 0.05
#: Significant digits of a history; a results file keeps as many.
DIGITS = 4
_MARKS = ((0.001, "***"), (0.01, "**"), (LEVEL, "*"))


def rows(
    block: Block, results: Results, baselines: Sequence[Baseline], metric: Metric | None = None
) -> tuple[TableRow, ...]:
    """Return a block's table rows, setting by setting in the file's order, with differences and the best marked."""
    metric = metric or metrics.metric(block.score, block.split)
    compared = compared_axes(block, [baseline.recipe for baseline in baselines])
    varied = varied_axes(block)
    table_rows = [_row(block, axes, runs, results, metric, compared, varied) for axes, runs in grouped(block).items()]
    settings = list(dict.fromkeys(row.setting for row in table_rows))
    table_rows.sort(key=lambda row: settings.index(row.setting))
    return _best(metric, _compared(table_rows, _bases(table_rows, baselines, compared, varied), metric))


def grouped(block: Block) -> dict[Axes, list[Planned]]:
    """Return a block's runs by their axes."""
    groups: dict[Axes, list[Planned]] = {}
    for planned in block.runs:
        groups.setdefault(planned.axes, []).append(planned)
    return groups


def varied_axes(block: Block) -> tuple[str, ...]:
    """Return the axes that have several values in a block."""
    values: dict[str, set[str]] = {}
    for planned in block.runs:
        for axis, value in planned.axes:
            values.setdefault(axis, set()).add(value)
    return tuple(axis for axis, distinct in values.items() if len(distinct) > 1)


def compared_axes(block: Block, baselines: Sequence[str]) -> tuple[str, ...]:
    """Return the axes whose values are compared: recipes, or otherwise the axes that have a baseline's value."""
    names = {axis: None for planned in block.runs for axis, _ in planned.axes}
    recipes = tuple(axis for axis in names if published.is_recipe(axis))
    with_baselines = {axis: None for planned in block.runs for axis, value in planned.axes if value in baselines}
    return recipes or tuple(with_baselines)


def finished(runs: Sequence[Planned], results: Results) -> list[Result]:
    """Return the finished results in the order of their seeds."""
    by_seed = {planned.spec.seed: results[planned.spec.key] for planned in runs if planned.spec.key in results}
    return [by_seed[seed] for seed in sorted(by_seed)]


def statistic(scores: Sequence[float]) -> MeanInterval | None:
    """Return the mean, σ and interval of scores; None if there are none."""
    return statistics.mean_interval(scores) if scores else None


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
    raw = {result.spec.seed: result.scores.get(block.split, {}).get(block.score) for result in done}
    scores = {str(seed): metric.factor * score for seed, score in raw.items() if score is not None}
    epochs = [result.best_epoch for result in done if result.best_epoch]
    losses = {str(result.spec.seed): low for result in done if (low := _lowest_loss(result)) is not None}
    stated = statistic(list(scores.values()))
    others = _others(block, done)
    series = " / ".join(value for axis, value in axes if axis in compared)
    rest = [metrics.setting(axis, value) for axis, value in axes if axis in varied and axis not in compared]
    named_axes = [(axis, value) for axis, value in axes if axis in varied or axis in compared]
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
        paper=_beside(block, named_axes, runs[0], block.score, block.split, stated),
        others=others,
        others_paper={
            name: theirs
            for name, stated_other in others.items()
            if (theirs := _beside(block, named_axes, runs[0], name.score, name.split, stated_other)) is not None
        },
        lengths=_lengths(done),
        epoch_choices=_epoch_choices(block.score, done, metric),
    )


def _beside(
    block: Block, named_axes: list[tuple[str, str]], first: Planned, score: str, split: str, stated: MeanInterval | None
) -> PaperScore | None:
    if score not in published.SCORES:
        return None
    printed = published.value(block.paper, named_axes, split, first.spec)
    return published.beside(printed, stated, published.comparable(block.paper, first.spec, score))


def _others(block: Block, done: list[Result]) -> dict[ScoreName, MeanInterval]:
    names = {(split, score): None for result in done for split, scores in result.scores.items() for score in scores}
    means = {}
    for split, score in names:
        if (split, score) != (block.split, block.score):
            factor = metrics.metric(score, split).factor
            values = [r.scores[split][score] * factor for r in done if score in r.scores.get(split, {})]
            stated = statistic(values)
            if stated is not None:
                means[ScoreName(split, score)] = stated
    return means


def _lengths(done: Sequence[Result]) -> dict[ScoreName, tuple[LengthScores, ...]]:
    """Return the scores of runs by length; nothing if a run with scores has none by length."""
    if not all(result.lengths for result in done if result.scores):
        return {}
    by_score: dict[ScoreName, dict[LengthBucket, dict[str, float]]] = {}
    for result in done:
        for split, scores in result.lengths.items():
            for score, buckets in scores.items():
                factor, known = metrics.metric(score, split).factor, by_score.setdefault(ScoreName(split, score), {})
                for bucket, value in buckets.items():
                    known.setdefault(bucket, {})[str(result.spec.seed)] = factor * value
    return {
        name: tuple(LengthScores(*bucket, buckets) for bucket, buckets in known.items())
        for name, known in by_score.items()
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
        "highest score": [max(history, key=lambda record: record[1]) for history in known],
        "lowest loss": [min(history, key=lambda record: record[2]) for history in known],
    }
    return tuple(
        EpochChoice(criterion, sum(epoch for epoch, _, _ in chosen) / len(chosen), stated)
        for criterion, chosen in choices.items()
        if (stated := statistic([metric.factor * value for _, value, _ in chosen])) is not None
    )


def _short(value: float) -> float:
    """Return a number in the digits that a results file keeps."""
    return float(f"{value:.{DIGITS}g}")


def _lowest_loss(result: Result) -> float | None:
    """Return the lowest validation loss of a run that was scored."""
    losses = [loss for record in result.history if (loss := record.get("valid loss")) is not None]
    return _short(min(losses)) if losses and result.best_epoch else None


def _bases(
    rows: Sequence[TableRow], baselines: Sequence[Baseline], compared: tuple[str, ...], varied: tuple[str, ...]
) -> list[dict[int | str, bool]]:
    """Return the baselines of each row: the number of the baseline's row, or its name if it has no row.

    The value tells whether that row is a baseline of the report. A row's own recipe in another setting is none.
    """

    def place(row: TableRow, base: Baseline) -> int | str:
        pinned = dict(base.at)
        wanted = {axis: pinned.get(axis, value) for axis, value in row.axes if axis in varied}
        wanted |= {axis: value if base.recipe == SAME else base.recipe for axis, value in row.axes if axis in compared}
        fits = (number for number, other in enumerate(rows) if wanted.items() <= dict(other.axes).items())
        return next(fits, base.recipe) if compared else base.recipe

    bases: list[dict[int | str, bool]] = []
    for row in rows:
        places: dict[int | str, bool] = {}
        for base in baselines:
            where = place(row, base)
            places[where] = places.get(where, False) or base.recipe != SAME
        bases.append(places)
    return bases


def _compared(rows: Sequence[TableRow], bases: Sequence[Mapping[int | str, bool]], metric: Metric) -> list[TableRow]:
    """Return rows with their differences. Of two rows that are baselines of each other, the later one has the difference."""
    named = {number for places in bases for number, plain in places.items() if plain}
    compared = []
    for number, (row, places) in enumerate(zip(rows, bases, strict=True)):
        order = list(places)
        later = order[order.index(number) :] if number in places else []
        differences: dict[str, Difference | None] = {}
        for place in order:
            if not isinstance(place, int):
                differences[place] = None
            elif place != number and not (place in later and number in bases[place]):
                title = rows[place].series if rows[place].setting == row.setting else rows[place].label
                differences[title] = difference(row.scores, rows[place].scores, title, metric)
        compared.append(
            replace(
                row,
                baseline=number in named,
                differences=tuple(gap for gap in differences.values() if gap is not None),
                lacking=tuple(title for title, gap in differences.items() if gap is None),
            )
        )
    return compared


def difference(scores: Mapping[str, float], base: Mapping[str, float], name: str, metric: Metric) -> Difference | None:
    """Return the difference of scores to others, paired by seed; None if they share no seed."""
    if not scores.keys() & base.keys():
        return None
    comparison = statistics.compare(_seeds(scores), _seeds(base))
    facts = vars(comparison) | {"improvement": comparison.improvement if metric.higher else 1 - comparison.improvement}
    return Difference(
        **facts,
        baseline=name,
        detectable=None if comparison.std is None else statistics.detectable(comparison.std, comparison.n),
        power=statistics.power_note(comparison, metric.unit),
    )


def _seeds(scores: Mapping[str, float]) -> dict[int, float]:
    return {int(seed): score for seed, score in scores.items()}


def _best(metric: Metric, rows: list[TableRow]) -> tuple[TableRow, ...]:
    """Mark the best mean of each setting. A row with an unscored run is never best, because its mean leaves the run out.

    A setting with a single row has no best row.
    """
    best: dict[str, float] = {}
    rivals = Counter(row.setting for row in rows)
    for row in rows:
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
        for row in rows
    )


def with_verdicts(tables: Sequence[tuple[Metric, Sequence[TableRow]]]) -> list[tuple[TableRow, ...]]:
    """Return the rows of all blocks with Holm's p, verdicts and marks; all differences are corrected together."""
    differences = [
        (metric, difference) for metric, listed in tables for row in listed for difference in row.differences
    ]
    decided = iter(decide(differences))
    return [
        tuple(replace(row, differences=tuple(next(decided) for _ in row.differences)) for row in listed)
        for _, listed in tables
    ]


def decide(differences: Sequence[tuple[Metric, Difference]]) -> list[Difference]:
    """Return differences with Holm's p over all of them, verdicts and marks."""
    adjusted = iter(statistics.holm([difference.t_p for _, difference in differences if difference.t_p is not None]))
    return [
        difference if difference.t_p is None else _decided(difference, next(adjusted), metric)
        for metric, difference in differences
    ]


def _decided(difference: Difference, p: float, metric: Metric) -> Difference:
    verdict = ("better" if (difference.mean > 0) == metric.higher else "worse") if p < LEVEL else ""
    reachable = difference.floor <= LEVEL
    mark = next((mark for line, mark in _MARKS if p < line), "") if reachable else ""
    return replace(difference, holm_p=p, verdict=verdict, mark=mark)
