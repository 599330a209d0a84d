"""Rows of the training table: rates, share of the peak, and the bars (required values) that they meet."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, SplitStatistics, Timing, pair_flops, steps_per_epoch

TUTORIAL, DECODING, OURS = "PyTorch's tutorial", "greedy decoding", "embinit"


@dataclass(frozen=True)
class Row:
    """The results of a case. Rates are sums over all members of a group."""

    case: Case
    parameters: int = 0
    #: of a step, or of a decoding
    seconds: float | None = None
    sentences_per_s: float | None = None
    #: real tokens of both sides, without padding
    tokens_per_s: float | None = None
    #: seconds of an epoch, divided by the number of members
    s_per_model_epoch: float | None = None
    peak_mb: float | None = None
    #: floating-point operations per second, over those of a large matrix product in the same precision
    share_of_peak: float | None = None
    #: sentences/s over those of PyTorch's tutorial
    times_tutorial: float | None = None
    #: seconds per step over those of bare steps with the same number of members
    times_bare: float | None = None
    #: a remark, or the reason why nothing was measured
    note: str = ""

    def record(self) -> dict[str, Any]:
        """Return the row as flat values for JSON."""
        values = {key: value for key, value in asdict(self).items() if key != "case"}
        case = {key: value for key, value in asdict(self.case).items() if key != "prepared"}
        rounded = {key: float(f"{v:.6g}") if isinstance(v, float) else v for key, v in values.items()}
        return {**case, **rounded}


def make_row(case: Case, timing: Timing, split: SplitStatistics, peaks: dict[str, float]) -> Row:
    """Return the row of a case; `peaks` maps a precision to the machine's operations per second."""
    row = Row(case, timing.parameters, timing.seconds, peak_mb=timing.memory, note=timing.note)
    if case.what == DECODING:
        return replace(row, sentences_per_s=case.members * case.sentences / timing.seconds)
    rate = case.members * case.batch / timing.seconds
    peak = peaks.get(case.precision)
    return replace(
        row,
        sentences_per_s=rate,
        tokens_per_s=rate * split.pair_length,
        s_per_model_epoch=timing.seconds * steps_per_epoch(case, split) / case.members,
        share_of_peak=rate * pair_flops(case, split) / peak if peak else None,
    )


def add_ratios(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with their ratios to the tutorial (same size and batch, first precision) and to bare steps."""
    bare = {_members(row.case): row.seconds for row in rows if row.case.what == OURS and row.seconds}
    rows = [
        replace(row, times_bare=row.seconds / bare[_members(row.case)])
        if row.seconds and row.case.what.startswith(f"{OURS}, ") and _members(row.case) in bare
        else row
        for row in rows
    ]
    tutorial: dict[tuple[str, int, int], float] = {}
    for row in rows:
        if row.case.what == TUTORIAL and row.sentences_per_s:
            tutorial.setdefault(_size(row.case), row.sentences_per_s)
    return [
        replace(row, times_tutorial=row.sentences_per_s / tutorial[_size(row.case)])
        if row.sentences_per_s and row.case.what != DECODING and _size(row.case) in tutorial
        else row
        for row in rows
    ]


def _size(case: Case) -> tuple[str, int, int]:
    return case.device, case.dim, case.batch


def _members(case: Case) -> tuple[str, int, int, str, int]:
    return *_size(case), case.precision, case.members


# ---------------------------------------------------------------- bars


@dataclass(frozen=True)
class Bar:
    """A required value, and whether the best row that the bar applies to meets it."""

    says: str
    promised: str
    found: float
    kept: bool


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Return the bars of training.toml that apply to at least one row."""
    entries = tomllib.loads(Path(__file__).with_name("training.toml").read_text("utf-8"))["bar"]
    judged = [_judge(entry, rows) for entry in entries]
    return [bar for bar in judged if bar is not None]


def _judge(bar: dict[str, Any], rows: Sequence[Row]) -> Bar | None:
    values = [getattr(row, bar["quantity"]) for row in rows if _fits(row.case, bar["row"])]
    values = [value for value in values if value is not None]
    if not values:
        return None
    if "at_least" in bar:
        best = max(values)
        return Bar(bar["says"], f">= {bar['at_least']:g}", best, best >= bar["at_least"])
    best, aim = min(values), f", aim {bar['aim']:g}" if "aim" in bar else ""
    return Bar(bar["says"], f"<= {bar['at_most']:g}{aim}", best, best <= bar["at_most"])


def _fits(case: Case, wanted: dict[str, Any]) -> bool:
    exact = {key: value for key, value in wanted.items() if key not in ("least_members", "device")}
    return (
        case.device.partition(":")[0] == wanted["device"]
        and case.members >= wanted.get("least_members", 0)
        and all(getattr(case, key) == value for key, value in exact.items())
    )
