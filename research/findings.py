"""The paper's findings against results: which blocks support each claim, and which are against it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from embinit import statistics
from embinit.format import plural
from embinit.reports.analysis.published import called, is_recipe, recipe_of
from embinit.reports.analysis.rows import LEVEL, difference
from embinit.reports.metrics import LOSS, SEPARATOR, kind, setting
from embinit.reports.model import Part, Summary
from embinit.reports.scores import Difference, Metric, TableRow
from embinit.statistics import Clustered

#: What one case shows: for the claim, against it, or neither because noise explains the difference.
SUPPORTED, AGAINST, OPEN = "supported", "against", "open"


@dataclass(frozen=True)
class Case:
    """A claim in one block and setting."""

    where: str
    #: the data set: `sst2`, `multi30k de-en`
    task: str
    metric: Metric
    difference: Difference
    #: ours minus against in the paper, and its σ from the printed ones; None if the paper does not print both
    paper: float | None
    spread: float | None
    #: `SUPPORTED`, `AGAINST` or `OPEN`
    outcome: str = ""
    #: the same for the lowest validation losses, which vary less between seeds; empty if there are none
    loss: Difference | None = None
    loss_outcome: str = ""
    #: seed -> the difference at that seed
    by_seed: Mapping[str, float] = field(default_factory=dict)

    @property
    def clear(self) -> bool:
        """Return whether the paper's own difference is larger than its σ."""
        return self.paper is not None and self.spread is not None and abs(self.paper) > self.spread + 1e-9

    @property
    def outcome_text(self) -> str:
        """Return the outcome and, if the paper's difference is clear too, whether it has the same sign."""
        if self.outcome == OPEN or not self.clear or self.paper is None:
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
    #: the setting whose gain is compared, for example `positions`; empty if the rows themselves are compared
    gain: str = ""

    @property
    def support(self) -> Support:
        """Return in how many cases the results support the claim, and in how many they are against it."""
        return support(self.cases)


