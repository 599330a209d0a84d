"""How fast pre-trained rows should learn: rules for the rate, judged by regret over tasks and lengths of training.

A length is one setting that is trained for a number of epochs. Rates are constant in the experiment, so the first epochs of
a run are a shorter training, and one run yields many lengths.
"""

from __future__ import annotations

import math
import statistics as plain
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Block
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Spec
from embinit.reports.results_reader import ResultsFile

RANDOM, STANDARDIZED = "xavier", "pretrained_xavier"
#: The epoch that is scored: the one that embinit keeps, or the one that the other criterion would keep.
Selection = Literal["kept", "other"]
#: Slow rows need this many times the epochs after which random rows are best.
ENOUGH = 1.5
_Runs = Mapping[tuple[str, float], Mapping[int, Result]]


@dataclass(frozen=True)
class Length:
    """One setting, trained for a number of epochs at several rates of the rows."""

    block: str
    data: str
    translation: bool
    recipe: str
    epochs: int
    steps: int
    #: learning rate of the other weights
    rate: float
    #: σ of the rows before training
    std: float
    #: rate of the rows, as a factor -> mean score over seeds, in BLEU or percent
    scores: Mapping[float, float]
    #: score of random rows at the full rate
    random: float
    #: whether it is at least `ENOUGH` times as long as random rows need to be at their best
    finished: bool

    @property
    def best(self) -> float:
        """Return the rate with the highest score; the slowest of equal ones."""
        return max(sorted(self.scores), key=lambda factor: self.scores[factor])

    def score(self, factor: float) -> float:
        """Return the score at a rate: linear in its logarithm between two that were run, constant beyond them."""
        rates = sorted(self.scores)
        return float(np.interp(math.log(factor), np.log(rates), [self.scores[rate] for rate in rates]))

    def regret(self, score: float) -> float:
        """Return the distance of a score to the best of random rows and of all rates."""
        return max(self.random, *self.scores.values()) - score

    def travel(self, factor: float) -> float:
        """Return how far a row can move at a rate, in σ of the rows: rate x steps / σ."""
        return factor * self.rate * self.steps / self.std


@dataclass(frozen=True)
class Rule:
    """A formula for the rate of the rows, with one constant for each kind of task or one for all."""

    name: str
    formula: Callable[[Length, float], float]
    #: translators and classifiers have a constant each
    by_kind: bool = False
    #: not fitted
    fixed: float | None = None


RULES = (
    Rule("constant", lambda _, constant: constant),
    Rule("c / epochs", lambda one, constant: constant / one.epochs),
    Rule("c / steps", lambda one, constant: constant / one.steps),
    Rule("c / √steps", lambda one, constant: constant / math.sqrt(one.steps)),
    Rule("travel: c σ / (learning rate × steps)", lambda one, constant: constant / one.travel(1.0)),
    Rule("c σ / (learning rate × √steps)", lambda one, constant: constant * math.sqrt(one.steps) / one.travel(1.0)),
    Rule("travel, a constant for each kind of task", lambda one, constant: constant / one.travel(1.0), by_kind=True),
    Rule("always a tenth", lambda *_: 0.1, fixed=0.1),
    Rule("always the full rate", lambda *_: 1.0, fixed=1.0),
)
#: Constants that are tried, a sixth of an order of magnitude apart.
_GRID = tuple(10 ** (power / 6) for power in range(-24, 25))


@dataclass(frozen=True)
class Regret:
    """The regret of a rule: the mean over data sets of their mean regret, and the largest of all lengths."""

    mean: float
    worst: float


@dataclass(frozen=True)
class JudgedRule:
    """A rule with its constants, fitted on all data sets, and its regret there and on data sets left out of the fit."""

    rule: Rule
    constants: Mapping[bool, float]
    fitted: Regret
    left_out: Regret
    #: data set -> regret with constants from the other data sets
    by_data: Mapping[str, Regret]


def lengths(compact: ResultsFile, selection: Selection = "kept") -> tuple[Length, ...]:
    """Return every setting of an experiment at every length of training."""
    all_lengths: list[Length] = []
    for block in compact.experiment.blocks:
        all_lengths += _lengths(block, compact.results, selection)
    return tuple(all_lengths)


def standardized(trainings: Iterable[Length], finished: bool = True) -> tuple[Length, ...]:
    """Return the lengths of standardized rows: the sufficient ones, or the shorter ones."""
    return tuple(length for length in trainings if length.recipe == STANDARDIZED and length.finished == finished)


def judge(rule: Rule, trainings: Sequence[Length]) -> JudgedRule:
    """Return the regret of a rule with constants from all data sets, and with constants from all but the judged one."""
    names = list(dict.fromkeys(length.data for length in trainings))
    constants = _fit(rule, trainings)
    outside: dict[str, Regret] = {}
    for name in names:
        # The only data set of its kind takes the constant of the other kind.
        others = [length for length in trainings if length.data != name]
        fitted = _fit(rule, others)
        left_out_set = [length for length in trainings if length.data == name]
        for length in left_out_set:
            fitted.setdefault(length.translation, next(iter(fitted.values())))
        outside[name] = _cost(rule, fitted, left_out_set)
    regrets = outside.values()
    left_out = Regret(plain.fmean(regret.mean for regret in regrets), max(regret.worst for regret in regrets))
    return JudgedRule(rule, constants, _cost(rule, constants, trainings), left_out, outside)


