"""Embedding matrices before training: their distribution and the coverage of their source."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.experiments.experiment import Block
from embinit.experiments.runs.result import MatrixFacts, Result
from embinit.experiments.spec import OUTPUT
from embinit.reports.analysis import published
from embinit.reports.analysis.curves import ratio
from embinit.reports.analysis.rows import Results, finished, grouped
from embinit.reports.model import MatrixSummary
from embinit.reports.scores import TableRow

#: The sides of Tables 2 and 8.
_ENCODERS = ("source", "text")


def shapes(block: Block, rows: Sequence[TableRow], results: Results) -> tuple[MatrixSummary, ...]:
    """Return the matrices of each series at its lowest finished seed; for a sweep, at each of its places."""
    summaries: dict[tuple[str, str], MatrixSummary] = {}
    runs_of = grouped(block)
    for row in rows:
        for result in finished(runs_of[row.axes], results)[:1]:
            for side, matrix in result.matrices.items():
                summaries.setdefault(
                    (row.label if block.sweep else row.series, side), _shape(block, row, result, side, matrix)
                )
    return tuple(summaries.values())


def _shape(block: Block, row: TableRow, result: Result, side: str, matrix: MatrixFacts) -> MatrixSummary:
    histogram = matrix.get("histogram") or {"counts": (), "edges": ()}
    coverage = matrix.get("coverage")
    return MatrixSummary(
        series=row.series,
        label=row.series if row.setting and not block.sweep else row.label,
        side=side,
        rows=int(matrix["rows"]),
        dim=int(matrix["dim"]),
        mean=float(matrix["mean"]),
        std=float(matrix["std"]),
        min=float(matrix["min"]),
        max=float(matrix["max"]),
        # Rows of the output layer are never added to positions.
        ratio=None if side == OUTPUT else ratio(result, float(matrix["std"]), int(matrix["dim"])),
        counts=tuple(int(count) for count in histogram["counts"]),
        edges=tuple(float(edge) for edge in histogram["edges"]),
        types=coverage and coverage["types"],
        tokens=coverage and coverage["tokens"],
        kinds={str(kind): int(count) for kind, count in (matrix.get("kinds") or {}).items()},
        paper=published.spread(block.paper, published.recipe_of(row.axes)) if side in _ENCODERS else None,
    )
