"""Small tables of a block with several settings or a sweep: settings in rows, starts in columns."""

from __future__ import annotations

from embinit.format import NONE, compact, fixed
from embinit.reports.model import Part, Table, TableCell
from embinit.reports.scores import Metric, TableRow
from embinit.reports.writers.tables import mean, seeds

#: Largest number of columns of a small table.
_MAX_COLUMNS = 14
#: Decimals of a loss, as in the paper.
_LOSS_DIGITS = 2


def sweep_grid(part: Part) -> Table | None:
    """Return a sweep with a row for each line, a column for each place and the best means bold; None if it is too wide."""
    if part.sweep is None or not part.sweep.lines:
        return None
    by_label = {row.label: row for row in part.rows}
    places = sorted({point.x for line in part.sweep.lines.values() for point in line})
    if len(places) > _MAX_COLUMNS:
        return None
    lines = []
    for name, line in part.sweep.lines.items():
        rows = {point.x: by_label[point.label] for point in line}
        means = {x: round(row.statistic.mean, part.metric.digits) for x, row in rows.items() if row.statistic}
        scored = {x: value for x, value in means.items() if not rows[x].unscored}
        best = (max if part.metric.higher else min)(scored.values(), default=None)
        cells = [_cell(rows.get(x), part.metric, x in scored and scored[x] == best) for x in places]
        lines.append((TableCell(name), *cells))
    return Table("Bold is each line's highest mean", ("", *(compact(x) for x in places)), tuple(lines))


def grid(part: Part) -> Table | None:
    """Return a row for each setting, a column for each start, best means bold; None for a single setting."""
    names, settings, rows = _crossed(part)
    if len(settings) < 2 or not 1 < len(names) <= _MAX_COLUMNS or part.sweep is not None:
        return None
    lines = tuple(
        (TableCell(setting), *(_cell(rows.get((setting, name)), part.metric, None) for name in names))
        for setting in settings
    )
    return Table("", ("", *names), lines)


def paper_grid(part: Part) -> Table | None:
    """Return the table of `grid` with the paper's numbers beside ours; None for a single setting."""
    names, settings, rows = _crossed(part)
    if len(settings) < 2:
        return None
    lines = []
    for setting in settings:
        cells = [TableCell(setting)]
        for name in names:
            row = rows.get((setting, name))
            theirs = NONE
            if row is not None and row.paper is not None:
                theirs = f"{fixed(row.paper.mean, part.metric.digits)} ± {fixed(row.paper.std, part.metric.digits)}"
            cells += [_cell(row, part.metric, None), TableCell(theirs)]
        lines.append(tuple(cells))
    return Table("", ("", *(head for name in names for head in (f"{name}, ours", "paper"))), tuple(lines))


def loss_grid(part: Part) -> Table | None:
    """Return our lowest validation losses beside the paper's, with their epochs; None if the paper has no losses."""
    names, settings, rows = _crossed(part)
    if len(settings) < 2 or not any(row.paper is not None and row.paper.loss is not None for row in part.rows):
        return None
    lines = []
    for setting in settings:
        known = [row.loss for row in part.rows if row.setting == setting and row.loss is not None]
        lowest = round(min(known), _LOSS_DIGITS) if known else None
        cells = [TableCell(setting)]
        for name in names:
            row = rows.get((setting, name))
            loss, theirs = (None, None) if row is None else (row.loss, row.paper)
            strong = loss is not None and round(loss, _LOSS_DIGITS) == lowest
            cells.append(TableCell(_at(loss, row.epoch if row else None, 1), strong))
            cells.append(TableCell(NONE if theirs is None else _at(theirs.loss, theirs.epoch, 2)))
        lines.append(tuple(cells))
    header = ("", *(head for name in names for head in (f"{name}, ours", "paper")))
    return Table("Lowest validation loss and, in brackets, its epoch, both as means over seeds:", header, tuple(lines))


def _at(loss: float | None, epoch: float | None, digits: int) -> str:
    """Return `1.58 (11.7)`."""
    return NONE if loss is None else f"{fixed(loss, _LOSS_DIGITS)} ({fixed(epoch, digits)})"


def _crossed(part: Part) -> tuple[list[str], list[str], dict[tuple[str, str], TableRow]]:
    names = list(dict.fromkeys(row.series for row in part.rows))
    settings = list(dict.fromkeys(row.setting for row in part.rows))
    return names, settings, {(row.setting, row.series): row for row in part.rows}


def _cell(row: TableRow | None, metric: Metric, strong: bool | None) -> TableCell:
    """Return a row's mean ± σ with its mark and missing runs; bold if `strong` (by default, if the row is the best)."""
    if row is None:
        return TableCell(NONE)
    after = " ".join(text for text in (row.mark, seeds(row)) if text)
    return TableCell(mean(row.statistic, metric), row.best if strong is None else strong, after)
