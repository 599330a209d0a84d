"""A report as CSV: a line for each table row and each of its baselines, with every number in full."""

from __future__ import annotations

import csv
import io
from typing import Any

from embinit.reports.model import Part, Summary
from embinit.reports.scores import Difference, TableRow

COLUMNS = (
    "experiment",
    "block",
    "task",
    "row",
    "axes",
    "score",
    "split",
    "mean",
    "std",
    "seeds",
    "planned",
    "diverged",
    "low",
    "high",
    "interval",
    "epoch",
    "best",
    "baseline",
    "against",
    "difference",
    "difference_low",
    "difference_high",
    "pairs",
    "t_p",
    "holm_p",
    "permutation_p",
    "permutation_floor",
    "improvement",
    "verdict",
    "paper_table",
    "paper_mean",
    "paper_std",
    "paper_difference",
    "within_noise",
    "missing",
)


def spreadsheet(summary: Summary) -> str:
    """Return the report as CSV with a header; text that a spreadsheet would take for a formula begins with a '."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    measured = [(part, part.measured) for part in summary.parts if part.measured is not None]
    for part, table in measured:
        writer.writerow(["experiment", "block", *map(_plain, table.header)])
        for cells in table.rows:
            writer.writerow([_plain(summary.name), _plain(part.name), *(_plain(str(cell)) for cell in cells)])
    if measured:
        return out.getvalue()
    writer.writerow(COLUMNS)
    for part in summary.parts:
        for row in part.rows:
            for difference in row.differences or (None,):
                writer.writerow([_plain(value) for value in _line(summary, part, row, difference)])
    return out.getvalue()


def _line(summary: Summary, part: Part, row: TableRow, difference: Difference | None) -> list[Any]:
    stated, theirs = row.statistic, row.paper
    return [
        summary.name,
        part.name,
        part.task,
        row.label,
        "; ".join(f"{axis}={value}" for axis, value in row.axes),
        part.metric.name,
        part.metric.split,
        *((stated.mean, stated.std) if stated else (None, None)),
        len(row.scores),
        row.planned,
        row.diverged,
        *((stated.low, stated.high, stated.method) if stated else (None, None, None)),
        row.epoch,
        row.best,
        row.baseline,
        difference.baseline if difference else None,
        *(
            (difference.mean, difference.low, difference.high, difference.n, difference.t_p, difference.holm_p)
            if difference
            else [None] * 6
        ),
        *(
            (difference.permutation_p, difference.floor, difference.improvement, difference.verdict)
            if difference
            else [None] * 4
        ),
        *((theirs.table, theirs.mean, theirs.std, theirs.difference, theirs.within) if theirs else [None] * 5),
        part.missing,
    ]


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        value = " ".join(value.replace("\0", "").split())  # a line of the file stays a line
        return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value
    return value
