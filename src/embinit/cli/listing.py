"""Tables of experiments: what is planned and done, and what came out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from embinit.cli.console import table
from embinit.format import number

if TYPE_CHECKING:
    from rich.table import Table

    from embinit.experiments.experiment import Axes, Experiment
    from embinit.experiments.measured import Measured
    from embinit.experiments.runs.result import Result
    from embinit.experiments.status import StatusLine


def lines_table(lines: Sequence[StatusLine]) -> Table:
    """Return blocks with their runs, those that differ in their seed alone in one line."""
    from rich.text import Text

    made = table("block", "start", "done", "", right_from=2)
    last = None
    for line in lines:
        if line.missing:
            continue
        name = f"{line.experiment}: {line.block}"
        made.add_row(Text(name if name != last else ""), Text(words(line.axes)), far(line), _note(line))
        last = name
    return made


def not_run(lines: Sequence[StatusLine]) -> list[str]:
    """Return a line for each block that cannot be run here, with the reason."""
    missing = {(line.experiment, line.block): line.missing for line in lines if line.missing}
    return [f"not run: {experiment}: {block}: {why}" for (experiment, block), why in missing.items()]


def far(line: StatusLine) -> str:
    """Return how many of how many are done."""
    return f"{len(line.done)}/{line.runs}"


def _note(line: StatusLine) -> str:
    parts = [(line.running, "running"), (line.failed, "failed")]
    return ", ".join(f"{len(keys)} {what}" for keys, what in parts if keys)


def words(axes: Axes) -> str:
    """Return axes as a person reads them: a recipe by its name alone, others with theirs.

    >>> words((("recipe", "xavier"), ("model.norm", "pre")))
    'xavier, norm pre'
    """
    recipes = [name for name, _ in axes if name.rpartition(".")[2] == "recipe"]
    return ", ".join(value if [name] == recipes else f"{_short(name)} {value}" for name, value in axes)


def _short(name: str) -> str:
    table, _, inner = name.rpartition(".")
    return inner if table in ("model", "training") else name


def results_table(experiment: Experiment, results: dict[str, Result]) -> Table:
    """Return the mean score over seeds of each line; `embinit report` says more."""
    from rich.text import Text

    from embinit.experiments.runs.splits import with_scored_split

    made = table("block", "start", "score", "mean", "σ", "seeds", right_from=3)
    for block in (with_scored_split(block, results) for block in experiment.blocks):
        rows: dict[Axes, list[float]] = {}
        counts: dict[Axes, int] = {}
        for planned in block.runs:
            counts[planned.axes] = counts.get(planned.axes, 0) + 1
            found = results.get(planned.spec.key)
            value = None if found is None else found.scores.get(block.split, {}).get(block.score)
            rows.setdefault(planned.axes, []).extend([] if value is None else [value])
        for place, (axes, values) in enumerate(rows.items()):
            mean = number(statistics.fmean(values)) if values else "–"
            spread = number(statistics.stdev(values)) if len(values) > 1 else ""
            name = Text(block.name if place == 0 else "")
            made.add_row(name, Text(words(axes)), block.score, mean, spread, f"{len(values)}/{counts[axes]}")
    return made


def measured_table(content: Measured) -> Table:
    """Return the measures of an experiment that trains nothing."""
    from rich.text import Text

    if content["kind"] == "analogy":
        made = table("block", "rows", "right", "asked", "%", "paper %", right_from=2)
        for block in content["blocks"]:
            for row in block["rows"]:
                right, share = statistics.fmean(row["right"]), f"{100 * row['accuracy']:.1f}"
                made.add_row(
                    Text(block["name"]), row["name"], f"{right:.0f}", str(row["asked"]), share, str(row["paper"])
                )
        return made
    if content["kind"] == "verdict":
        from embinit.diagnosis.wording import advice_text

        made = table("block", "matrix", "ratio", "advice", right_from=2)
        for block in content["blocks"]:
            for row in block["rows"]:
                absorbed = row["basis"]["absorbed"]
                ratio = "–" if absorbed is None else number(absorbed["ratio"])
                opinion = row["verdict"]
                advice = advice_text(opinion["advice"], opinion.get("rate", 1.0))
                made.add_row(Text(block["name"]), row["side"], ratio, Text(advice))
        return made
    made = table("block", "start", "matrix", "min", "max", "mean", "σ", right_from=3)
    for block in content["blocks"]:
        for row in block["rows"]:
            parts = row["sides"] if "sides" in row else {"positions": row["positions"]}
            for side, fact in parts.items():
                values = [number(fact[name]) for name in ("min", "max", "mean", "std")]
                made.add_row(Text(block["name"]), Text(words(tuple(row["axes"].items()))), side, *values)
    return made
