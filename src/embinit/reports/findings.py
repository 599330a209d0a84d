"""The paper's findings against results: in which blocks each claim is borne out, contradicted, or open."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from embinit import statistics
from embinit.reports.paper import called, is_recipe, recipe_of
from embinit.reports.rows import LEVEL, difference
from embinit.reports.types import Difference, Metric, Part, Row, Summary
from embinit.reports.words import plural, setting


@dataclass(frozen=True)
class Case:
    """A claim in one block and setting."""

    where: str
    metric: Metric
    difference: Difference
    #: ours minus against, as the paper has them; None where it has not both
    paper: float | None
    #: "borne out", "contradicted", or "open" where noise explains it
    outcome: str


@dataclass(frozen=True)
class Claim:
    """A claim with all of its cases."""

    text: str
    ours: str
    against: str
    expected: str
    cases: tuple[Case, ...]

    @property
    def outcome(self) -> str:
        """Return in words what becomes of it over all cases."""
        counts = {name: sum(case.outcome == name for case in self.cases) for name in ("borne out", "contradicted")}
        if not self.cases:
            return "not tested"
        said = [f"{name} in {count}" for name, count in counts.items() if count]
        left = len(self.cases) - sum(counts.values())
        said += [f"open in {left}"] if left else []
        verdict = "open"
        if counts["borne out"] > counts["contradicted"]:
            verdict = "mixed" if counts["contradicted"] else "confirmed"
        elif counts["contradicted"]:
            verdict = "mixed" if counts["borne out"] else "refuted"
        return f"{verdict}: {', '.join(said)} of {plural(len(self.cases), 'case')}"


@dataclass(frozen=True)
class Finding:
    """A finding of the paper, and its claims."""

    title: str
    claims: tuple[Claim, ...]


@cache
def _listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(
        resources.files("embinit.reports").joinpath("findings.toml").read_text("utf-8")
    )["finding"]
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
    known = [case for case in cases if case.difference.t_p is not None]
    adjusted = statistics.holm([case.difference.t_p for case in known if case.difference.t_p is not None])
    by_case = {id(case): p for case, p in zip(known, adjusted, strict=True)}
    judged = tuple(_judged(case, by_case.get(id(case)), claim["expected"]) for case in cases)
    return Claim(claim["text"], claim["ours"], claim["against"], claim["expected"], judged)


def _cases(claim: Mapping[str, Any], part: Part) -> list[Case]:
    made = []
    for where in dict.fromkeys(row.setting for row in part.rows):
        rows = {_recipe(row): row for row in part.rows if row.setting == where and not row.unscored}
        ours, against = rows.get(claim["ours"]), rows.get(claim["against"])
        if ours is None or against is None:
            continue
        found = difference(ours.scores, against.scores, against.series, part.metric)
        if found is not None and found.n > 1:
            printed = ours.paper.mean - against.paper.mean if ours.paper and against.paper else None
            made.append(Case(" · ".join(filter(None, (part.name, where))), part.metric, found, printed, ""))
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
            printed = [
                row.paper.mean if row.paper else None for pair in pairs for row in (pair["sinusoidal"], pair["none"])
            ]
            known = [value for value in printed if value is not None]
            theirs = known[0] - known[1] - known[2] + known[3] if len(known) == 4 else None
            made.append(Case(" · ".join(filter(None, (part.name, rest))), part.metric, found, theirs, ""))
    return made


def _gain(on: Mapping[str, float], off: Mapping[str, float]) -> dict[str, float]:
    return {seed: on[seed] - off[seed] for seed in on if seed in off}


def _recipe(row: Row) -> str:
    return recipe_of(row.axes) or row.series


def _judged(case: Case, p: float | None, expected: str) -> Case:
    found = case.difference
    seen = p is not None and p < LEVEL
    direction = ("better" if (found.mean > 0) == case.metric.higher else "worse") if seen else ""
    if expected == "not worse":
        # "At least as well" is borne out where the interval leaves no room for worse.
        bound = found.low if case.metric.higher else found.high
        out = "contradicted" if direction == "worse" else "borne out" if direction == "better" else "open"
        if out == "open" and bound is not None and (bound >= 0 if case.metric.higher else bound <= 0):
            out = "borne out"
    else:
        out = "open" if not direction else "borne out" if direction == expected else "contradicted"
    return replace(case, difference=replace(found, holm_p=p), outcome=out)