@dataclass(frozen=True)
class PublishedFinding:
    """A finding of the paper, and its claims."""

    title: str
    claims: tuple[Claim, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the cases of all claims."""
        return tuple(case for claim in self.claims for case in claim.cases)


@dataclass(frozen=True)
class Support:
    """In how many of all cases the results are for a claim or against it; the others are open."""

    supported: int
    against: int
    total: int

    def __str__(self) -> str:
        if not self.total:
            return "not tested"
        return f"supported in {self.supported} of {plural(self.total, 'case')} (against in {self.against})"


def support(cases: Sequence[Case], by_loss: bool = False) -> Support:
    """Return how many cases support a claim, by the score or by the validation loss; cases without a loss do not count."""
    outcomes = [outcome for case in cases if (outcome := case.loss_outcome if by_loss else case.outcome)]
    return Support(outcomes.count(SUPPORTED), outcomes.count(AGAINST), len(outcomes))


def support_by_kind(cases: Sequence[Case]) -> dict[str, Support]:
    """Return kind of task -> its support, for translation and classification."""
    kinds = dict.fromkeys(kind(case.metric.name) for case in cases)
    return {name: support([case for case in cases if kind(case.metric.name) == name]) for name in kinds}


def pooled_by_task(cases: Sequence[Case]) -> dict[str, Clustered]:
    """Return data set -> the mean difference over its blocks, clustered by seed.

    Blocks of one data set share its evaluation examples and, seed by seed, the order of the data and the other weights, so
    they are not replications of each other.
    """
    by_task: dict[str, list[dict[int, float]]] = {}
    for case in cases:
        if len(case.by_seed) > 1:
            by_task.setdefault(case.task, []).append({int(seed): value for seed, value in case.by_seed.items()})
    return {task: statistics.pool_blocks(blocks) for task, blocks in by_task.items()}


@cache
def _listed() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))[
        "finding"
    ]
    return entries


def findings(summaries: Sequence[Summary]) -> tuple[PublishedFinding, ...]:
    """Return the paper's findings with every case that the reports hold; p values are Holm's over a claim's cases."""
    parts = [part for summary in summaries for part in summary.parts if part.rows and part.paper]
    return tuple(
        PublishedFinding(entry["title"], tuple(_claim(claim, parts) for claim in entry["claim"])) for entry in _listed()
    )


def _claim(claim: Mapping[str, Any], parts: Sequence[Part]) -> Claim:
    by_runs: dict[tuple[str, ...], Case] = {}
    for part in parts:
        table, _, embedding = called(part.paper)
        if embedding not in claim["embeddings"] or table not in (
            ("3",) if claim.get("gain") else ("1", "7", "figure1")
        ):
            continue
        for case in _gains(claim, part) if claim.get("gain") == "positions" else _cases(claim, part):
            # The same runs may stand in several reports.
            by_runs.setdefault((case.where, part.metric.name, str(case.difference.mean)), case)
    cases = list(by_runs.values())
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
    """Return Holm's p of each difference with a p."""
    known = [
        place for place, difference in enumerate(differences) if difference is not None and difference.t_p is not None
    ]
    adjusted = statistics.holm(
        [difference.t_p for difference in differences if difference is not None and difference.t_p is not None]
    )
    by_place = dict(zip(known, adjusted, strict=True))
    return [by_place.get(place) for place in range(len(differences))]


def _cases(claim: Mapping[str, Any], part: Part) -> list[Case]:
    cases = []
    for kept in dict.fromkeys(row.setting for row in part.rows):
        rows = {_recipe(row): row for row in part.rows if row.setting == kept and not row.unscored}
        ours, against = rows.get(claim["ours"]), rows.get(claim["against"])
        if ours is None or against is None:
            continue
        gap = difference(ours.scores, against.scores, against.series, part.metric)
        if gap is not None and gap.n > 1:
            loss = difference(ours.losses, against.losses, against.series, LOSS)
            by_seed = _minus(ours.scores, against.scores)
            cases.append(_case(part, kept, gap, loss, by_seed, [(ours, 1), (against, -1)]))
    return cases


def _gains(claim: Mapping[str, Any], part: Part) -> list[Case]:
    """Return how much more positions help ours than the other start, all else equal."""
    rows: dict[tuple[str, str], dict[str, TableRow]] = {}
    for row in part.rows:
        settings = {**part.settings, **dict(row.axes)}
        positions = settings.pop("model.positions", "")
        others = [(axis, value) for axis, value in row.axes if axis != "model.positions" and not is_recipe(axis)]
        rest = SEPARATOR.join(setting(axis, value) for axis, value in others)
        rows.setdefault((_recipe(row), rest), {})[positions] = row
    cases = []
    for rest in dict.fromkeys(rest for _, rest in rows):
        pairs = [rows.get((claim[name], rest), {}) for name in ("ours", "against")]
        if not all("none" in pair and "sinusoidal" in pair for pair in pairs):
            continue
        ours, against = (_minus(pair["sinusoidal"].scores, pair["none"].scores) for pair in pairs)
        gap = difference(ours, against, claim["against"], part.metric)
        if gap is not None and gap.n > 1:
            lower = [_minus(pair["sinusoidal"].losses, pair["none"].losses) for pair in pairs]
            loss = difference(lower[0], lower[1], claim["against"], LOSS)
            rows_of = [pair[name] for pair in pairs for name in ("sinusoidal", "none")]
            signs = list(zip(rows_of, (1, -1, -1, 1), strict=True))
            cases.append(_case(part, rest, gap, loss, _minus(ours, against), signs))
    return cases


def _case(
    part: Part,
    kept: str,
    gap: Difference,
    loss: Difference | None,
    by_seed: Mapping[str, float],
    signs: Sequence[tuple[TableRow, int]],
) -> Case:
    """Return a case with the paper's difference, which is the sum of these rows with their signs."""
    printed = [(row.paper, sign) for row, sign in signs if row.paper is not None]
    whole = len(printed) == len(signs)
    known = whole and all(theirs.std is not None for theirs, _ in printed)
    return Case(
        where=SEPARATOR.join(filter(None, (part.name, kept))),
        task=part.task,
        metric=part.metric,
        difference=gap,
        by_seed=by_seed,
        loss=loss if loss is not None and loss.n > 1 else None,
        paper=sum(sign * theirs.mean for theirs, sign in printed) if whole else None,
        spread=math.sqrt(sum((theirs.std or 0) ** 2 for theirs, _ in printed)) if known else None,
    )


def _minus(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    return {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}


def _recipe(row: TableRow) -> str:
    return recipe_of(row.axes) or row.series


def _judged(gap: Difference, p: float | None, expected: str, higher: bool) -> tuple[Difference, str]:
    """Return a difference with its p, and its outcome for a claim; `higher` tells whether more is better."""
    seen = p is not None and p < LEVEL
    direction = ("better" if (gap.mean > 0) == higher else "worse") if seen else ""
    if expected == "not worse":
        # "At least as well" is supported if the interval leaves no room for worse.
        bound = gap.low if higher else gap.high
        out = AGAINST if direction == "worse" else SUPPORTED if direction == "better" else OPEN
        if out == OPEN and bound is not None and (bound >= 0 if higher else bound <= 0):
            out = SUPPORTED
    else:
        out = OPEN if not direction else SUPPORTED if direction == expected else AGAINST
    return replace(gap, holm_p=p), out
