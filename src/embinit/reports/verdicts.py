"""The advice of `embinit inspect` against what was trained: in how many cells was it the best start, or as good?

A cell is a block that both an experiment of verdicts and one of training have, by its name: a task with its sources.
"""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from embinit import statistics
from embinit.diagnosis.verdict import Basis, Lines, basis_of, verdict
from embinit.errors import EmbinitError
from embinit.experiments.draft import canonical
from embinit.experiments.experiment import Block
from embinit.recipes.recipe import recipe as recipe_of
from embinit.reports.compact import Compact
from embinit.reports.paper import recipe_of as recipe_in
from embinit.reports.rows import difference, rows
from embinit.reports.types import Difference, Metric, Row
from embinit.reports.words import metric as metric_of
from embinit.reports.words import plural
from embinit.types import xavier_std

#: Seeds that all recipes of a cell must share before it is judged: with fewer hardly anything is significantly worse.
SEEDS = 5
#: Recipes that differ in the scale of the source's rows alone: what another scale that is advised is nearest to.
SCALES = ("pretrained", "pretrained_xavier")
#: Advisers that look at nothing.
TRIVIAL = ("xavier", "pretrained", "pretrained_xavier")


@dataclass(frozen=True)
class Diagnosed:
    """One matrix of a cell, and the numbers that its verdict rests on."""

    side: str
    source: str
    #: fingerprint of the rows
    rows: str
    basis: Basis


@dataclass(frozen=True)
class Trial:
    """A block that was diagnosed, and what each recipe reached in it."""

    name: str
    task: str
    #: `A` or `B`
    half: str
    sides: tuple[Diagnosed, ...]
    metric: Metric
    #: recipe -> seed -> score, over the seeds that all of them have; recipes with runs that left no score aside
    scores: Mapping[str, Mapping[str, float]]
    #: recipe -> why it cannot be the best: runs of it left nothing to score
    failed: Mapping[str, str]
    #: steps, or the name that all know them by -> what the file that was run calls them
    called: Mapping[str, str] = field(default_factory=dict)
    #: why it cannot be judged, if so
    open: str = ""

    @property
    def best(self) -> str:
        """Return the recipe with the highest mean; the first of equal ones, empty where nothing can be judged."""
        if self.open or not self.scores:
            return ""
        sign = 1 if self.metric.higher else -1
        return max(self.scores, key=lambda name: sign * plain.fmean(self.scores[name].values()))

    def steps(self, recipe: str) -> str:
        """Return what a recipe of a file's own stands for; names that all know stay."""
        return next((steps for steps, name in self.called.items() if name == recipe), recipe)

    @property
    def recipes(self) -> tuple[str, ...]:
        """Return the recipes that were run."""
        return (*self.scores, *self.failed)


@dataclass(frozen=True)
class Outcome:
    """What became of one recipe in one cell."""

    recipe: str
    #: "hit": the best, or not significantly worse; "miss"; "open"
    word: str
    #: how far the best is above it, in the metric's unit; None where that is not known
    regret: float | None = None
    #: the recipe against the best, paired by seed; None where it is the best, or cannot be compared
    difference: Difference | None = None
    why: str = ""


#: Names a recipe for a cell.
Adviser = Callable[[Trial], str]


@dataclass(frozen=True)
class Tally:
    """How an adviser did over several cells."""

    hits: int
    judged: int
    open: int
    #: Wilson's 95 % interval of the share of hits; None where nothing could be judged
    low: float | None
    high: float | None
    #: unit of a metric -> mean regret over its cells
    regret: Mapping[str, float]
    #: mean regret over all cells, whatever their unit
    cost: float | None


def trials(compacts: Sequence[Compact]) -> tuple[Trial, ...]:
    """Return every block that was diagnosed, in the files' order, with what was trained under its name."""
    trained: dict[str, list[tuple[Block, tuple[Row, ...]]]] = {}
    for one in compacts:
        if one.experiment.kind == "training":
            for block in one.experiment.blocks:
                found = rows(block, one.results, one.experiment.baselines)
                trained.setdefault(block.name, []).append((_resolved(block, one), found))
    made = []
    for one in compacts:
        if one.experiment.kind == "verdict":
            blocks = [block for block in (one.measured or {}).get("blocks", []) if block["rows"]]
            for block, half in zip(blocks, halves([block["task"] for block in blocks]), strict=True):
                candidates = [_trial(block, half, *ran) for ran in trained.get(block["name"], [])]
                # The same block may stand in several files; the one that tells most is taken.
                made.append(max(candidates, key=_told, default=_untried(block, half)))
    return tuple(made)


def halves(tasks: Sequence[str]) -> list[str]:
    """Return the half, A or B, of each block by its task: alternating, and the other way round in every second task.

    So each half has about half of each task's blocks, and of each source's where tasks list their sources in one order.

    >>> halves(["sst2", "sst2", "mnli", "mnli", "mnli"])
    ['A', 'B', 'B', 'A', 'B']
    """
    order = list(dict.fromkeys(tasks))
    return ["AB"[(order.index(task) + tasks[:place].count(task)) % 2] for place, task in enumerate(tasks)]


def _resolved(block: Block, one: Compact) -> Block:
    """Return a block whose specs are those that were run, which know the fingerprints of their rows."""
    ran = [one.results[planned.spec.key].spec if planned.spec.key in one.results else None for planned in block.runs]
    return replace(
        block,
        runs=tuple(
            planned if spec is None else replace(planned, spec=spec)
            for planned, spec in zip(block.runs, ran, strict=True)
        ),
    )


def _told(trial: Trial) -> tuple[bool, int, int]:
    seeds = max((len(scores) for scores in trial.scores.values()), default=0)
    return not trial.open, len(trial.scores), seeds


