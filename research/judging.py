"""The advice of `embinit inspect` against trained blocks: in how many was it the best start, or as good?"""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from embinit import statistics
from embinit.diagnosis.basis import Basis
from embinit.diagnosis.verdict import Thresholds, verdict
from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import canonical
from embinit.recipes.recipe import recipe as recipe_of
from embinit.reports.analysis.rows import difference
from embinit.reports.scores import Difference
from embinit.types import xavier_std
from research.trials import Trial, start_of

#: Recipes that differ only in the scale of the source's rows. The nearer one stands for an advised scale that was not run.
SCALES = ("pretrained", "pretrained_xavier")
#: Recipes of the advisers that look at no rows.
TRIVIAL = ("xavier", "pretrained", "pretrained_xavier")


@dataclass(frozen=True)
class AdviceOutcome:
    """The outcome of one start in one block."""

    start: str
    #: "hit": the best, or not significantly worse; "miss"; "open"
    word: str
    #: the distance to the best, in the metric's unit; None if it is not known
    regret: float | None = None
    #: the start against the best, paired by seed; None if it is the best, or cannot be compared
    difference: Difference | None = None
    why: str = ""


#: Returns the start that it chooses for a block.
Adviser = Callable[[Trial], str]


@dataclass(frozen=True)
class Tally:
    """The hits and the regret of an adviser over several blocks."""

    hits: int
    judged: int
    open: int
    #: Wilson's 95 % interval of the share of hits; None if nothing could be judged
    low: float | None
    high: float | None
    #: unit of a metric -> mean regret over its blocks
    regret: Mapping[str, float]
    #: mean regret over all blocks, whatever their unit
    cost: float | None


def untold(trial: Trial) -> Trial:
    """Return the block for an adviser that does not know the task of the model."""
    return replace(trial, sides=tuple(replace(side, basis=replace(side.basis, task=None)) for side in trial.sides))


def advised(trial: Trial) -> str:
    """Return the start that the verdict advises; its advice for the full rate if no start was run at a rate of its own."""
    rate = _rate(trial)
    return _one(_meant(trial, rate), trial, rate)


def at_full_rate(trial: Trial, lines: Thresholds | None = None) -> str:
    """Return the start that is advised for rows without a rate of their own; by other thresholds if given."""
    return _one(_at_full_rate(trial, lines), trial, 1.0)


def to_compare(trial: Trial) -> str:
    """Return the start that the verdict says to compare: its recipe for the full rate, at the rate that it advises."""
    return _one(_at_full_rate(trial), trial, _rate(trial))


def stood_for(trial: Trial) -> bool:
    """Return whether an advised recipe was not run, so that the recipe that is nearest in scale stands for it."""
    rate = _rate(trial)
    meant = _meant(trial, rate)
    return any(_runnable(advice, basis, trial, rate) != canonical(recipe_of(advice)) for advice, basis in meant)


def _rate(trial: Trial) -> float:
    """Return the advised rate; the full one if no start of the block had the advised one."""
    rates = {verdict(side.basis).rate for side in trial.sides}
    return min(rates) if rates <= set(trial.rates.values()) else 1.0


def _meant(trial: Trial, rate: float) -> list[tuple[str, Basis]]:
    """Return the recipe that the verdict advises for each side, at a rate."""
    return _at_full_rate(trial) if rate == 1 else [(verdict(side.basis).recipe, side.basis) for side in trial.sides]


def _at_full_rate(trial: Trial, lines: Thresholds | None = None) -> list[tuple[str, Basis]]:
    verdicts = [(verdict(side.basis, lines), side.basis) for side in trial.sides]
    return [(opinion.at_full_rate or opinion.recipe, basis) for opinion, basis in verdicts]


def _one(meant: Sequence[tuple[str, Basis]], trial: Trial, rate: float) -> str:
    """Return the start at a rate that stands for the advised recipes of all sides.

    A recipe that was not run differs from `pretrained` and `pretrained_xavier` only in scale; the one with the nearer σ
    stands for it. If the sides of a translation have different advice that was not run together, both are standardized:
    that helps the side that needs it, and does not harm rows that are narrow already.
    """
    named = dict.fromkeys(_runnable(advice, basis, trial, rate) for advice, basis in meant)
    both = start_of(" / ".join(named), rate)
    return both if len(named) == 1 or both in trial.starts else start_of("pretrained_xavier", rate)


