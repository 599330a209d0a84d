"""Judge rules for the rate of pre-trained rows by their regret over tasks and lengths of training.

A length is one setting, trained for a number of epochs. Rates are constant in the experiment, so the first epochs of a run
are a shorter training. One run therefore yields many lengths.
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
#: The scored epoch: the one that embinit keeps, or the one of the other criterion.
Selection = Literal["kept", "other"]
#: Slow rows need this many times the epochs that random rows need.
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
    #: learning rate of all other weights
    rate: float
    #: σ of the rows before training
    std: float
    #: factor of the rows' rate -> mean score over seeds, in BLEU or percent
    scores: Mapping[float, float]
    #: mean score of random rows at the full rate
    random: float
    #: whether the training has at least `ENOUGH` times the epochs that random rows need
    finished: bool

    @property
    def best(self) -> float:
        """Return the rate with the highest score; if several have it, the lowest."""
        return max(sorted(self.scores), key=lambda factor: self.scores[factor])

    def score(self, factor: float) -> float:
        """Return the score at a rate, interpolated linearly in log(rate) and constant beyond the rates that were run."""
        rates = sorted(self.scores)
        return float(np.interp(math.log(factor), np.log(rates), [self.scores[rate] for rate in rates]))

    def regret(self, score: float) -> float:
        """Return the distance of a score to the best score of random rows and of all rates."""
        return max(self.random, *self.scores.values()) - score

    def travel(self, factor: float) -> float:
        """Return how far a row can move at a rate, in σ of the rows: rate x steps / σ."""
        return factor * self.rate * self.steps / self.std


@dataclass(frozen=True)
class Rule:
    """A formula for the rate of the rows, with one constant for each kind of task or for all tasks."""

    name: str
    formula: Callable[[Length, float], float]
    #: whether translators and classifiers have separate constants
    by_kind: bool = False
    #: the constant, if it is not fitted
    fixed: float | None = None


RULES = (
    Rule("constant", lambda _, constant: constant),
    Rule("c / epochs", lambda length, constant: constant / length.epochs),
    Rule("c / steps", lambda length, constant: constant / length.steps),
    Rule("c / √steps", lambda length, constant: constant / math.sqrt(length.steps)),
    Rule("travel: c σ / (learning rate × steps)", lambda length, constant: constant / length.travel(1.0)),
    Rule(
        "c σ / (learning rate × √steps)",
        lambda length, constant: constant * math.sqrt(length.steps) / length.travel(1.0),
    ),
    Rule(
        "travel, a constant for each kind of task",
        lambda length, constant: constant / length.travel(1.0),
        by_kind=True,
    ),
    Rule("always a tenth", lambda *_: 0.1, fixed=0.1),
    Rule("always the full rate", lambda *_: 1.0, fixed=1.0),
)
#: Candidates for a constant, a sixth of an order of magnitude apart.
_GRID = tuple(10 ** (power / 6) for power in range(-24, 25))


@dataclass(frozen=True)
class Regret:
    """The regret of a rule: averaged over the lengths of each data set, then over data sets; and the largest one."""

    mean: float
    worst: float


@dataclass(frozen=True)
class JudgedRule:
    """A rule with its fitted constants, its regret on the fitted data sets and on data sets left out of the fit."""

    rule: Rule
    #: whether the task is a translation -> constant
    constants: Mapping[bool, float]
    fitted: Regret
    left_out: Regret
    #: data set -> regret with constants from the other data sets
    by_data: Mapping[str, Regret]


def lengths(file: ResultsFile, selection: Selection = "kept") -> tuple[Length, ...]:
    """Return every length of training of every setting of an experiment."""
    all_lengths: list[Length] = []
    for block in file.experiment.blocks:
        all_lengths += _lengths(block, file.results, selection)
    return tuple(all_lengths)


def standardized(trainings: Iterable[Length], finished: bool = True) -> tuple[Length, ...]:
    """Return the trainings of standardized rows that are finished, or the unfinished ones."""
    return tuple(length for length in trainings if length.recipe == STANDARDIZED and length.finished == finished)


def judge(rule: Rule, trainings: Sequence[Length]) -> JudgedRule:
    """Judge a rule with constants fitted on all data sets, and with constants fitted without the judged data set."""
    names = list(dict.fromkeys(length.data for length in trainings))
    constants = _fit(rule, trainings)
    by_data: dict[str, Regret] = {}
    for name in names:
        # Without another data set of its kind, a data set gets the constant of the other kind.
        others = [length for length in trainings if length.data != name]
        fitted = _fit(rule, others)
        judged = [length for length in trainings if length.data == name]
        for length in judged:
            fitted.setdefault(length.translation, next(iter(fitted.values())))
        by_data[name] = _regret(rule, fitted, judged)
    regrets = by_data.values()
    left_out = Regret(plain.fmean(regret.mean for regret in regrets), max(regret.worst for regret in regrets))
    return JudgedRule(rule, constants, _regret(rule, constants, trainings), left_out, by_data)


def regret_of_random(trainings: Sequence[Length]) -> Regret:
    """Return the regret of random rows at the full rate."""
    return _pool([(length.data, length.regret(length.random)) for length in trainings])


def factor(rule: Rule, length: Length, constants: Mapping[bool, float]) -> float:
    """Return the rate that a rule sets, at most the full rate."""
    return min(1.0, rule.formula(length, constants[length.translation]))


def _regret(rule: Rule, constants: Mapping[bool, float], trainings: Sequence[Length]) -> Regret:
    return _pool([(length.data, length.regret(length.score(factor(rule, length, constants)))) for length in trainings])


def _pool(regrets: Sequence[tuple[str, float]]) -> Regret:
    """Return the mean and the largest of (data set, regret) pairs."""
    by_data: dict[str, list[float]] = {}
    for name, regret in regrets:
        by_data.setdefault(name, []).append(regret)
    mean = plain.fmean(plain.fmean(of_data) for of_data in by_data.values())
    return Regret(mean, max(regret for _, regret in regrets))


def _fit(rule: Rule, trainings: Sequence[Length]) -> dict[bool, float]:
    """Return the constants with the lowest worst regret; if several have it, those with the lowest mean regret."""
    kinds = sorted({length.translation for length in trainings})
    if rule.fixed is not None:
        return dict.fromkeys(kinds, rule.fixed)
    groups = [(kind,) for kind in kinds] if rule.by_kind else [tuple(kinds)]
    fitted: dict[bool, float] = {}
    for group in groups:
        of_group = [length for length in trainings if length.translation in group]
        regrets = {constant: _regret(rule, dict.fromkeys(group, constant), of_group) for constant in _GRID}
        best = min(_GRID, key=lambda constant: (round(regrets[constant].worst, 3), regrets[constant].mean))
        fitted |= dict.fromkeys(group, best)
    return fitted


def _lengths(block: Block, results: Mapping[str, Result], selection: Selection) -> list[Length]:
    runs = _runs(block, results)
    spec = block.runs[0].spec
    training, translation = dict(spec.training), len(spec.sides) == 2
    steps = math.ceil(_rows(spec) / int(training["batch"]))
    recipes = sorted({recipe for recipe, _ in runs} - {RANDOM})
    available = min(len(run.history) for by_seed in runs.values() for run in by_seed.values())
    best_random = plain.fmean(run.best_epoch for run in runs[RANDOM, 1.0].values())
    trainings = []
    for recipe in recipes:
        std = _std(runs, recipe)
        for epochs in (count for count in _facts()["lengths"]["epochs"] if count <= available):
            means = {key: _score(by_seed, epochs, translation, selection) for key, by_seed in runs.items()}
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
                    scores={rate: score for (name, rate), score in means.items() if name == recipe},
                    random=means[RANDOM, 1.0],
                    finished=epochs >= ENOUGH * best_random,
                )
            )
    return trainings


def _runs(block: Block, results: Mapping[str, Result]) -> _Runs:
    """Return (recipe, rate of the source's rows) -> seed -> result; random rows have the full rate."""
    runs: dict[tuple[str, float], dict[int, Result]] = {}
    for planned in block.runs:
        if float(dict(planned.spec.training).get("embedding_rate", 1.0)) != 1:
            continue
        result = results.get(planned.spec.key)
        if result is None:
            raise EmbinitError(f"{block.name}: run {planned.spec.key} is missing, but the analysis needs all runs")
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
            scored = min(
                records, key=lambda record: math.inf if (loss := record["valid loss"]) is None else float(loss)
            )
        else:
            scored = max(records, key=lambda record: float(record[name] or 0))
        scores.append(float(scored[name] or 0) * (1 if translation else 100))
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
    rows: Mapping[str, int] = _facts()["rows"]
    if spec.task.rows:
        return spec.task.rows
    if spec.task.name not in rows:
        raise EmbinitError(f"travel.toml, rows: add the number of training rows of {spec.task.name}")
    return rows[spec.task.name]


@cache
def _facts() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("travel.toml").read_text("utf-8"))
