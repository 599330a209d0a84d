"""The paper's findings against results: in which blocks each claim is borne out, contradicted, or open."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from embinit import statistics
from embinit.format import plural
from embinit.reports.analysis.published import called, is_recipe, recipe_of
from embinit.reports.analysis.rows import LEVEL, difference
from embinit.reports.metrics import LOSS, kind, setting
from embinit.reports.model import Difference, Metric, Part, Row, Summary

#: What may become of a claim.
VERDICTS = ("confirmed", "mixed", "refuted", "open", "not tested")


@dataclass(frozen=True)
class Case:
    """A claim in one block and setting."""

    where: str
    #: as the block calls it: SST-2
    task: str
    metric: Metric
    difference: Difference
    #: ours minus against, as the paper has them, and σ of that by its printed ones; None where it has not both
    paper: float | None
    spread: float | None
    #: "borne out", "contradicted", or "open" where noise explains it
    outcome: str = ""
    #: the same in the lowest validation losses, which vary much less from seed to seed; empty where there are none
    loss: Difference | None = None
    loss_outcome: str = ""

    @property
    def clear(self) -> bool:
        """Return whether the paper's own difference is larger than its σ."""
        return self.paper is not None and self.spread is not None and abs(self.paper) > self.spread + 1e-9

    @property
    def said(self) -> str:
        """Return the outcome and, where both differences are clear, whether the paper's has the same sign."""
        if self.outcome == "open" or not self.clear or self.paper is None:
            return self.outcome
        same = (self.paper > 0) == (self.difference.mean > 0)
        return f"{self.outcome}, {'as in' if same else 'unlike'} the paper"


@dataclass(frozen=True)
class Claim:
    """A claim with all of its cases."""

    text: str
    ours: str
    against: str
    expected: str
    cases: tuple[Case, ...]
    #: what both are compared with and without: `positions`; empty where the rows themselves are compared
    gain: str = ""

    @property
    def outcome(self) -> str:
        """Return in words what becomes of it over all cases."""
        return f"{self.verdict}: {tallied(self.cases)}" if self.cases else self.verdict

    @property
    def verdict(self) -> str:
        """Return what becomes of it in a word or two: one of `VERDICTS`."""
        if not self.cases:
            return "not tested"
        found = {case.outcome for case in self.cases}
        if {"borne out", "contradicted"} <= found:
            return "mixed"
        return "confirmed" if "borne out" in found else "refuted" if "contradicted" in found else "open"


