"""Reports on measurements without training: distributions (Tables 2, 6, 8), analogies (Table 4), verdicts."""

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
from embinit.format import NONE, compact, fixed, share, signed
from embinit.reports import metrics
from embinit.reports.analysis import published
from embinit.reports.analysis.answers import missing_blocks
from embinit.reports.analysis.provenance import commands
from embinit.reports.model import ExperimentCost, Part, Summary, Table, TableCell
from embinit.reports.sentences import answer
from embinit.reports.verdicts import (
    AdviceCounts,
    AnalogiesKept,
    BlockVerdict,
    InBlock,
    MatrixAdvice,
    MatrixAgreement,
    NothingYet,
    NotRun,
    ReportVerdict,
)

#: The sides of Tables 2, 6 and 8.
_ENCODERS = ("source", "text")
#: A number agrees with a printed one if it differs by at most this share, or if it rounds to it.
_SHARE = 0.03
#: The columns of `verdict_cells`.
VERDICT_HEADER = (
    "matrix",
    "source",
    "σ",
    "ratio",
    "positions found",
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
    """Return the report of an experiment that trains nothing; `measured` is None if it was not measured yet."""
    rows = {block["name"]: block["rows"] for block in (measured["blocks"] if measured is not None else [])}
    parts = tuple(_part(block, experiment.kind, rows.get(block.name, [])) for block in experiment.blocks)
    file = file or f"{experiment.name}.toml"
    measured_parts = [part for part in parts if part.measured is not None] or list(parts)
    verdicts: tuple[ReportVerdict, ...] = (
        measured_parts[0].answer.verdicts if len(measured_parts) == 1 else _in_blocks(measured_parts)
    )
    if experiment.kind == "verdict" and len(measured_parts) > 1 and rows:
        verdicts = (_advice_counts(rows.values()),)
    elif experiment.kind == "distribution" and len(measured_parts) > 1 and rows:
        verdicts = (_agreement([_agreeing(block, rows.get(block.name, [])) for block in experiment.blocks]),)
    return Summary(
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        baseline=experiment.baseline,
        answer=answer(verdicts),
        caveats=tuple(missing_blocks(parts)),
        notes=tuple(experiment.notes),
        recipes={},
        colors={},
        parts=parts,
        cost=ExperimentCost(0, 0, 0.0, {}, experiment.cost, (), {}, (), ""),
        commands=commands(file, options),
        file=file,
    )


def _part(block: Block, kind: str, rows: Sequence[Any]) -> Part:
    measured = None
    missing = block.missing if not rows else ""
    verdict: BlockVerdict = NotRun(missing) if missing else NothingYet("measurements")
    if rows:
        if kind == "distribution":
            measured, verdict = _distributions(block, rows)
        elif kind == "verdict":
            measured, verdict = _advice(rows)
        else:
            measured, verdict = _analogies(rows)
    return Part(
        name=block.name,
        task=", ".join(dict.fromkeys(planned.spec.task.name for planned in block.runs)),
        metric=metrics.metric(kind, ""),
        missing=missing or ("" if rows else "it has not been measured yet"),
        pending=not rows and not block.missing,
        paper=block.paper,
        rows=(),
        answer=answer([verdict]),
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


def _in_blocks(parts: Sequence[Part]) -> tuple[InBlock, ...]:
    """Return the verdicts of several blocks, each with its block."""
    return tuple(
        InBlock(part.name, verdict)
        for part in parts
        for verdict in part.answer.verdicts
        if not isinstance(verdict, InBlock)
    )


def _distributions(block: Block, rows: Sequence[DistributionRow]) -> tuple[Table, MatrixAgreement]:
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
    """Return each matrix of a block: its name, its numbers, and the paper's."""
    matrices = []
    for row in rows:
        axes = tuple(row["axes"].items())
        label = metrics.SEPARATOR.join(metrics.setting(axis, value) for axis, value in axes)
        sides = row["sides"].items() if "sides" in row else [("positions", row["positions"])]
        for side, fact in sides:
            printed = _printed(block.paper, published.recipe_of(axes), side)
            matrices.append((f"{label}, {side}" if label else side, fact, printed))
    return matrices


def _agreeing(block: Block, rows: Sequence[DistributionRow]) -> tuple[int, int, int]:
    """Return the numbers of matrices with the paper's σ, of those that it prints, and of all."""
    matrices = _matrices(block, rows)
    known = [_agrees(fact["std"], printed["std"]) for _, fact, printed in matrices if printed is not None]
    return sum(known), len(known), len(matrices)


def _agreement(counts: Sequence[tuple[int, int, int]]) -> MatrixAgreement:
    return MatrixAgreement(*(sum(column) for column in zip(*counts, strict=True)))


def _distribution(name: str, fact: MeasuredMatrix, printed: dict[str, Any] | None) -> tuple[TableCell, ...]:
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
    return tuple(TableCell(text) for text in texts)


def _printed(called: Sequence[str], recipe: str, side: str) -> dict[str, Any] | None:
    if side in _ENCODERS or side == "positions":
        return published.distribution(called, recipe if side in _ENCODERS else side)
    return None


def _agrees(ours: float, printed: float) -> bool:
    """Return whether a number equals the printed one to 3 %, or to half a unit of its last digit."""
    decimals = len(str(printed).partition(".")[2])
    return abs(ours - printed) <= max(_SHARE * abs(printed), 0.5 * 0.1**decimals)


def _analogies(rows: Sequence[AnalogyRow]) -> tuple[Table, AnalogiesKept]:
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
        lines.append(tuple(TableCell(text) for text in texts))
    kept = tuple((row["name"], row["accuracy"]) for row in rows if "positions" in row["name"])
    return Table("Word analogies; ± is σ over draws of the positions", header, tuple(lines)), AnalogiesKept(kept)


def _advice(rows: Sequence[VerdictRow]) -> tuple[Table, MatrixAdvice]:
    """Return the advice on each matrix, by the current thresholds of the verdict."""
    lines, advised = [], []
    for row in rows:
        basis = basis_of(row["basis"])
        opinion = verdict(basis)
        lines.append(verdict_cells(row["side"], row["source"], basis, opinion))
        advised.append((row["source"], row["side"], opinion.summary))
    caption = "Ratio: scaled σ over the positions' rms; positions found: by a linear read-out, chance is 5 %"
    return Table(caption, VERDICT_HEADER, tuple(lines), words=2), MatrixAdvice(tuple(advised))


def verdict_cells(side: str, source: str, basis: Basis, opinion: Verdict) -> tuple[TableCell, ...]:
    """Return a matrix, the numbers behind its verdict, and the verdict, as a table row."""
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
        ", ".join(finding.name for finding in opinion.findings if finding.severity == "harm") or NONE,
        opinion.advice,
        opinion.recipe,
        "full" if opinion.rate == 1 else fraction(opinion.rate),
        opinion.at_full_rate or NONE,
    )
    return tuple(TableCell(text) for text in texts)


def _advice_counts(blocks: Iterable[Sequence[VerdictRow]]) -> AdviceCounts:
    """Return how often each advice is given."""
    counts = Counter(verdict(basis_of(row["basis"])).summary for rows in blocks for row in rows)
    return AdviceCounts(tuple(counts.most_common()))
