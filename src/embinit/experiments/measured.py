"""The file RUNS/measured/NAME.json: the measurements of an experiment that trains nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Required, TypedDict, cast

from embinit.experiments.runs.result import MatrixFacts
from embinit.files import component
from embinit.records import Damaged, read_json, typed


class MeasuredMatrix(MatrixFacts, total=False):
    """A matrix's statistics, and those of the matrix × √D."""

    scaled: dict[str, float] | None


class DistributionRow(TypedDict, total=False):
    """The matrices of one start, or the table of positions."""

    axes: Required[dict[str, str]]
    seed: int
    sides: dict[str, MeasuredMatrix]
    positions: MeasuredMatrix


class AnalogyRow(TypedDict, total=False):
    """One table row of the paper's Table 4."""

    axes: Required[dict[str, str]]
    seed: int
    name: Required[str]
    #: right answers, one count for each draw of the positions
    right: Required[list[int]]
    asked: Required[int]
    #: the paper's accuracy in percent
    paper: Required[float]
    accuracy: Required[float]


class VerdictRow(TypedDict):
    """The diagnosis of one matrix."""

    side: str
    source: str
    #: fingerprint of the rows
    rows: str
    #: the fields of a `Basis`
    basis: Any


class MeasuredBlock(TypedDict, total=False):
    """The measurements of a block."""

    name: Required[str]
    paper: list[str]
    sources: dict[str, str]
    task: str
    missing: str
    #: `DistributionRow`, `AnalogyRow` or `VerdictRow`, by the kind of the experiment
    rows: Required[list[Any]]


class Measured(TypedDict, total=False):
    """The measurements of an experiment."""

    name: Required[str]
    kind: Required[str]
    title: str
    blocks: Required[list[MeasuredBlock]]


def _check_distribution(row: DistributionRow) -> None:
    if not row.keys() & {"sides", "positions"}:
        raise Damaged("'sides' and 'positions' are both missing")


def _check_analogy(row: AnalogyRow) -> None:
    if not row["right"]:
        raise Damaged("right is empty")


def _check_verdict(row: VerdictRow) -> None:
    from embinit.diagnosis.basis import Basis, basis_of

    basis = basis_of(typed(row["basis"], Basis))
    absorbed = 1.0 if basis.absorbed is None else basis.absorbed.ratio
    if min(basis.rows, basis.spread.rows, basis.spread.dim) < 1 or basis.spread.std < 0 or absorbed < 0:
        raise Damaged("basis has an impossible size or σ")


_ROWS: dict[str, Any] = {"distribution": DistributionRow, "analogy": AnalogyRow, "verdict": VerdictRow}
_CHECKS: dict[str, Callable[[Any], None]] = {
    "distribution": _check_distribution, "analogy": _check_analogy, "verdict": _check_verdict
}  # fmt: skip


def measured_path(runs: Path, name: str) -> Path:
    """Return the file with the measurements of an experiment, which need not exist."""
    return runs / "measured" / f"{component(name, 'the name of the experiment')}.json"


def read_measured(runs: Path, name: str) -> Measured | None:
    """Return the measurements of an experiment; None if there are none yet."""
    path = measured_path(runs, name)
    if not path.is_file():
        return None
    try:
        return checked(read_json(path, Measured, f"run {name} again"))
    except Damaged as error:
        raise error if str(path) in str(error) else Damaged(f"{path} is damaged: {error}; run {name} again") from None


def checked(content: Any) -> Measured:
    """Return measurements whose values have the expected types; raise Damaged for the first value that has not."""
    measured = cast(Measured, typed(content, Measured))
    if measured["kind"] not in _ROWS:
        raise Damaged(f"kind is {measured['kind']!r}, but one of {', '.join(_ROWS)} is expected")
    for block in measured["blocks"]:
        for number, row in enumerate(block["rows"]):
            try:
                typed(row, _ROWS[measured["kind"]])
                _CHECKS[measured["kind"]](row)
            except Damaged as error:
                raise Damaged(f"{block['name']}, row {number}: {error}") from None
    return measured
