"""Reports of what is measured without training: distributions (Tables 2, 6, 8), analogies (Table 4), verdicts."""

from __future__ import annotations

import statistics as plain
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from embinit.diagnosis.basis import Basis, basis_of
from embinit.diagnosis.verdict import Verdict, verdict
from embinit.diagnosis.wording import fraction
from embinit.experiments.experiment import Block, Experiment
from embinit.experiments.measured import AnalogyRow, DistributionRow, Measured, MeasuredMatrix, VerdictRow
from embinit.format import NONE, compact, fixed, listed, plural, share, signed
from embinit.reports import metrics
from embinit.reports.analysis import published
from embinit.reports.analysis.answers import missing_blocks
from embinit.reports.analysis.provenance import commands
from embinit.reports.model import Cell, Cost, Part, Summary, Table

#: The sides that Tables 2, 6 and 8 are about.
_ENCODERS = ("source", "text")
#: A number agrees with a printed one within this share of it, or within its rounding.
_SHARE = 0.03
#: Why a block that could be measured has nothing.
NOT_YET = "not measured yet"
#: What `verdict_cells` fills.
VERDICT_HEADER = (
    "matrix",
    "source",
    "σ",
    "ratio",
    "positions told",
    "neighbours kept",
    "types found",
    "mean cosine",
    "harms",
    "advice",
    "recipe",
    "rate",
    "at the full rate",
)


def summarize_measured(
    experiment: Experiment, measured: Measured | None, file: str = "", options: Sequence[str] = ()
) -> Summary:
    """Return the report of an experiment that trains nothing, from what `embinit run` measured; None: nothing yet."""
    rows = {block["name"]: block["rows"] for block in (measured["blocks"] if measured is not None else [])}
    parts = tuple(_part(block, experiment.kind, rows.get(block.name, [])) for block in experiment.blocks)
    file = file or f"experiments/{experiment.name}.toml"
    told = [part for part in parts if part.measured is not None] or list(parts)
    answers = [part.answer if len(told) == 1 else f"{part.name}: {part.answer}" for part in told]
    if experiment.kind == "verdict" and len(told) > 1 and rows:
        answers = [_counted(rows.values())]
    elif experiment.kind == "distribution" and len(told) > 1 and rows:
        answers = [_agreement([_agreeing(block, rows.get(block.name, [])) for block in experiment.blocks])]
    return Summary(
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        baseline=experiment.baseline,
        answer="; ".join(answers),
        caveats=tuple(missing_blocks(parts)),
        notes=tuple(experiment.notes),
        recipes={},
        colors={},
        parts=parts,
        cost=Cost(0, 0, 0.0, {}, experiment.cost, (), {}, (), ""),
        commands=commands(file, options),
        file=file,
    )


def _part(block: Block, kind: str, rows: Sequence[Any]) -> Part:
    measured = None
    missing = block.missing if not rows else ""
    answer = f"not run: {missing}" if missing else "nothing has been measured yet"
    if rows:
        if kind == "distribution":
            measured, answer = _distributions(block, rows)
        elif kind == "verdict":
            measured, answer = _verdicts(rows)
        else:
            measured, answer = _analogies(rows)
    return Part(
        name=block.name,
        task=", ".join(dict.fromkeys(planned.spec.task.name for planned in block.runs)),
        metric=metrics.metric(kind, ""),
        missing=missing or ("" if rows else NOT_YET),
        paper=block.paper,
        rows=(),
        answer=answer,
        notes=(),
        curves={},
        sweep=None,
        shapes=(),
        examples=(),
        sources=block.sources,
        signatures={},
        settings={},
        measured=measured,
    )


def _distributions(block: Block, rows: Sequence[DistributionRow]) -> tuple[Table, str]:
    header = (
        "matrix",
        "rows × dim",
        "min",
        "max",
        "mean",
        "σ",
        "σ × √D",
        "found",
        "paper: range",
        "paper: σ",
    )
    lines = tuple(_distribution(name, fact, printed) for name, fact, printed in _matrices(block, rows))
    return Table("Embedding matrices", header, lines), _agreement([_agreeing(block, rows)])


def _matrices(block: Block, rows: Sequence[DistributionRow]) -> list[tuple[str, MeasuredMatrix, dict[str, Any] | None]]:
    """Return each matrix of a block: its name, its numbers, and what the paper prints for it."""
    made = []
    for row in rows:
        axes = tuple(row["axes"].items())
        label = " · ".join(metrics.setting(axis, value) for axis, value in axes)
        sides = row["sides"].items() if "sides" in row else [("positions", row["positions"])]
        for side, fact in sides:
            printed = _printed(block.paper, published.recipe_of(axes), side)
            made.append((f"{label}, {side}" if label else side, fact, printed))
    return made


