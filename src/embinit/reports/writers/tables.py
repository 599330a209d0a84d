"""A block's tables as plain cells, for every writer."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.format import NONE, compact, fixed, interval, listed, plural, probability, share, signed
from embinit.reports import metrics
from embinit.reports.analysis.rows import statistic
from embinit.reports.metrics import LOSS
from embinit.reports.model import Part, Summary, Table, TableCell
from embinit.reports.scores import Choice, Difference, Metric, ScoreName, TableRow
from embinit.statistics import MeanInterval


def mean(stated: MeanInterval | None, metric: Metric) -> str:
    """Return `38.7 ± 0.3`; `38.7` for one seed and – for none."""
    if stated is None:
        return NONE
    spread = "" if stated.std is None else f" ± {fixed(stated.std, metric.digits)}"
    return fixed(stated.mean, metric.digits) + spread


def seeds(row: TableRow) -> str:
    """Return the count of an incomplete row: `(2/5)`, `(4/5, 1 diverged)`; empty for a complete one."""
    there = len(row.scores)
    lacks = [f"{there}/{row.planned}"] if there < row.planned else []
    lacks += [f"{row.diverged} diverged"] if row.diverged else []
    return f"({', '.join(lacks)})" if lacks else ""


def against(difference: Difference | None, metric: Metric) -> str:
    """Return `+1.4 [0.9, 1.9]**`."""
    if difference is None:
        return NONE
    bounds = "" if difference.low is None else f" {interval(difference.low, difference.high, metric.digits, sign=True)}"
    return f"{signed(difference.mean, metric.digits)}{bounds}{difference.mark}"


def within(value: bool | None) -> str:
    """Return `yes` or `no`: whether a difference to the paper lies within noise."""
    return NONE if value is None else "yes" if value else "no"


def caption(part: Part) -> str:
    """Return the caption of a block's numbers: task, score, split and seeds."""
    counts = sorted({len(row.scores) for row in part.rows if row.scores})
    many = (
        ""
        if not counts
        else f" over {plural(counts[-1], 'seed')}"
        if len(counts) == 1
        else (f" over {counts[0]} to {counts[-1]} seeds")
    )
    spread = "mean ± σ" if counts and counts[-1] > 1 else "mean"
    split = f" on {part.metric.split}" if part.metric.split else ""
    return f"{part.task}, {part.metric.label}{split}: {spread}{many}"


def against_header(part: Part) -> tuple[str, ...]:
    """Return the header of a block's differences: `against xavier`; several baselines have a column of their own."""
    differences = [difference for row in part.rows for difference in row.differences]
    if (
        any(len(row.differences) > 1 for row in part.rows)
        or len({difference.baseline for difference in differences}) > 1
    ):
        return ("against", "difference")
    return (f"against {differences[0].baseline}",) if differences else ()


def block_table(part: Part) -> Table:
    """Return a block as a table: a line for each row and each further baseline, without empty columns."""
    if part.measured is not None:
        return part.measured
    metric = part.metric
    compared = against_header(part)
    printed = any(row.paper for row in part.rows)
    header = ["start", metric.label, "95 %"]
    if compared:
        header += [*compared, "p (Holm)"]
    if printed:
        header += ["paper", "ours − paper", "within noise"]
    if any(row.losses for row in part.rows):
        header.append(LOSS.label)
    lines = []
    for row in part.rows:
        stated, theirs = row.statistic, row.paper
        bounds = interval(stated.low, stated.high, metric.digits) if stated else NONE
        cells = [TableCell(row.label), TableCell(mean(stated, metric), row.best, seeds(row)), TableCell(bounds)]
        cells += _difference(row, row.difference, metric, len(compared)) if compared else []
        if printed:
            cells += (
                [TableCell(NONE)] * 3
                if theirs is None
                else [
                    TableCell(f"{fixed(theirs.mean, metric.digits)} ± {fixed(theirs.std, metric.digits)}"),
                    TableCell(signed(theirs.difference, metric.digits)),
                    TableCell(within(theirs.within)),
                ]
            )
        if LOSS.label in header:
            cells.append(TableCell(mean(statistic(list(row.losses.values())), LOSS)))
        lines.append(tuple(cells))
        for difference in row.differences[1:]:
            further = _difference(row, difference, metric, len(compared))
            lines.append((*[TableCell("")] * 3, *further, *[TableCell("")] * (len(header) - 3 - len(further))))
    return Table(caption(part), tuple(header), tuple(lines))


def _difference(row: TableRow, difference: Difference | None, metric: Metric, columns: int) -> list[TableCell]:
    """Return the cells of one difference: its baseline (if there are two columns), the difference, p."""
    none = "baseline" if row.baseline else NONE
    text = none if difference is None else against(difference, metric)
    named = [TableCell(NONE if difference is None else difference.baseline)] if columns > 1 else []
    return [*named, TableCell(text), TableCell(probability(difference.holm_p) if difference else NONE)]


def overview(summary: Summary) -> Table | None:
    """Return all blocks in one table, a line each and a column for each recipe; None if that adds nothing."""
    parts = [part for part in summary.parts if part.sweep is None and part.measured is None]
    comparable = [part for part in parts if len({row.setting for row in part.rows}) == 1]
    series = [name for name in summary.colors if any(row.series == name for part in comparable for row in part.rows)]
    if len(comparable) < 2 or len(series) > 8:
        return None
    lines = []
    for part in comparable:
        by_series = {row.series: row for row in part.rows}
        label = part.metric.label
        name = part.name if part.name.endswith(f", {label}") else f"{part.name}, {label}"
        cells = [TableCell(name, link=f"#part-{summary.parts.index(part)}")]
        for name in series:
            row = by_series.get(name)
            if part.missing:
                cells.append(TableCell("not run"))
            elif row is None or row.statistic is None:
                cells.append(TableCell(NONE))
            else:
                after = " ".join(text for text in (row.mark, seeds(row)) if text)
                cells.append(TableCell(mean(row.statistic, part.metric), row.best, after))
        lines.append(tuple(cells))
    return Table("All blocks", ("block", *series), tuple(lines))


