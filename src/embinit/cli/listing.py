"""Tables of experiments: planned and finished runs, scores, and measurements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from embinit.cli.console import table
from embinit.format import NONE, fixed, number, plural

if TYPE_CHECKING:
    from rich.table import Table

    from embinit.experiments.experiment import Axes, Experiment
    from embinit.experiments.measured import Measured
    from embinit.experiments.runs.result import Result
    from embinit.experiments.status import StatusLine


def lines_table(lines: Sequence[StatusLine]) -> Table:
    """Return the runs of blocks; runs that differ in their seed alone share a line."""
    from rich.text import Text

    listing = table("block", "start", "done", "", right_from=2)
    last = None
    for line in lines:
        if line.missing:
            continue
        name = f"{line.experiment}: {line.block}"
        listing.add_row(Text(name if name != last else ""), Text(words(line.axes)), done_text(line), _note(line))
        last = name
    return listing


def not_run(lines: Sequence[StatusLine]) -> list[str]:
    """Return a line for each block that cannot be run here, with the reason."""
    missing = {(line.experiment, line.block): line.missing for line in lines if line.missing}
    return [f"not run: {experiment}: {block}: {why}" for (experiment, block), why in missing.items()]


def found_by_settings(lines: Sequence[StatusLine]) -> list[str]:
    """Return a note if finished runs were found although their data is not prepared."""
    count = sum(len(line.done) for line in lines if line.keys is None and not line.missing)
    return [f"note: {by_settings(count)}"] if count else []


def by_settings(count: int) -> str:
    """Return a sentence on runs that were found although their data is not prepared."""
    return (
        f"{plural(count, 'finished run')} found by settings alone, because the data is not prepared here, or has changed "
        "since; `embinit run` compares it, and trains runs on changed data again."
    )


def done_text(line: StatusLine) -> str:
    """Return the number of finished runs and of all runs: `2/5`."""
    return f"{len(line.done)}/{line.runs}"


def _note(line: StatusLine) -> str:
    parts = [(line.running, "running"), (line.failed, "failed")]
    return ", ".join(f"{len(keys)} {state}" for keys, state in parts if keys)


def words(axes: Axes) -> str:
    """Return axes as text: a recipe by its name alone, other values with the name of their axis.

    >>> words((("recipe", "xavier"), ("model.norm", "pre")))
    'xavier, norm pre'
    """
    recipes = [name for name, _ in axes if name.rpartition(".")[2] == "recipe"]
    return ", ".join(value if [name] == recipes else f"{_short(name)} {value}" for name, value in axes)


def _short(name: str) -> str:
    table, _, inner = name.rpartition(".")
    return inner if table in ("model", "training") else name


def results_table(experiment: Experiment, results: dict[str, Result]) -> Table:
    """Return the mean score of each start over its seeds, in the unit of the report."""
    from rich.text import Text

    from embinit.experiments.runs.result import with_scored_split
    from embinit.reports.metrics import metric as metric_of

    listing = table("block", "start", "score", "mean", "σ", "seeds", right_from=3)
    for block in (with_scored_split(block, results) for block in experiment.blocks):
        metric = metric_of(block.score, block.split)
        rows: dict[Axes, list[float]] = {}
        counts: dict[Axes, int] = {}
        for planned in block.runs:
            counts[planned.axes] = counts.get(planned.axes, 0) + 1
            result = results.get(planned.spec.key)
            value = None if result is None else result.scores.get(block.split, {}).get(block.score)
            rows.setdefault(planned.axes, []).extend([] if value is None else [metric.factor * value])
        for place, (axes, values) in enumerate(rows.items()):
            mean = fixed(statistics.fmean(values), metric.digits) if values else NONE
            spread = fixed(statistics.stdev(values), metric.digits) if len(values) > 1 else ""
            name = Text(block.name if place == 0 else "")
            listing.add_row(name, Text(words(axes)), metric.label, mean, spread, f"{len(values)}/{counts[axes]}")
    return listing


def measured_table(content: Measured) -> Table:
    """Return the measurements of an experiment that trains nothing."""
    from rich.text import Text

    if content["kind"] == "analogy":
        listing = table("block", "rows", "right", "asked", "%", "paper %", right_from=2)
        for block in content["blocks"]:
            for row in block["rows"]:
                right, share = statistics.fmean(row["right"]), f"{100 * row['accuracy']:.1f}"
                listing.add_row(
                    Text(block["name"]), row["name"], f"{right:.0f}", str(row["asked"]), share, str(row["paper"])
                )
        return listing
    if content["kind"] == "verdict":
        from embinit.diagnosis.wording import advice_text

        listing = table("block", "matrix", "ratio", "advice", right_from=2)
        for block in content["blocks"]:
            for row in block["rows"]:
                absorbed = row["basis"]["absorbed"]
                ratio = "–" if absorbed is None else number(absorbed["ratio"])
                verdict = row["verdict"]
                advice = advice_text(verdict["advice"], verdict.get("rate", 1.0))
                listing.add_row(Text(block["name"]), row["side"], ratio, Text(advice))
        return listing
    listing = table("block", "start", "matrix", "min", "max", "mean", "σ", right_from=3)
    for block in content["blocks"]:
        for row in block["rows"]:
            parts = row["sides"] if "sides" in row else {"positions": row["positions"]}
            for side, fact in parts.items():
                values = [number(fact[name]) for name in ("min", "max", "mean", "std")]
                listing.add_row(Text(block["name"]), Text(words(tuple(row["axes"].items()))), side, *values)
    return listing
