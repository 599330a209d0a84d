"""Named places on the axis of a sweep over scale: Xavier's rows, and the unscaled rows of a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embinit.diagnosis.basis import basis_of
from embinit.experiments.experiment import Block
from embinit.reports.analysis.curves import ratio
from embinit.reports.analysis.rows import Results, finished, grouped
from embinit.reports.results_reader import ResultsFile
from embinit.types import xavier_std


@dataclass(frozen=True)
class AxisMark:
    """A range of the axis; a single place if both ends are equal."""

    label: str
    low: float
    high: float


def marks(files: Sequence[ResultsFile]) -> dict[tuple[str, str], tuple[AxisMark, ...]]:
    """Return the marks of every block of training, by the names of its experiment and of the block.

    A source's ratio is known if a verdict of `inspect` on the same rows is among the files.
    """
    raw = _raw(files)
    return {
        (file.experiment.name, block.name): (*_xavier(block, file.results), *_sources(block, file.results, raw))
        for file in files
        if file.experiment.kind == "training"
        for block in file.experiment.blocks
    }


def _raw(files: Sequence[ResultsFile]) -> dict[str, tuple[str, float]]:
    """Return the source and the ratio of diagnosed rows, by their fingerprint."""
    ratios = {}
    for file in files:
        if file.experiment.kind == "verdict":
            for block in file.measured["blocks"] if file.measured else ():
                for row in block["rows"]:
                    absorbed = basis_of(row["basis"]).absorbed
                    if row["rows"] and absorbed is not None:
                        ratios[str(row["rows"])] = (str(row["source"]), float(absorbed.ratio))
    return ratios


def _xavier(block: Block, results: Results) -> tuple[AxisMark, ...]:
    done = [result for runs in grouped(block).values() for result in finished(runs, results) if result.matrices]
    ratios = {
        known
        for result in done
        for matrix in result.matrices.values()
        if (known := ratio(result, xavier_std(int(matrix["rows"]), int(matrix["dim"])), int(matrix["dim"]))) is not None
    }
    return (AxisMark("Xavier's own", min(ratios), max(ratios)),) if ratios else ()


def _sources(block: Block, results: Results, raw: dict[str, tuple[str, float]]) -> tuple[AxisMark, ...]:
    done = [result for runs in grouped(block).values() for result in finished(runs, results)]
    used = dict.fromkeys(side.rows for result in done for _, side in result.spec.sides if side.rows in raw)
    return tuple(dict.fromkeys(AxisMark(f"{raw[rows][0]} as it is", raw[rows][1], raw[rows][1]) for rows in used))
