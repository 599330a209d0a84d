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
        for column, (place, width) in zip(printed.columns, columns.items(), strict=True):
            column.width, column.no_wrap = width, place > 0 and content.header[place] != "against"
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


def _fitting(content: Table, width: int) -> dict[int, int]:
    """Return the numbers of the columns that fit side by side, with their widths; the files have all columns.

    The score and the difference to the baseline are kept longest. Names of starts wrap before a difference is hidden.
    """
    cells = {place: [name, *(str(row[place]) for row in content.rows)] for place, name in enumerate(content.header)}
    named = [place for place, name in enumerate(content.header) if place == 0 or name == "against"]
    words = {place: max(len(word) for cell in cells[place] for word in cell.split()) for place in named}
    whole = {place: max(map(len, column)) for place, column in cells.items()}
    widths = whole | {place: min(whole[place], max(words[place], _WRAPPED)) for place in named}
    spare = [place for name in _SPARE for place in widths if content.header[place] == name]
    kept = ("against", "difference")
    others = sorted(list(widths)[2:], key=lambda place: (content.header[place].startswith(kept), -place))
    for place in [*spare, *others]:
        if content.header[place].startswith(kept) and _total(widths) > width:
            widths |= {name: words[name] for name in named if name in widths}
        if place in widths and _total(widths) > width:
            del widths[place]
    for place in named:  # room that is left
        if place in widths:
            widths[place] = min(whole[place], widths[place] + max(0, width - _total(widths)))
    return widths


def _total(widths: dict[int, int]) -> int:
    """Return the width of a table: two spaces separate its columns."""
    return sum(widths.values()) + 2 * (len(widths) - 1)