def _diagnosed(block: Mapping[str, Any]) -> tuple[Diagnosed, ...]:
    return tuple(Diagnosed(row["side"], row["source"], row["rows"], basis_of(row["basis"])) for row in block["rows"])


def _untried(block: Mapping[str, Any], half: str) -> Trial:
    nothing = metric_of("", "")
    return Trial(block["name"], block["task"], half, _diagnosed(block), nothing, {}, {}, open="not trained yet")


def _trial(block: Mapping[str, Any], half: str, ran: Block, found: Sequence[Row]) -> Trial:
    sides = _diagnosed(block)
    by_recipe = {recipe_in(row.axes) or row.series: row for row in found}
    failed = {
        name: f"{row.unscored} of {plural(row.planned, 'run')} left nothing to score"
        for name, row in by_recipe.items()
        if row.unscored
    }
    sound = {name: row.scores for name, row in by_recipe.items() if name not in failed}
    common = set.intersection(*(set(scores) for scores in sound.values())) if sound else set()
    scores = {name: {seed: listed[seed] for seed in sorted(common, key=int)} for name, listed in sound.items()}
    why = ""
    if len({row.setting for row in found}) > 1:
        why = "its runs differ in more than the recipe"
    elif _others(sides, ran):
        why = "other rows were trained than diagnosed"
    elif ran.missing and not common:
        why = f"not run: {ran.missing}"
    elif len(common) < SEEDS:
        why = f"{plural(len(common), 'seed')} that all recipes have; {SEEDS} are needed"
    metric = metric_of(ran.score, ran.split)
    called = {
        side.recipe: name
        for planned in ran.runs
        if (name := recipe_in(planned.axes))
        for _, side in planned.spec.sides
        if side.source
    }
    return Trial(block["name"], block["task"], half, sides, metric, scores, failed, called, why)


def _others(sides: Sequence[Diagnosed], ran: Block) -> bool:
    """Return whether a run started from other rows than those that were diagnosed."""
    diagnosed = {side.side: side.rows for side in sides}
    used = {(name, side.rows) for planned in ran.runs for name, side in planned.spec.sides if side.rows}
    return any(rows != diagnosed.get(name) for name, rows in used)


def untold(trial: Trial) -> Trial:
    """Return the cell for an adviser that is not told what the model is for."""
    return replace(trial, sides=tuple(replace(side, basis=replace(side.basis, task=None)) for side in trial.sides))


def advised(trial: Trial, lines: Lines | None = None) -> str:
    """Return the one of the recipes that were run which the verdict means; by other lines than its own where given.

    A recipe that was not run differs from `pretrained` and `pretrained_xavier` in the scale alone: the one is taken whose σ
    is nearer by its ratio. Where the sides of a translation are advised differently, and were not run so, both are
    standardized: that is the remedy of a harm on one side, and none to rows that are narrow already.
    """
    named = {_runnable(verdict(side.basis, lines).recipe, side.basis, trial) for side in trial.sides}
    return named.pop() if len(named) == 1 else "pretrained_xavier"


def stood_for(trial: Trial) -> bool:
    """Return whether a recipe that it means was not run, so that the one that is nearest in scale stands for it."""
    said = [(verdict(side.basis).recipe, side.basis) for side in trial.sides]
    return any(_runnable(advice, basis, trial) != _name(advice, trial) for advice, basis in said)


def _name(advice: str, trial: Trial) -> str:
    name = canonical(recipe_of(advice))
    return trial.called.get(name, name)


def _runnable(advice: str, basis: Basis, trial: Trial) -> str:
    name, ran = _name(advice, trial), trial.recipes
    if name in ran or name in SCALES:
        return name
    offered = [one for one in SCALES if one in ran] or list(SCALES)
    wanted = _std(advice, basis)
    return min(offered, key=lambda one: abs(math.log(_std(one, basis) / wanted)))


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


def outcome(trial: Trial, recipe: str) -> Outcome:
    """Return whether a recipe was the best of a cell, or not significantly worse: its paired 95 % interval reaches zero."""
    if trial.open:
        return Outcome(recipe, "open", why=trial.open)
    if recipe in trial.failed:
        return Outcome(recipe, "miss", why=trial.failed[recipe])
    if recipe not in trial.scores:
        return Outcome(recipe, "open", why=f"{recipe} was not run")
    best = trial.best
    if recipe == best:
        return Outcome(recipe, "hit", 0.0)
    found = difference(trial.scores[recipe], trial.scores[best], best, trial.metric)
    if found is None:
        raise EmbinitError(f"{trial.name}: {recipe} and {best} have no seed in common")
    sign = 1 if trial.metric.higher else -1
    bounds = [sign * bound for bound in (found.low, found.high) if bound is not None]
    # Without an interval all differences are equal: they are the noise's only where they are none.
    worse = max(bounds) < 0 if bounds else found.mean != 0
    return Outcome(recipe, "miss" if worse else "hit", -sign * found.mean, found)


def tally(found: Sequence[Trial], adviser: Adviser) -> Tally:
    """Return how an adviser did: hits among the cells that can be judged, and what its choices cost on average."""
    outcomes = [(trial, outcome(trial, adviser(trial))) for trial in found]
    judged = [one for _, one in outcomes if one.word != "open"]
    hits = sum(one.word == "hit" for one in judged)
    low, high = statistics.wilson(hits, len(judged)) if judged else (None, None)
    costs: dict[str, list[float]] = {}
    for trial, one in outcomes:
        if one.regret is not None:
            costs.setdefault(trial.metric.unit, []).append(one.regret)
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
    """Return the adviser that names one recipe whatever the rows."""
    return lambda _: recipe
