"""Print the rows as a table: with rich if it is installed, otherwise in plain columns."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.rows import DECODING, Row

COLUMNS = (
    "", "members", "D", "batch", "precision", "M param.", "ms a step", "sentences/s", "tokens/s", "s a model-epoch",
    "peak MB", "% of peak", "x tutorial", "x bare",
)  # fmt: skip


def cells(row: Row) -> list[str]:
    """Return the texts of a table row; unknown values are empty."""
    case, name = row.case, row.case.what
    step = row.seconds
    if name == DECODING and row.seconds is not None:
        name, step = f"{name}: {row.seconds:,.2f} s", None
    if row.note:
        name = f"{name}, {row.note}"
    return [
        name, str(case.members), str(case.dim), "" if case.what == DECODING else str(case.batch), case.precision,
        decimal(row.parameters / 1e6 or None, 3), decimal(step and 1e3 * step, 2), decimal(row.sentences_per_s, 0),
        decimal(row.tokens_per_s, 0), decimal(row.s_per_model_epoch, 3), decimal(row.peak_mb, 0),
        decimal(row.share_of_peak and 100 * row.share_of_peak, 1), decimal(row.times_tutorial, 2),
        decimal(row.times_bare, 2),
    ]  # fmt: skip


def decimal(value: float | None, places: int) -> str:
    """Return a number with thousands separators; empty for None."""
    return "" if value is None else f"{value:,.{places}f}"


def print_table(rows: Sequence[Row], description: dict[str, object]) -> None:
    """Print the table, and below it the description of the machine and the data."""
    lines = [cells(row) for row in rows]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(align_columns([list(COLUMNS), *lines]))
    else:
        table = Table()
        for place, column in enumerate(COLUMNS):
            table.add_column(column, justify="right" if place else "left", no_wrap=place > 0, max_width=44)
        for line in lines:
            table.add_row(*line)
        screen = Console(markup=False)
        Console(markup=False, width=max(screen.width, 170)).print(table)
    print(", ".join(f"{key} {value}" for key, value in description.items()))
    print("sentences/s, tokens/s (both sides, without padding) and % of peak are sums over all members of a row")


def align_columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells in aligned columns: the first to the left, the others to the right."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
