"""From a measured time to a row: rates, shares, and whether what is promised was kept."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, Data, Timed, products, steps_an_epoch

TUTORIAL, DECODING, OURS = "PyTorch's tutorial", "greedy decoding", "embinit"


@dataclass(frozen=True)
class Row:
    """What is known of a case. Rates are sums over all members that train side by side."""

    case: Case
    parameters: int = 0
    #: of a step, or of a decoding
    seconds: float | None = None
    sentences_per_s: float | None = None
    #: real tokens of both sides, without padding
    tokens_per_s: float | None = None
    #: seconds an epoch takes, over the members that share it
    s_per_model_epoch: float | None = None
    peak_mb: float | None = None
    #: of the machine's largest matrix product in the same precision
    share_of_peak: float | None = None
    #: sentences/s over those of PyTorch's tutorial
    times_tutorial: float | None = None
    #: seconds a step over those of bare steps of as many members
    times_bare: float | None = None
    #: what else is to be said; the reason where nothing was measured
    note: str = ""

    def record(self) -> dict[str, Any]:
        """Return the row as flat values for JSON."""
        values = {key: value for key, value in asdict(self).items() if key != "case"}
        case = {key: value for key, value in asdict(self.case).items() if key != "prepared"}
        rounded = {key: float(f"{v:.6g}") if isinstance(v, float) else v for key, v in values.items()}
        return {**case, **rounded}


def row(case: Case, taken: Timed, data: Data, peaks: dict[str, float]) -> Row:
    """Return the row of a case; `peaks` has the machine's operations a second by precision."""
    known = Row(case, taken.parameters, taken.seconds, peak_mb=taken.memory, note=taken.note)
    if case.what == DECODING:
        return replace(known, sentences_per_s=case.members * case.sentences / taken.seconds)
    rate = case.members * case.batch / taken.seconds
    peak = peaks.get(case.precision)
    return replace(
        known,
        sentences_per_s=rate,
        tokens_per_s=rate * data.places,
        s_per_model_epoch=taken.seconds * steps_an_epoch(case, data) / case.members,
        share_of_peak=rate * products(case, data) / peak if peak else None,
    )


def compared(rows: Sequence[Row]) -> list[Row]:
    """Return the rows beside the tutorial of the same size and batch in its first precision, and beside bare steps."""
    bare = {_members(one.case): one.seconds for one in rows if one.case.what == OURS and one.seconds}
    rows = [
        replace(one, times_bare=one.seconds / bare[_members(one.case)])
        if one.seconds and one.case.what.startswith(f"{OURS}, ") and _members(one.case) in bare
        else one
        for one in rows
    ]
    base: dict[tuple[str, int, int], float] = {}
    for row in rows:
        if row.case.what == TUTORIAL and row.sentences_per_s:
            base.setdefault(_size(row.case), row.sentences_per_s)
    return [
        replace(row, times_tutorial=row.sentences_per_s / base[_size(row.case)])
        if row.sentences_per_s and row.case.what != DECODING and _size(row.case) in base
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
    """What is promised of the rows that fit, and whether the best of them keeps it."""

    says: str
    promised: str
    found: float
    kept: bool


def bars(rows: Sequence[Row]) -> list[Bar]:
    """Return the bars of training.toml that any row fits."""
    listed = tomllib.loads(Path(__file__).with_name("training.toml").read_text("utf-8"))["bar"]
    judged = [_judged(bar, rows) for bar in listed]
    return [bar for bar in judged if bar is not None]


def _judged(bar: dict[str, Any], rows: Sequence[Row]) -> Bar | None:
    values = [getattr(one, bar["quantity"]) for one in rows if _fits(one.case, bar["row"])]
    values = [value for value in values if value is not None]
    if not values:
        return None
    if "at_least" in bar:
        found = max(values)
        return Bar(bar["says"], f">= {bar['at_least']:g}", found, found >= bar["at_least"])
    found, aim = min(values), f", aim {bar['aim']:g}" if "aim" in bar else ""
    return Bar(bar["says"], f"<= {bar['at_most']:g}{aim}", found, found <= bar["at_most"])


def _fits(case: Case, wanted: dict[str, Any]) -> bool:
    rest = {key: value for key, value in wanted.items() if key not in ("least_members", "device")}
    return (
        case.device.partition(":")[0] == wanted["device"]
        and case.members >= wanted.get("least_members", 0)
        and all(getattr(case, key) == value for key, value in rest.items())
    )
