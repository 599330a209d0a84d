"""Judge the advice of `embinit inspect`: in how many trained blocks was it the best start, or as good?"""

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
#: Recipes of the advisers that do not look at the rows.
BLIND_RECIPES = ("xavier", "pretrained", "pretrained_xavier")


@dataclass(frozen=True)
class AdviceOutcome:
    """The outcome of one start in one block."""

    start: str
    #: "hit" (the best, or not significantly worse), "miss" or "open"
    status: str
    #: distance to the best, in the metric's unit; None if unknown
    regret: float | None = None
    #: the start minus the best, paired by seed; None for the best start, or without scores
    difference: Difference | None = None
    reason: str = ""


#: A function that chooses a start for a block.
Adviser = Callable[[Trial], str]


@dataclass(frozen=True)
class Tally:
    """The hits and the regret of an adviser over blocks."""

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


def without_task(trial: Trial) -> Trial:
    """Return the block without the task of the model, as for `embinit inspect` without --task."""
    return replace(trial, sides=tuple(replace(side, basis=replace(side.basis, task=None)) for side in trial.sides))


def advised_start(trial: Trial) -> str:
    """Return the start that the verdict advises; at the full rate if no start was run at the advised rate."""
    rate = _advised_rate(trial)
    return _nearest_start(_advised_recipes(trial, rate), trial, rate)


def advised_start_at_full_rate(trial: Trial, thresholds: Thresholds | None = None) -> str:
    """Return the start that is advised at the full rate, by other thresholds if given."""
    return _nearest_start(_full_rate_recipes(trial, thresholds), trial, 1.0)


def start_to_compare(trial: Trial) -> str:
    """Return the start that the verdict recommends for comparison: the recipe for the full rate, at the advised rate."""
    return _nearest_start(_full_rate_recipes(trial), trial, _advised_rate(trial))


def has_stand_in(trial: Trial) -> bool:
    """Return whether an advised recipe was not run, so that the recipe nearest in scale stands for it."""
    rate = _advised_rate(trial)
    recipes = _advised_recipes(trial, rate)
    return any(_runnable(advice, basis, trial, rate) != canonical(recipe_of(advice)) for advice, basis in recipes)


def _advised_rate(trial: Trial) -> float:
    """Return the advised rate; the full rate if no start of the block was run at the advised one."""
    rates = {verdict(side.basis).rate for side in trial.sides}
    return min(rates) if rates <= set(trial.rates.values()) else 1.0


def _advised_recipes(trial: Trial, rate: float) -> list[tuple[str, Basis]]:
    """Return the recipe that the verdict advises for each side at this rate."""
    return (
        _full_rate_recipes(trial) if rate == 1 else [(verdict(side.basis).recipe, side.basis) for side in trial.sides]
    )


def _full_rate_recipes(trial: Trial, thresholds: Thresholds | None = None) -> list[tuple[str, Basis]]:
    verdicts = [(verdict(side.basis, thresholds), side.basis) for side in trial.sides]
    return [(opinion.at_full_rate or opinion.recipe, basis) for opinion, basis in verdicts]


def _nearest_start(advised: Sequence[tuple[str, Basis]], trial: Trial, rate: float) -> str:
    """Return the start at a rate that is nearest to the advised recipes of all sides.

    A recipe that was not run differs from `pretrained` and `pretrained_xavier` only in scale; the one with the nearer σ
    stands for it. If the sides of a translation have different advice that was not run together, both are standardized.
    That helps the side that needs it, and does not harm rows that are narrow already.
    """
    recipes = dict.fromkeys(_runnable(advice, basis, trial, rate) for advice, basis in advised)
    both = start_of(" / ".join(recipes), rate)
    return both if len(recipes) == 1 or both in trial.starts else start_of("pretrained_xavier", rate)