def cost_of_random(trainings: Sequence[Length]) -> Regret:
    """Return the regret of random rows at the full rate."""
    return _summary([(length.data, length.regret(length.random)) for length in trainings])


def factor(rule: Rule, length: Length, constants: Mapping[bool, float]) -> float:
    """Return a rule's rate, at most the full one."""
    return min(1.0, rule.formula(length, constants[length.translation]))


def _cost(rule: Rule, constants: Mapping[bool, float], trainings: Sequence[Length]) -> Regret:
    return _summary(
        [(length.data, length.regret(length.score(factor(rule, length, constants)))) for length in trainings]
    )


def _summary(costs: Sequence[tuple[str, float]]) -> Regret:
    by_data: dict[str, list[float]] = {}
    for name, cost in costs:
        by_data.setdefault(name, []).append(cost)
    return Regret(plain.fmean(plain.fmean(listed) for listed in by_data.values()), max(cost for _, cost in costs))


def _fit(rule: Rule, trainings: Sequence[Length]) -> dict[bool, float]:
    """Return the constants with the lowest worst regret, the lowest mean regret deciding between equal ones."""
    kinds = sorted({length.translation for length in trainings})
    if rule.fixed is not None:
        return dict.fromkeys(kinds, rule.fixed)
    groups = [(kind,) for kind in kinds] if rule.by_kind else [tuple(kinds)]
    fitted: dict[bool, float] = {}
    for group in groups:
        of_group = [length for length in trainings if length.translation in group]
        costs = {constant: _cost(rule, dict.fromkeys(group, constant), of_group) for constant in _GRID}
        least = min(_GRID, key=lambda constant: (round(costs[constant].worst, 3), costs[constant].mean))
        fitted |= dict.fromkeys(group, least)
    return fitted


def _lengths(block: Block, results: Mapping[str, Result], selection: Selection) -> list[Length]:
    runs = _runs(block, results)
    spec = block.runs[0].spec
    training, translation = dict(spec.training), len(spec.sides) == 2
    steps = math.ceil(_rows(spec) / int(training["batch"]))
    recipes = sorted({recipe for recipe, _ in runs} - {RANDOM})
    whole = min(len(run.history) for by_seed in runs.values() for run in by_seed.values())
    best_random = plain.fmean(run.best_epoch for run in runs[RANDOM, 1.0].values())
    trainings = []
    for recipe in recipes:
        std = _std(runs, recipe)
        for epochs in (count for count in _facts()["lengths"]["epochs"] if count <= whole):
            reached = {key: _score(by_seed, epochs, translation, selection) for key, by_seed in runs.items()}
            trainings.append(
                Length(
                    block=block.name,
                    data=spec.task.name,
                    translation=translation,
                    recipe=recipe,
                    epochs=epochs,
                    steps=epochs * steps,
                    rate=float(training["rate"]),
                    std=std,
                    scores={rate: score for (name, rate), score in reached.items() if name == recipe},
                    random=reached[RANDOM, 1.0],
                    finished=epochs >= ENOUGH * best_random,
                )
            )
    return trainings


def _runs(block: Block, results: Mapping[str, Result]) -> _Runs:
    """Return (recipe, rate of the source's rows) -> seed -> run; random rows have the full rate."""
    runs: dict[tuple[str, float], dict[int, Result]] = {}
    for planned in block.runs:
        if float(dict(planned.spec.training).get("embedding_rate", 1.0)) != 1:
            continue
        result = results.get(planned.spec.key)
        if result is None:
            raise EmbinitError(f"{block.name}: run {planned.spec.key} is missing; the analysis needs all of them")
        recipe = planned.spec.sides[0][1].recipe
        rate = 1.0 if recipe == RANDOM else float(dict(planned.spec.training).get("found_rate", 1.0))
        runs.setdefault((recipe, rate), {})[planned.spec.seed] = result
    return runs


def _score(by_seed: Mapping[int, Result], epochs: int, translation: bool, selection: Selection) -> float:
    """Return the mean over seeds of the score at the epoch of the lowest loss or of the highest score."""
    name = "bleu" if translation else "accuracy"
    by_loss = translation == (selection == "kept")
    scores = []
    for result in by_seed.values():
        records = [record for record in result.history[:epochs] if record.get(name) is not None]
        if by_loss:
            chosen = min(records, key=lambda record: float(record["valid loss"] or math.inf))
        else:
            chosen = max(records, key=lambda record: float(record[name] or 0))
        scores.append(float(chosen[name] or 0) * (1 if translation else 100))
    return plain.fmean(scores)


def _std(runs: _Runs, recipe: str) -> float:
    stds = [
        float(matrix["std"])
        for (name, _), by_seed in runs.items()
        for result in by_seed.values()
        for matrix in result.matrices.values()
        if name == recipe
    ]
    return plain.fmean(stds)


def _rows(spec: Spec) -> int:
    known: Mapping[str, int] = _facts()["rows"]
    if spec.task.rows:
        return spec.task.rows
    if spec.task.name not in known:
        raise EmbinitError(f"travel.toml, rows: {spec.task.name} is missing; its number of training rows is needed")
    return known[spec.task.name]


@cache
def _facts() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("travel.toml").read_text("utf-8"))
