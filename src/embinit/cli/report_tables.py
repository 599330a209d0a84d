"""Print a report in a terminal: tables with the columns that fit, and the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embinit.format import plural
from embinit.reports.metrics import LOSS

if TYPE_CHECKING:
    from rich.console import Console

    from embinit.reports.model import Summary, Table

#: Columns that are left out in a narrow terminal, in this order.
_SPARE = (
    LOSS.label,
    "95 %",
    "p (Holm)",
    "within noise",
    "paper: mean",
    "paper: range",
    "mean",
    "rows × dim",
    "types found",
    "min",
    "max",
)
#: A longer name of a start wraps, so that more columns fit.
_WRAPPED = 24


def print_report(summary: Summary, screen: Console) -> None:
    """Print the table and the answer of each block, then the answer of the report and its caveats."""
    from rich.text import Text

    from embinit.cli.console import table
    from embinit.reports.writers import tables

    hidden: dict[str, None] = {}
    screen.print(Text(summary.title, style="bold"))
    for part in summary.parts:
        screen.print()
        if part.missing:
            screen.print(Text(f"{part.name}: not run, {part.missing}", style="dim"))
            continue
        content = tables.block_table(part)
        columns = _fitting(content, screen.width)
        hidden |= {name: None for place, name in enumerate(content.header) if place not in columns}
        printed = table(*(content.header[place] for place in columns))
        for row in content.rows:
            cells = [row[place] for place in columns]
            if any(map(str, cells)):  # without the differences, a further baseline's line is empty
                printed.add_row(*(Text(str(cell), style="bold" if cell.strong else "") for cell in cells))
        screen.print(Text(f"{part.name} ({content.caption})", style="dim"))
        screen.print(printed)
        for name, about in part.sources:
            screen.print(Text(f"{name}: {about}", style="dim"))
        if part.answer != summary.answer:
            screen.print(Text(str(part.answer)))
    screen.print()
    screen.print(Text(str(summary.answer), style="bold"))
    for caveat in summary.caveats:
        screen.print(Text(caveat, style="dim"))
    if hidden:
        count = f"{plural(len(hidden), 'column')} {'is' if len(hidden) == 1 else 'are'} hidden at this width"
        advice = "widen the terminal or use --format csv"
        screen.print(Text(f"{count} ({', '.join(hidden)}); {advice}.", style="dim"))


def _fitting(content: Table, width: int) -> list[int]:
    """Return the numbers of the columns that fit side by side; the files have all columns.

    The score and the difference to the baseline are kept longest.
    """
    widths = [
        max(map(len, (name, *(str(row[place]) for row in content.rows)))) for place, name in enumerate(content.header)
    ]
    word = max((len(word) for row in content.rows for word in str(row[0]).split()), default=0)
    widths[0] = min(widths[0], max(word, _WRAPPED))
    columns = list(range(len(widths)))
    spare = [place for name in _SPARE for place in columns if content.header[place] == name]
    kept = ("against", "difference")
    others = sorted(columns[2:], key=lambda place: (content.header[place].startswith(kept), -place))
    for place in [*spare, *others]:
        if sum(widths[place_shown] + 2 for place_shown in columns) - 2 > width and place in columns:
            columns.remove(place)
    return columns