@dataclass(frozen=True)
class Finding:
    """A finding of the paper, and its claims."""

    title: str
    claims: tuple[Claim, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the cases of all claims."""
        return tuple(case for claim in self.claims for case in claim.cases)


def tallied(cases: Sequence[Case], by_loss: bool = False) -> str:
    """Return `borne out in 2, open in 1 of 3 cases`, by the score or by the validation loss; empty where there is none."""
    outcomes = [one for case in cases if (one := case.loss_outcome if by_loss else case.outcome)]
    counts = {name: outcomes.count(name) for name in ("borne out", "contradicted", "open")}
    said = [f"{name} in {count}" for name, count in counts.items() if count]
    return f"{', '.join(said)} of {plural(len(outcomes), 'case')}" if outcomes else ""


def holds(cases: Sequence[Case]) -> str:
    """Return on which kinds of tasks, or else on which tasks, a claim holds; empty below two cases.

    A kind is told by the tasks that decide it; those that noise leaves open are named as such.
    """
    if len(cases) < 2:
        return ""
    ways = [_states(cases, by_task) for by_task in (False, True)]
    best = next((way for way in ways if "divided on" not in way), ways[0])
    return "; ".join(f"{state} {', '.join(names)}" for state, names in sorted(best.items(), key=_order))


_STATES = ("holds on", "not on", "divided on", "open on")


def _order(item: tuple[str, list[str]]) -> int:
    return _STATES.index(item[0])


def _states(cases: Sequence[Case], by_task: bool) -> dict[str, list[str]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.task if by_task else kind(case.metric.name), []).append(case)
    states: dict[str, list[str]] = {}
    for name, listed in groups.items():
        found = {case.outcome for case in listed}
        place = 0 if "borne out" in found else 1 if "contradicted" in found else 3
        tasks = list(dict.fromkeys(case.task for case in listed))
        telling = [task for task in tasks if any(case.outcome != "open" for case in listed if case.task == task)]
        label = name if by_task else f"{name} ({', '.join(telling or tasks)})"
        states.setdefault(_STATES[2 if {"borne out", "contradicted"} <= found else place], []).append(label)
        if telling and telling != tasks:  # of one task there is none left
            states.setdefault(_STATES[3], []).extend(task for task in tasks if task not in telling)
    return states


@cache
def _listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))["finding"]
    return found


def findings(summaries: Sequence[Summary]) -> tuple[Finding, ...]:
    """Return the paper's findings with every case that the reports hold; p values are Holm's over a claim's cases."""
    parts = [part for summary in summaries for part in summary.parts if part.rows and part.paper]
    return tuple(Finding(one["title"], tuple(_claim(claim, parts) for claim in one["claim"])) for one in _listed())


def _claim(claim: Mapping[str, Any], parts: Sequence[Part]) -> Claim:
    found: dict[tuple[str, ...], Case] = {}
    for part in parts:
        table, _, embedding = called(part.paper)
        if embedding not in claim["embeddings"] or table not in (
            ("3",) if claim.get("gain") else ("1", "7", "figure1")
        ):
            continue
        for case in _gains(claim, part) if claim.get("gain") == "positions" else _cases(claim, part):
            # The same runs may stand in several reports.
            found.setdefault((case.where, part.metric.name, str(case.difference.mean)), case)
    cases = list(found.values())
    judged = [
        _judged(case.difference, p, claim["expected"], case.metric.higher)
        for case, p in zip(cases, _holm([case.difference for case in cases]), strict=True)
    ]
    lower = [
        (None, "") if case.loss is None else _judged(case.loss, p, claim["expected"], higher=False)
        for case, p in zip(cases, _holm([case.loss for case in cases]), strict=True)
    ]
    whole = tuple(
        replace(case, difference=difference, outcome=outcome, loss=loss, loss_outcome=loss_outcome)
        for case, (difference, outcome), (loss, loss_outcome) in zip(cases, judged, lower, strict=True)
    )
    return Claim(claim["text"], claim["ours"], claim["against"], claim["expected"], whole, claim.get("gain", ""))


def _holm(differences: Sequence[Difference | None]) -> list[float | None]:
    """Return Holm's p of each difference that has one."""
    known = [place for place, one in enumerate(differences) if one is not None and one.t_p is not None]
    adjusted = statistics.holm([one.t_p for one in differences if one is not None and one.t_p is not None])
    by_place = dict(zip(known, adjusted, strict=True))
    return [by_place.get(place) for place in range(len(differences))]


def _cases(claim: Mapping[str, Any], part: Part) -> list[Case]:
    made = []
    for kept in dict.fromkeys(row.setting for row in part.rows):
        rows = {_recipe(row): row for row in part.rows if row.setting == kept and not row.unscored}
        ours, against = rows.get(claim["ours"]), rows.get(claim["against"])
        if ours is None or against is None:
            continue
        found = difference(ours.scores, against.scores, against.series, part.metric)
        if found is not None and found.n > 1:
            loss = difference(ours.losses, against.losses, against.series, LOSS)
            made.append(_case(part, kept, found, loss, [(ours, 1), (against, -1)]))
    return made


def _gains(claim: Mapping[str, Any], part: Part) -> list[Case]:
    """Return how much more positions help ours than the other, all else equal."""
    rows: dict[tuple[str, str], dict[str, Row]] = {}
    for row in part.rows:
        settings = {**part.settings, **dict(row.axes)}
        positions = settings.pop("model.positions", "")
        others = [(axis, value) for axis, value in row.axes if axis != "model.positions" and not is_recipe(axis)]
        rest = " · ".join(setting(axis, value) for axis, value in others)
        rows.setdefault((_recipe(row), rest), {})[positions] = row
    made = []
    for rest in dict.fromkeys(rest for _, rest in rows):
        pairs = [rows.get((claim[name], rest), {}) for name in ("ours", "against")]
        if not all("none" in pair and "sinusoidal" in pair for pair in pairs):
            continue
        ours, against = (_gain(pair["sinusoidal"].scores, pair["none"].scores) for pair in pairs)
        found = difference(ours, against, claim["against"], part.metric)
        if found is not None and found.n > 1:
            lower = [_gain(pair["sinusoidal"].losses, pair["none"].losses) for pair in pairs]
            loss = difference(lower[0], lower[1], claim["against"], LOSS)
            rows_of = [pair[name] for pair in pairs for name in ("sinusoidal", "none")]
            made.append(_case(part, rest, found, loss, list(zip(rows_of, (1, -1, -1, 1), strict=True))))
    return made


def _case(part: Part, kept: str, found: Difference, loss: Difference | None, signs: Sequence[tuple[Row, int]]) -> Case:
    """Return a case whose difference is that of rows with these signs, the paper's beside it."""
    printed = [(row.paper, sign) for row, sign in signs if row.paper is not None]
    whole = len(printed) == len(signs)
    known = whole and all(theirs.std is not None for theirs, _ in printed)
    return Case(
        where=" · ".join(filter(None, (part.name, kept))),
        task=part.name.partition(", ")[0],
        metric=part.metric,
        difference=found,
        loss=loss if loss is not None and loss.n > 1 else None,
        paper=sum(sign * theirs.mean for theirs, sign in printed) if whole else None,
        spread=math.sqrt(sum((theirs.std or 0) ** 2 for theirs, _ in printed)) if known else None,
    )


def _gain(on: Mapping[str, float], off: Mapping[str, float]) -> dict[str, float]:
    return {seed: on[seed] - off[seed] for seed in on if seed in off}


def _recipe(row: Row) -> str:
    return recipe_of(row.axes) or row.series


def _judged(found: Difference, p: float | None, expected: str, higher: bool) -> tuple[Difference, str]:
    """Return a difference with its p, and what it makes of a claim; `higher` says whether more is better."""
    seen = p is not None and p < LEVEL
    direction = ("better" if (found.mean > 0) == higher else "worse") if seen else ""
    if expected == "not worse":
        # "At least as well" is borne out where the interval leaves no room for worse.
        bound = found.low if higher else found.high
        out = "contradicted" if direction == "worse" else "borne out" if direction == "better" else "open"
        if out == "open" and bound is not None and (bound >= 0 if higher else bound <= 0):
            out = "borne out"
    else:
        out = "open" if not direction else "borne out" if direction == expected else "contradicted"
    return replace(found, holm_p=p), out
