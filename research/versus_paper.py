"""The page that compares our numbers with the paper's, table by table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embinit.format import fixed, signed
from embinit.reports.model import Part, Summary, Table, TableCell
from embinit.reports.scores import Metric, TableRow
from embinit.reports.writers import tables
from embinit.reports.writers.completed import completed_only
from embinit.reports.writers.markdown import table, text
from research import setting_tables

#: Replaces the difference if our number and the paper's are of different kinds.
_NOT_COMPARABLE = "not comparable"
_HEADER = ("block", "start", "ours", "paper", "ours − paper", "within noise", "best epoch", "paper")


def section(summaries: Sequence[Summary]) -> list[str]:
    """Return the lines of the page; none if the paper has no number for any block that was run."""
    by_table: dict[str, dict[tuple[str, tuple[object, ...]], Part]] = {}
    for part in (part for summary in summaries for part in completed_only(summary).parts):
        for name in dict.fromkeys(row.paper.table for row in part.rows if row.paper is not None):
            # Table 7 adds a row to blocks of Table 1.
            table_rows = tuple(row for row in part.rows if row.paper is not None and row.paper.table == name)
            # Figure 1 repeats runs of Table 1, and several files may contain the same block.
            key = tuple((row.label, row.statistic) for row in table_rows)
            by_table.setdefault(name, {}).setdefault((part.name, key), replace(part, rows=table_rows))
    if not by_table:
        return []
    lines = ["# Our numbers beside the paper's", ""]
    for name in sorted(by_table):
        lines += [f"## {text(name)}", "", *_blocks(list(by_table[name].values()))]
    lines += [
        "Within noise: our 95 % interval reaches the paper's mean ± its printed σ. Not comparable: trained on other data "
        "than the paper's or on part of it, or BLEU over other tokens; only the order of the starts can be "
        "compared. The best epoch is the epoch whose weights were scored, as a mean over seeds.",
        "",
    ]
    sources = dict(source for name in by_table for part in by_table[name].values() for source in part.sources)
    if sources:
        lines += ["The vectors of these blocks:", ""]
        lines += [f"- {text(name)}: {text(about)}" for name, about in sources.items()] + [""]
    return lines


def _blocks(parts: Sequence[Part]) -> list[str]:
    """Return one table for all blocks with a single setting, then a small table for each other block."""
    rows = [row for part in parts if setting_tables.paper_grid(part) is None for row in _rows(part)]
    lines = [table(Table("", _HEADER, tuple(rows), words=2)), ""] if rows else []
    for part in parts:
        crossed = setting_tables.paper_grid(part)
        if crossed is not None:
            lines += [f"{text(part.name)}, {text(part.metric.label)} on {text(part.metric.split)}:", ""]
            lines += [table(crossed), ""]
        losses = setting_tables.loss_grid(part)
        if losses is not None:
            lines += [text(losses.caption), "", table(losses), ""]
    return lines


def _rows(part: Part) -> list[tuple[TableCell, ...]]:
    """Return the rows of a block, then its rows on other splits of the paper (MNLI's mismatched one)."""
    lines = _table_rows(part.rows, part.metric, f"{part.name} ({part.metric.label})")
    for name, metric in tables.other_metrics(part).items():
        rows_shown = [
            replace(r, statistic=r.others.get(name), paper=r.others_paper.get(name), best=False) for r in part.rows
        ]
        lines += _table_rows(rows_shown, metric, f"{part.name}, on {metric.split} ({metric.label})")
    return lines


def _table_rows(rows: Sequence[TableRow], metric: Metric, name: str) -> list[tuple[TableCell, ...]]:
    lines: list[tuple[TableCell, ...]] = []
    for row in rows:
        theirs = row.paper
        if theirs is not None:
            difference = signed(theirs.difference, metric.digits) if theirs.difference is not None else _NOT_COMPARABLE
            lines.append(
                (
                    TableCell("" if lines else name),
                    TableCell(row.label),
                    TableCell(tables.mean(row.statistic, metric), row.best, tables.seeds(row)),
                    TableCell(f"{fixed(theirs.mean, metric.digits)} ± {fixed(theirs.std, metric.digits)}"),
                    TableCell(difference),
                    TableCell(tables.within(theirs.within)),
                    TableCell(fixed(row.epoch, 1)),
                    TableCell(fixed(theirs.epoch, 1)),
                )
            )
    return lines