def _runnable(advice: str, basis: Basis, trial: Trial, rate: float) -> str:
    name = canonical(recipe_of(advice))
    if name in SCALES or start_of(name, rate) in trial.starts:
        return name
    candidates = [scale for scale in SCALES if start_of(scale, rate) in trial.starts] or list(SCALES)
    target = _std(advice, basis)
    return min(candidates, key=lambda scale: abs(math.log(_std(scale, basis) / target)))


def _std(text: str, basis: Basis) -> float:
    """Return the σ of rows with this distribution after a recipe that scales them."""
    host, dim = basis.host, basis.spread.dim
    for step in reversed(recipe_of(text).steps):
        values = dict(step.parameters)
        if step.name == "scale" and values.get("ratio"):
            return float(values["ratio"]) * host.position_rms / host.multiplier(dim)
        if step.name == "scale":
            return xavier_std(basis.rows, dim) if values.get("to") == "xavier" else host.initial_std(basis.rows, dim)
    return basis.spread.std


def outcome(trial: Trial, start: str) -> AdviceOutcome:
    """Return the outcome of a start: a hit if it is the best, or if its paired 95 % interval against the best reaches 0."""
    if trial.open_reason:
        return AdviceOutcome(start, "open", reason=trial.open_reason)
    if start in trial.failed:
        return AdviceOutcome(start, "miss", reason=trial.failed[start])
    if start not in trial.scores:
        return AdviceOutcome(start, "open", reason=f"{start} was not run")
    best = trial.best
    if start == best:
        return AdviceOutcome(start, "hit", 0.0)
    gap = difference(trial.scores[start], trial.scores[best], best, trial.metric)
    if gap is None:
        raise EmbinitError(f"{trial.name}: {start} and {best} have no seed in common")
    sign = 1 if trial.metric.higher else -1
    bounds = [sign * bound for bound in (gap.low, gap.high) if bound is not None]
    # Without an interval, all differences are equal; then only a difference of zero is noise.
    worse = max(bounds) < 0 if bounds else gap.mean != 0
    return AdviceOutcome(start, "miss" if worse else "hit", -sign * gap.mean, gap)


def tally(trials: Sequence[Trial], adviser: Adviser) -> Tally:
    """Return the hits of an adviser among the blocks that can be judged, and its mean regret."""
    outcomes = [(trial, outcome(trial, adviser(trial))) for trial in trials]
    judged = [judgement for _, judgement in outcomes if judgement.status != "open"]
    hits = sum(judgement.status == "hit" for judgement in judged)
    low, high = statistics.wilson(hits, len(judged)) if judged else (None, None)
    regrets: dict[str, list[float]] = {}
    for trial, judgement in outcomes:
        if judgement.regret is not None:
            regrets.setdefault(trial.metric.unit, []).append(judgement.regret)
    all_regrets = [regret for of_unit in regrets.values() for regret in of_unit]
    return Tally(
        hits=hits,
        judged=len(judged),
        open=len(outcomes) - len(judged),
        low=low,
        high=high,
        regret={unit: plain.fmean(of_unit) for unit, of_unit in regrets.items()},
        cost=plain.fmean(all_regrets) if all_regrets else None,
    )


def always(recipe: str) -> Adviser:
    """Return the adviser that always chooses one recipe, at the full rate."""
    return lambda _: recipe


def always_at_advised_rate(recipe: str) -> Adviser:
    """Return the adviser that always chooses one recipe, at the advised rate if the recipe was run at it."""

    def adviser(trial: Trial) -> str:
        start = start_of(recipe, _advised_rate(trial))
        return start if start in trial.starts else recipe

    return adviser


def blind_advisers() -> dict[str, Adviser]:
    """Return the advisers that do not look at the rows, by name: each recipe at the full and at the advised rate."""
    full = {f"always {name}": always(name) for name in BLIND_RECIPES}
    return full | {f"always {name} at the advised rate": always_at_advised_rate(name) for name in BLIND_RECIPES}