def _agreeing(block: Block, rows: Sequence[DistributionRow]) -> tuple[int, int, int]:
    """Return how many matrices have the paper's σ, how many it prints, and how many there are."""
    found = _matrices(block, rows)
    known = [_agrees(fact["std"], printed["std"]) for _, fact, printed in found if printed is not None]
    return sum(known), len(known), len(found)


def _agreement(counts: Sequence[tuple[int, int, int]]) -> str:
    agree, known, there = (sum(column) for column in zip(*counts, strict=True))
    if not known:
        return f"{plural(there, 'matrix', 'matrices')} measured"
    return f"σ agrees with the paper's, to 3 % or as printed, in {agree} of {plural(known, 'matrix', 'matrices')}"


def _distribution(name: str, fact: MeasuredMatrix, printed: dict[str, Any] | None) -> tuple[Cell, ...]:
    scaled, coverage = fact.get("scaled") or {}, fact.get("coverage")
    theirs = [NONE] * 2
    if printed is not None:
        theirs = [f"{compact(printed['min'])}, {compact(printed['max'])}", compact(printed["std"])]
    texts = [
        name,
        f"{fact['rows']:,} × {fact['dim']}",
        *(compact(number) for number in (fact["min"], fact["max"], fact["mean"], fact["std"])),
        compact(scaled.get("std")),
        share(coverage["types"] if coverage else None),
        *theirs,
    ]
    return tuple(Cell(text) for text in texts)


def _printed(called: Sequence[str], recipe: str, side: str) -> dict[str, Any] | None:
    if side in _ENCODERS or side == "positions":
        return published.distribution(called, recipe if side in _ENCODERS else side)
    return None


def _agrees(ours: float, printed: float) -> bool:
    """Return whether a number is the printed one, to 3 % or to half a unit of its last digit."""
    decimals = len(str(printed).partition(".")[2])
    return abs(ours - printed) <= max(_SHARE * abs(printed), 0.5 * 0.1**decimals)


def _analogies(rows: Sequence[AnalogyRow]) -> tuple[Table, str]:
    header = ("embedding", "right", "of", "accuracy, %", "paper, %", "ours − paper")
    lines = []
    for row in rows:
        counts = row["right"]
        ours = 100 * row["accuracy"]
        spread = f" ± {fixed(100 * plain.stdev(counts) / row['asked'], 1)}" if len(counts) > 1 and row["asked"] else ""
        texts = (
            row["name"],
            fixed(sum(counts) / len(counts), 0 if len(counts) == 1 else 1),
            f"{row['asked']:,}",
            f"{fixed(ours, 1)}{spread}",
            fixed(row["paper"], 1),
            signed(ours - row["paper"], 1),
        )
        lines.append(tuple(Cell(text) for text in texts))
    with_positions = [row for row in rows if "positions" in row["name"]]
    said = [f"{row['name']} {fixed(100 * row['accuracy'], 1)} %" for row in with_positions]
    caption = "Word analogies; ± is σ over draws of the positions"
    return Table(
        caption, header, tuple(lines)
    ), f"analogies that stay right once positions are added: {', '.join(said)}"


def _verdicts(rows: Sequence[VerdictRow]) -> tuple[Table, str]:
    """Return what is advised by the lines that the verdict draws now, from the numbers that were measured."""
    lines, said = [], []
    for row in rows:
        basis = basis_of(row["basis"])
        opinion = verdict(basis)
        lines.append(verdict_cells(row["side"], row["source"], basis, opinion))
        said.append(f"{row['source']} ({row['side']}): {opinion.summary}")
    caption = "Ratio: scaled σ over the positions' rms; positions told: by a linear read-out, chance is 5 %"
    return Table(caption, VERDICT_HEADER, tuple(lines), words=2), ", ".join(said)


def verdict_cells(side: str, source: str, basis: Basis, opinion: Verdict) -> tuple[Cell, ...]:
    """Return a matrix, the numbers that its verdict rests on and what it says, as a line of a table."""
    absorbed = basis.absorbed
    texts = (
        side,
        source,
        compact(basis.spread.std),
        compact(None if absorbed is None else absorbed.ratio),
        share(None if absorbed is None else absorbed.position_readout),
        share(None if absorbed is None else absorbed.neighbours_kept),
        share(basis.coverage[0]),
        fixed(basis.shape.mean_cosine, 2),
        ", ".join(one.name for one in opinion.findings if one.severity == "harm") or NONE,
        opinion.advice,
        opinion.recipe,
        "full" if opinion.rate == 1 else fraction(opinion.rate),
        opinion.at_full_rate or NONE,
    )
    return tuple(Cell(text) for text in texts)


def _counted(blocks: Iterable[Sequence[VerdictRow]]) -> str:
    """Return how often each advice was given."""
    given = Counter(verdict(basis_of(row["basis"])).summary for rows in blocks for row in rows)
    advised = listed([f"{advice!r} for {count}" for advice, count in given.most_common()])
    return f"of {plural(sum(given.values()), 'matrix', 'matrices')} it advises {advised}"