def _runnable(advice: str, basis: Basis, trial: Trial, rate: float) -> str:
    name = canonical(recipe_of(advice))
    if name in SCALES or start_of(name, rate) in trial.starts:
        return name
    offered = [scale for scale in SCALES if start_of(scale, rate) in trial.starts] or list(SCALES)
    wanted = _std(advice, basis)
    return min(offered, key=lambda scale: abs(math.log(_std(scale, basis) / wanted)))


def _std(text: str, basis: Basis) -> float:
    """Return the σ that rows of this distribution have after a recipe that scales them."""
    host, dim = basis.host, basis.spread.dim
    for step in reversed(recipe_of(text).steps):
        values = dict(step.parameters)
        if step.name == "scale" and values.get("ratio"):
            return float(values["ratio"]) * host.position_rms / host.multiplier(dim)
        if step.name == "scale":
            return xavier_std(basis.rows, dim) if values.get("to") == "xavier" else host.initial_std(basis.rows, dim)
    return basis.spread.std


def outcome(trial: Trial, start: str) -> AdviceOutcome:
    """Return whether a start was the best of a block, or not significantly worse (its paired 95 % interval reaches zero)."""
    if trial.open:
        return AdviceOutcome(start, "open", why=trial.open)
    if start in trial.failed:
        return AdviceOutcome(start, "miss", why=trial.failed[start])
    if start not in trial.scores:
        return AdviceOutcome(start, "open", why=f"{start} was not run")
    best = trial.best
    if start == best:
        return AdviceOutcome(start, "hit", 0.0)
    gap = difference(trial.scores[start], trial.scores[best], best, trial.metric)
    if gap is None:
        raise EmbinitError(f"{trial.name}: {start} and {best} have no seed in common")
    sign = 1 if trial.metric.higher else -1
    bounds = [sign * bound for bound in (gap.low, gap.high) if bound is not None]
    # Without an interval all differences are equal, and only differences of zero are noise.
    worse = max(bounds) < 0 if bounds else gap.mean != 0
    return AdviceOutcome(start, "miss" if worse else "hit", -sign * gap.mean, gap)


def tally(trials: Sequence[Trial], adviser: Adviser) -> Tally:
    """Return the hits of an adviser among the blocks that can be judged, and its mean regret."""
    outcomes = [(trial, outcome(trial, adviser(trial))) for trial in trials]
    judged = [judgement for _, judgement in outcomes if judgement.word != "open"]
    hits = sum(judgement.word == "hit" for judgement in judged)
    low, high = statistics.wilson(hits, len(judged)) if judged else (None, None)
    costs: dict[str, list[float]] = {}
    for trial, judgement in outcomes:
        if judgement.regret is not None:
            costs.setdefault(trial.metric.unit, []).append(judgement.regret)
    together = [cost for listed in costs.values() for cost in listed]
    return Tally(
        hits=hits,
        judged=len(judged),
        open=len(outcomes) - len(judged),
        low=low,
        high=high,
        regret={unit: plain.fmean(listed) for unit, listed in costs.items()},
        cost=plain.fmean(together) if together else None,
    )


def always(recipe: str) -> Adviser:
    """Return the adviser that names one recipe for all rows, at the full rate."""
    return lambda _: recipe


def always_at_advised_rate(recipe: str) -> Adviser:
    """Return the adviser that names one recipe for all rows, at the rate that the verdict advises if it was run there."""

    def adviser(trial: Trial) -> str:
        start = start_of(recipe, _rate(trial))
        return start if start in trial.starts else recipe

    return adviser


def comparators() -> dict[str, Adviser]:
    """Return the advisers that look at no rows, by name: each recipe at the full rate, and at the advised one."""
    full = {f"always {name}": always(name) for name in TRIVIAL}
    return full | {f"always {name} at the advised rate": always_at_advised_rate(name) for name in TRIVIAL}
