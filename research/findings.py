"""Test the paper's findings: which blocks support each claim, and which are against it."""

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

#: Outcome of a case: for the claim, against it, or open because noise can explain the difference.
SUPPORTED, AGAINST, OPEN = "supported", "against", "open"


@dataclass(frozen=True)
class Case:
    """A claim, tested in one block and setting."""

    where: str
    #: the data set: `sst2`, `multi30k de-en`
    task: str
    metric: Metric
    difference: Difference
    #: the difference in the paper, and its σ from the printed ones; None if the paper does not print both rows
    paper: float | None
    spread: float | None
    #: `SUPPORTED`, `AGAINST` or `OPEN`
    outcome: str = ""
    #: difference and outcome of the lowest validation losses, which vary less between seeds; empty without losses
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
    """A claim with its cases."""

    text: str
    ours: str
    against: str
    expected: str
    cases: tuple[Case, ...]
    #: the setting whose gain is compared, for example `positions`; empty if the rows themselves are compared
    gain: str = ""

    @property
    def support(self) -> Support:
        """Return the number of cases that support the claim, and of those against it."""
        return support(self.cases)


@dataclass(frozen=True)
class PublishedFinding:
    """A finding of the paper, with its claims."""

    title: str
    claims: tuple[Claim, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return the cases of all claims."""
        return tuple(case for claim in self.claims for case in claim.cases)


@dataclass(frozen=True)
class Support:
    """The number of cases for a claim and against it; the remaining cases are open."""

    supported: int
    against: int
    total: int

    def __str__(self) -> str:
        if not self.total:
            return "not tested"
        return f"supported in {self.supported} of {plural(self.total, 'case')} (against in {self.against})"


def support(cases: Sequence[Case], by_loss: bool = False) -> Support:
    """Return the support of a claim by the score, or by the validation loss over the cases with a loss."""
    outcomes = [outcome for case in cases if (outcome := case.loss_outcome if by_loss else case.outcome)]
    return Support(outcomes.count(SUPPORTED), outcomes.count(AGAINST), len(outcomes))


def support_by_kind(cases: Sequence[Case]) -> dict[str, Support]:
    """Return kind of task (translation, classification) -> support."""
    kinds = dict.fromkeys(kind(case.metric.name) for case in cases)
    return {name: support([case for case in cases if kind(case.metric.name) == name]) for name in kinds}


def pooled_by_task(cases: Sequence[Case]) -> dict[str, Clustered]:
    """Return data set -> the mean difference over its blocks, clustered by seed.

    Blocks of one data set are not replications of each other. They share its evaluation examples and, at each seed, the
    order of the data and the other weights.
    """
    by_task: dict[str, list[dict[int, float]]] = {}
    for case in cases:
        if len(case.by_seed) > 1:
            by_task.setdefault(case.task, []).append({int(seed): value for seed, value in case.by_seed.items()})
    return {task: statistics.pool_blocks(blocks) for task, blocks in by_task.items()}


@cache
def _entries() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))[
        "finding"
    ]
    return entries


def findings(summaries: Sequence[Summary]) -> tuple[PublishedFinding, ...]:
    """Return the paper's findings with all cases in the reports. Holm's correction is over the cases of a claim."""
    parts = [part for summary in summaries for part in summary.parts if part.rows and part.paper]
    return tuple(
        PublishedFinding(entry["title"], tuple(_claim(claim, parts) for claim in entry["claim"]))
        for entry in _entries()
    )


def _claim(claim: Mapping[str, Any], parts: Sequence[Part]) -> Claim:
    by_runs: dict[tuple[str, ...], Case] = {}
    for part in parts:
        table, _, embedding = called(part.paper)
        if embedding not in claim["embeddings"] or table not in (
            ("3",) if claim.get("gain") else ("1", "7", "figure1")
        ):
            continue
        for case in _gain_cases(claim, part) if claim.get("gain") == "positions" else _row_cases(claim, part):
            # Several reports may contain the same runs.
            by_runs.setdefault((case.where, part.metric.name, str(case.difference.mean)), case)
    cases = list(by_runs.values())
    judged = [
        _judge(case.difference, p, claim["expected"], case.metric.higher)
        for case, p in zip(cases, _holm([case.difference for case in cases]), strict=True)
    ]
    judged_losses = [
        (None, "") if case.loss is None else _judge(case.loss, p, claim["expected"], higher=False)
        for case, p in zip(cases, _holm([case.loss for case in cases]), strict=True)
    ]
    tested = tuple(
        replace(case, difference=difference, outcome=outcome, loss=loss, loss_outcome=loss_outcome)
        for case, (difference, outcome), (loss, loss_outcome) in zip(cases, judged, judged_losses, strict=True)
    )
    return Claim(claim["text"], claim["ours"], claim["against"], claim["expected"], tested, claim.get("gain", ""))


def _holm(differences: Sequence[Difference | None]) -> list[float | None]:
    """Return the p value of each difference, corrected by Holm; None without a p value."""
    places = [
        place for place, difference in enumerate(differences) if difference is not None and difference.t_p is not None
    ]
    adjusted = statistics.holm(
        [difference.t_p for difference in differences if difference is not None and difference.t_p is not None]
    )
    by_place = dict(zip(places, adjusted, strict=True))
    return [by_place.get(place) for place in range(len(differences))]


def _row_cases(claim: Mapping[str, Any], part: Part) -> list[Case]:
    """Return the difference between two starts in each setting of a block."""
    cases = []
    for setting_name in dict.fromkeys(row.setting for row in part.rows):
        rows = {_recipe(row): row for row in part.rows if row.setting == setting_name and not row.unscored}
        ours, against = rows.get(claim["ours"]), rows.get(claim["against"])
        if ours is None or against is None:
            continue
        gap = difference(ours.scores, against.scores, against.series, part.metric)
        if gap is not None and gap.n > 1:
            loss = difference(ours.losses, against.losses, against.series, LOSS)
            by_seed = _differences(ours.scores, against.scores)
            cases.append(_case(part, setting_name, gap, loss, by_seed, [(ours, 1), (against, -1)]))
    return cases


def _gain_cases(claim: Mapping[str, Any], part: Part) -> list[Case]:
    """Return the gain from positions with our start minus the gain with the other one, in each setting."""
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
        ours, against = (_differences(pair["sinusoidal"].scores, pair["none"].scores) for pair in pairs)
        gap = difference(ours, against, claim["against"], part.metric)
        if gap is not None and gap.n > 1:
            losses = [_differences(pair["sinusoidal"].losses, pair["none"].losses) for pair in pairs]
            loss = difference(losses[0], losses[1], claim["against"], LOSS)
            signed_rows = [pair[name] for pair in pairs for name in ("sinusoidal", "none")]
            signs = list(zip(signed_rows, (1, -1, -1, 1), strict=True))
            cases.append(_case(part, rest, gap, loss, _differences(ours, against), signs))
    return cases


def _case(
    part: Part,
    setting_name: str,
    gap: Difference,
    loss: Difference | None,
    by_seed: Mapping[str, float],
    signs: Sequence[tuple[TableRow, int]],
) -> Case:
    """Return a case with the paper's difference: the sum of the paper's rows, each with its sign."""
    printed = [(row.paper, sign) for row, sign in signs if row.paper is not None]
    complete = len(printed) == len(signs)
    has_std = complete and all(theirs.std is not None for theirs, _ in printed)
    return Case(
        where=SEPARATOR.join(filter(None, (part.name, setting_name))),
        task=part.task,
        metric=part.metric,
        difference=gap,
        by_seed=by_seed,
        loss=loss if loss is not None and loss.n > 1 else None,
        paper=sum(sign * theirs.mean for theirs, sign in printed) if complete else None,
        spread=math.sqrt(sum((theirs.std or 0) ** 2 for theirs, _ in printed)) if has_std else None,
    )


def _differences(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    return {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}


def _recipe(row: TableRow) -> str:
    return recipe_of(row.axes) or row.series


def _judge(gap: Difference, p: float | None, expected: str, higher: bool) -> tuple[Difference, str]:
    """Return a difference with its p value, and its outcome for a claim; `higher` is whether higher values are better."""
    significant = p is not None and p < LEVEL
    direction = ("better" if (gap.mean > 0) == higher else "worse") if significant else ""
    if expected == "not worse":
        # "At least as well" is also supported if the interval excludes anything worse.
        bound = gap.low if higher else gap.high
        outcome = AGAINST if direction == "worse" else SUPPORTED if direction == "better" else OPEN
        if outcome == OPEN and bound is not None and (bound >= 0 if higher else bound <= 0):
            outcome = SUPPORTED
    else:
        outcome = OPEN if not direction else SUPPORTED if direction == expected else AGAINST
    return replace(gap, holm_p=p), outcome
