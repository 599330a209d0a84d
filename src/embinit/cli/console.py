"""Output in a terminal: consoles, tables, facts and progress bars."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from embinit.format import percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from embinit.export.advice import RecipeChoice
    from embinit.types import Host

_SECONDS_BETWEEN_LINES = 10


def console(*, err: bool = False) -> Console:
    """Return a console on stdout for answers, or on stderr for everything else."""
    from embinit.cli.terminal import Terminal

    return Terminal(stderr=err, highlight=False, emoji=False, soft_wrap=False)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on stderr during some work; nothing if stderr is no terminal."""
    screen = console(err=True)
    if not screen.is_terminal:
        yield
        return
    from rich.markup import escape

    with screen.status(escape(what)):
        yield


def print_json(content: Any) -> None:
    """Print one JSON document on stdout; NaN and infinity, which JSON lacks, become null."""
    sys.stdout.write(json.dumps(_plain(content), indent=2) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return None
    return value


def table(*headers: str, right_from: int = 1) -> Table:
    """Return a plain table whose columns from `right_from` on hold numbers."""
    from rich.table import Table

    columns = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, header in enumerate(headers):
        numeric = place >= right_from
        columns.add_column(header, justify="right" if numeric else "left", header_style="dim", no_wrap=numeric)
    return columns


def hanging(lines: Iterable[tuple[str, str]]) -> Table:
    """Return lines of a label and a text that wraps beside it; both are rich markup."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for label, text in lines:
        grid.add_row(label, text)
    return grid


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Return facts as a label and a text beside it; neither is markup."""
    from rich.markup import escape

    return hanging((f"[dim]{label}[/]", escape(text)) for label, text in facts)


def print_warnings(screen: Console, warnings: Iterable[str]) -> None:
    """Print messages that the user should read first."""
    from rich.markup import escape

    for warning in warnings:
        screen.print(f"[bold red]warning:[/] {escape(warning)}")


def model_text(host: Host, given: str | None) -> str:
    """Return the model that a matrix is made for, and whether it is the default."""
    default = "" if given is not None else " (the default; choose another with --model)"
    return f"{host.name}{default}: {host.about}"


def task_lines(host: Host, task: str | None) -> list[tuple[str, str]]:
    """Return the task if it was given or if the advice depends on it."""
    from embinit.types import TEXT_TASKS

    matters = host.positions == "sinusoidal"
    if task is not None:
        silent = matters or task in TEXT_TASKS
        return [("task", task + ("" if silent else " (the advice depends on it only with sinusoidal positions)"))]
    return [("task", "translation (the default; choose --task classification for a classifier)")] if matters else []


def advice_lines(choice: RecipeChoice) -> list[tuple[str, str]]:
    """Return the recipe; if it is advised, also the reason, the learning rate, and the recipe for one rate."""
    from embinit.diagnosis.wording import fraction

    recipe, verdict = choice.recipe, choice.verdict
    if verdict is None:
        return [("recipe", f"{recipe} (fill {recipe.fill})")]
    lines = [("advice", verdict.headline), ("recipe", f"{recipe} (advised; fill {recipe.fill})")]
    if verdict.rate != 1:
        share = fraction(verdict.rate)
        lines.append(
            ("rate", f"train the rows at {share} of the other weights' learning rate (embinit.parameter_groups)")
        )
    if verdict.at_full_rate not in (None, verdict.recipe):
        lines.append(("one rate", f"if all weights share one learning rate, give --recipe '{verdict.at_full_rate}'"))
    return lines


def coverage_text(types: float, tokens: float | None) -> str:
    """Return the shares of types and of running tokens that the source has: `91 % of types, 98 % of running tokens`."""
    running = "" if tokens is None else f", {percent(tokens)} of running tokens"
    return f"{percent(types)} of types{running}"


class Bar:
    """A progress bar on stderr; a plain line every ten seconds if stderr is no terminal."""

    def __init__(self, name: str, unit: str) -> None:
        from rich import progress

        self._name, self._unit = name, unit
        self._screen = console(err=True)
        counted: tuple[progress.ProgressColumn, ...] = (
            (progress.DownloadColumn(), progress.TransferSpeedColumn())
            if unit == "bytes"
            else (progress.MofNCompleteColumn(), progress.TextColumn(unit))
        )
        columns = (
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            *counted,
            progress.TimeRemainingColumn(),
        )
        watched = self._screen.is_terminal
        self._progress = progress.Progress(*columns, console=self._screen, disable=not watched, transient=True)
        self._task = self._progress.add_task(name, total=None)
        self._said = time.monotonic()

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, what: str, done: int, total: int | None) -> None:
        """Show the progress."""
        self._progress.update(self._task, description=f"{self._name}: {what}", completed=done, total=total)
        if not self._screen.is_terminal and time.monotonic() - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = time.monotonic()
            amount = f"{done:,} {self._unit}" if not total else f"{100 * done / total:.0f} % of {total:,} {self._unit}"
            self._screen.print(f"{self._name}: {what}, {amount}", markup=False)
