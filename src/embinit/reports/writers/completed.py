"""The blocks of a report that have been run; each of the others is one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from embinit.format import ended, plural
from embinit.reports.analysis.answers import caveats
from embinit.reports.metrics import setting
from embinit.reports.model import Part, Summary
from embinit.reports.scores import TableRow
from embinit.reports.writers.tables import mean

#: Table rows without a run that a sentence names.
_NAMED = 4


@dataclass(frozen=True)
class CompletedBlock:
    """A block that has been run, at least in part."""

    #: its number in the experiment, from 1
    place: int
    #: the block, without the table rows that have no run
    part: Part
    #: sentences about its table rows without a run
    left: tuple[str, ...]


def is_run(part: Part) -> bool:
    """Return whether a block has results of its own.

    Runs of the baseline alone do not count, because random rows need no source and many blocks share them. In a sweep they
    count.
    """
    if part.missing or part.measured is not None:
        return not part.missing
    there = [row for row in part.rows if _there(row)]
    return bool(there) and (
        part.sweep is not None or any(not row.baseline for row in there) or all(row.baseline for row in part.rows)
    )


def completed_blocks(summary: Summary) -> tuple[CompletedBlock, ...]:
    """Return the blocks of a report that have been run."""
    return tuple(
        CompletedBlock(place, replace(part, rows=tuple(row for row in part.rows if _there(row))), _left(part))
        for place, part in enumerate(summary.parts, 1)
        if is_run(part)
    )


def completed_only(summary: Summary) -> Summary:
    """Return a report with only the blocks and table rows that have been run, and their caveats."""
    parts = tuple(block.part for block in completed_blocks(summary))
    series = {row.series for part in parts for row in part.rows}
    return replace(
        summary,
        parts=parts,
        caveats=caveats(parts),
        colors={name: place for name, place in summary.colors.items() if name in series},
    )


@dataclass(frozen=True)
class MissingBlock:
    """A block that has not been run."""

    name: str
    #: why, in a sentence
    reason: str
    #: whether it lacks files, and not only time
    lacks_files: bool


def missing_blocks(summary: Summary) -> list[MissingBlock]:
    """Return the blocks that have not been run."""
    return [
        MissingBlock(part.name, _reason(part), bool(part.missing) and not part.pending)
        for part in summary.parts
        if not is_run(part)
    ]


def _there(row: TableRow) -> bool:
    return bool(row.scores or row.unscored)


def _reason(part: Part) -> str:
    if part.missing and not part.pending:
        return ended(f"Not run: {part.missing}")
    if not part.rows:
        return "Not measured yet."
    planned, there = _runs(part.rows), [row for row in part.rows if _there(row)]
    if not there:
        return f"Not run yet: {plural(planned, 'run')}."
    own = planned - _runs(there)
    reached = ", ".join(f"{row.label} {mean(row.statistic, part.metric)} {part.metric.label}" for row in there)
    return f"Not run yet: {plural(own, 'run')}, all but {reached}."


def _runs(rows: Sequence[TableRow]) -> int:
    return sum(row.planned for row in rows)


def _left(part: Part) -> tuple[str, ...]:
    """Return sentences on what has no run in a block: whole values of an axis, then single table rows."""
    absent = [row for row in part.rows if not _there(row)]
    values = []
    for axis in dict.fromkeys(axis for row in part.rows for axis, _ in row.axes):
        for value in dict.fromkeys(dict(row.axes).get(axis, "") for row in part.rows):
            of_it = [row for row in part.rows if dict(row.axes).get(axis, "") == value]
            gone = [row for row in of_it if row in absent]
            if gone and all(not _there(row) for row in of_it):
                values.append(f"{setting(axis, value)} ({plural(_runs(gone), 'run')})")
                absent = [row for row in absent if row not in gone]
    named = [f"{row.label} ({plural(row.planned, 'run')})" for row in absent[:_NAMED]]
    rest = absent[_NAMED:]
    named += [f"and {plural(len(rest), 'more row')} ({plural(_runs(rest), 'run')})"] if rest else []
    return tuple(f"Not run yet: {', '.join(some)}." for some in (values, named) if some)