def others(part: Part, score: str = "") -> Table | None:
    """Return the other scores, or one score on other splits, a column each; None if there are none."""
    others = {name: metric for name, metric in other_metrics(part).items() if score in ("", metric.name)}
    if not others:
        return None
    header = ("start", *(f"{metric.label} ({metric.split})" for metric in others.values()))
    lines = tuple(
        (TableCell(row.label), *(_other(row, name, metric) for name, metric in others.items())) for row in part.rows
    )
    return Table("Other scores", header, lines)


def other_metrics(part: Part) -> dict[ScoreName, Metric]:
    """Return the metric of each other score: its name in `TableRow.others` -> the metric."""
    names = dict.fromkeys(name for row in part.rows for name in row.others)
    return {name: metrics.metric(name.score, name.split) for name in names}


def _other(row: TableRow, name: ScoreName, metric: Metric) -> TableCell:
    theirs = row.others_paper.get(name)
    after = f"(paper {fixed(theirs.mean, metric.digits)} ± {fixed(theirs.std, metric.digits)})" if theirs else ""
    return TableCell(mean(row.others.get(name), metric), after=after)


def tests(part: Part) -> Table | None:
    """Return every test of a block's differences, a line each; None if nothing is compared."""
    compared = [(row, difference) for row in part.rows for difference in row.differences]
    if not compared:
        return None
    header = ("start", "against", "pairs", "t test p", "p (Holm)", "permutation p", "its floor", "improvement")
    lines = tuple(
        tuple(
            TableCell(text)
            for text in (
                row.label,
                difference.baseline,
                str(difference.n),
                *(
                    probability(p)
                    for p in (difference.t_p, difference.holm_p, difference.permutation_p, difference.floor)
                ),
                share(difference.improvement),
            )
        )
        for row, difference in compared
    )
    return Table("Tests in full", header, lines, words=2)


def epoch_choices(part: Part) -> Table | None:
    """Return the validation scores by both criteria for the epoch; None if the block is no classification, or a sweep."""
    rows = [row for row in part.rows if row.epoch_choices]
    if not rows or part.sweep is not None:
        return None
    metric = part.metric
    lines = tuple(
        (
            TableCell(row.label),
            *(
                TableCell(text)
                for choice in row.epoch_choices
                for text in (fixed(choice.epoch, 1), mean(choice.score, metric))
            ),
        )
        for row in rows
    )
    criteria = [choice.criterion for choice in rows[0].epoch_choices]
    header = ("start", *(f"{text}, {name}" for name in criteria for text in ("epoch", metric.label)))
    return Table("Validation scores by both criteria for the epoch; the first one is kept", header, lines)


def shapes(part: Part) -> Table | None:
    """Return the embedding matrices before training, a line each; None if they are not known."""
    if not part.shapes:
        return None
    header = ("matrix", "rows × dim", "σ", "mean", "min", "max", "ratio", "types found", "tokens found")
    printed = any(shape.paper is not None for shape in part.shapes)
    lines = []
    for shape in part.shapes:
        texts = [
            f"{shape.label}, {shape.side}" if len({other.side for other in part.shapes}) > 1 else shape.label,
            f"{shape.rows:,} × {shape.dim}",
            *(compact(value) for value in (shape.std, shape.mean, shape.min, shape.max, shape.ratio)),
            share(shape.types),
            share(shape.tokens),
        ]
        texts += [compact(shape.paper)] if printed else []
        lines.append(tuple(TableCell(text) for text in texts))
    return Table("Embedding matrices", (*header, *(["paper σ"] if printed else [])), tuple(lines))


def selection_table(choices: Sequence[Choice]) -> Table | None:
    """Return each choice and its differences on held-out seeds, a line each; None if nothing was chosen or named."""
    if not choices:
        return None
    lines: list[tuple[TableCell, ...]] = []
    for choice in choices:
        none = "not run yet" if choice.named else "no run on other seeds"
        held_out = none if choice.held_out is None else f"{mean(choice.held_out, choice.metric)} {choice.metric.label}"
        how = " (named beforehand)" if choice.named else "" if choice.complete else " (so far)"
        head = (choice.block, f"{choice.label}{how}", mean(choice.there, choice.metric), held_out)
        for difference in choice.differences or (None,):
            first = difference is None or difference is choice.differences[0]
            texts = (NONE,) * 3
            if difference is not None:
                texts = (difference.baseline, against(difference, choice.metric), probability(difference.holm_p))
            lines.append(tuple(TableCell(text) for text in (*(head if first else ("",) * 4), *texts)))
    header = ("block", "chosen", "mean there", "held out", "against", "difference", "p (Holm)")
    return Table(_selection_caption(choices), header, tuple(lines), words=2)


def _selection_caption(choices: Sequence[Choice]) -> str:
    seeds = listed(sorted({seed for choice in choices for seed in choice.seeds}, key=int))
    parts = [f"Chosen on seeds {seeds}, judged on others"] if seeds else []
    if any(choice.named for choice in choices):
        parts.append(f"{'named' if parts else 'Named'} beforehand: in the file before the block was run")
    lines = "the lines of each kind by itself" if len(parts) > 1 else "the lines of this table alone"
    return f"{'; '.join(parts)}; p is Holm's over {lines}"
