"""Trials: blocks that were both diagnosed and trained, with the scores of each start.

A start is a recipe, at the other weights' rate or at a rate of its own.
"""

from __future__ import annotations

import statistics as plain
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from embinit.diagnosis.basis import Basis, basis_of
from embinit.experiments.definition.grid import as_text
from embinit.experiments.experiment import Block
from embinit.experiments.spec import Side, Spec
from embinit.format import plural
from embinit.reports.analysis.rows import rows
from embinit.reports.metrics import metric as metric_of
from embinit.reports.metrics import setting
from embinit.reports.results_reader import ResultsFile
from embinit.reports.scores import Metric, TableRow

#: Seeds that all starts of a trial must share; with fewer, hardly any start is significantly worse.
SEEDS = 5
_RATE = "embedding_rate"
_Trained = tuple[Block, tuple[TableRow, ...]]


@dataclass(frozen=True)
class Diagnosed:
    """One matrix of a trial, and the numbers behind its verdict."""

    side: str
    source: str
    #: fingerprint of the rows
    rows: str
    basis: Basis


@dataclass(frozen=True)
class Trial:
    """A block that was diagnosed, with the scores of each start."""

    name: str
    task: str
    sides: tuple[Diagnosed, ...]
    metric: Metric
    #: start, by its recipe's name that all know or else by its steps -> seed -> score, over the seeds that all of them have;
    #: starts with runs that left no score aside
    scores: Mapping[str, Mapping[str, float]]
    #: start -> why it cannot be the best: some of its runs have no score
    failed: Mapping[str, str]
    #: why it cannot be judged, if so
    open: str = ""
    #: start -> factor of the rows' rate, if it is not the full one
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """Return the start with the highest mean, the first of equal ones; empty if nothing can be judged."""
        if self.open or not self.scores:
            return ""
        sign = 1 if self.metric.higher else -1
        return max(self.scores, key=lambda name: sign * plain.fmean(self.scores[name].values()))

    @property
    def starts(self) -> tuple[str, ...]:
        """Return the starts that were run."""
        return (*self.scores, *self.failed)

    @property
    def of_full_rate(self) -> Trial:
        """Return the trial with only the starts at the full rate, over the seeds that it is judged on."""
        scores = {name: listed for name, listed in self.scores.items() if name not in self.rates}
        failed = {name: why for name, why in self.failed.items() if name not in self.rates}
        return replace(self, scores=scores, failed=failed, rates={})


def start_of(recipe: str, rate: float) -> str:
    """Return the name of a start.

    >>> start_of("pretrained", 1.0), start_of("pretrained", 0.1)
    ('pretrained', 'pretrained · rows at a tenth of the rate')
    """
    return recipe if rate == 1 else f"{recipe} · {setting(f'training.{_RATE}', as_text(rate))}"


def trials(files: Sequence[ResultsFile]) -> tuple[Trial, ...]:
    """Return every block that was diagnosed, in the files' order, with the blocks that were trained under its name."""
    trained: dict[str, list[_Trained]] = {}
    for file in files:
        if file.experiment.kind == "training":
            for block in file.experiment.blocks:
                table_rows = rows(block, file.results, file.experiment.baselines)
                trained.setdefault(block.name, []).append((_resolved(block, file), table_rows))
    all_trials = []
    for file in files:
        if file.experiment.kind == "verdict":
            blocks = [block for block in (file.measured["blocks"] if file.measured else []) if block["rows"]]
            all_trials += [_trial_of(block, trained.get(block["name"], [])) for block in blocks]
    return tuple(all_trials)


def _resolved(block: Block, file: ResultsFile) -> Block:
    """Return a block with the specs that were run, which have the fingerprints of their rows."""
    ran = [file.results[planned.spec.key].spec if planned.spec.key in file.results else None for planned in block.runs]
    return replace(
        block,
        runs=tuple(
            planned if spec is None else replace(planned, spec=spec)
            for planned, spec in zip(block.runs, ran, strict=True)
        ),
    )


def _trial_of(block: Mapping[str, Any], trained: Sequence[_Trained]) -> Trial:
    """Return the trial of a block: files with one setting are joined; of several settings, that with most runs is used."""
    by_setting: dict[tuple[str, ...], list[_Trained]] = {}
    for ran, table_rows in trained:
        settings = {_setting(planned.spec) for planned in ran.runs}
        by_setting.setdefault(tuple(sorted(settings)), []).append((ran, table_rows))
    candidates = [_trial(block, files, several=len(key) > 1) for key, files in by_setting.items()]
    return max(candidates, key=_told, default=_untried(block))


def _setting(spec: Spec) -> str:
    """Return a key of a run's settings without its seed, its rows and their rate."""
    nothing = tuple((name, Side("", "")) for name, _ in spec.sides)
    training = tuple(pair for pair in spec.training if pair[0] != _RATE)
    return replace(spec, sides=nothing, seed=0, training=training).blank(dim=False).key


def _told(trial: Trial) -> tuple[bool, int, int]:
    seeds = max((len(scores) for scores in trial.scores.values()), default=0)
    return not trial.open, len(trial.scores), seeds


def _diagnosed(block: Mapping[str, Any]) -> tuple[Diagnosed, ...]:
    return tuple(Diagnosed(row["side"], row["source"], row["rows"], basis_of(row["basis"])) for row in block["rows"])


def _untried(block: Mapping[str, Any]) -> Trial:
    nothing = metric_of("", "")
    return Trial(block["name"], block["task"], _diagnosed(block), nothing, {}, {}, "not trained yet")


def _trial(block: Mapping[str, Any], files: Sequence[_Trained], several: bool) -> Trial:
    sides, first = _diagnosed(block), files[0][0]
    by_start: dict[str, dict[str, float]] = {}
    failed: dict[str, str] = {}
    rates: dict[str, float] = {}
    for ran, listed in files:
        for row in listed:
            name, rate = _start(ran, row, sides)
            by_start.setdefault(name, {}).update(row.scores)
            if rate != 1:
                rates[name] = rate
            if row.unscored:
                failed[name] = f"{row.unscored} of {plural(row.planned, 'run')} left nothing to score"
    sound = {name: scores for name, scores in by_start.items() if scores and name not in failed}
    # A start that another file has only begun does not delay the others.
    sound = {name: scores for name, scores in sound.items() if len(scores) >= SEEDS} or sound
    common = set.intersection(*(set(scores) for scores in sound.values())) if sound else set()
    scores = {name: {seed: listed[seed] for seed in sorted(common, key=int)} for name, listed in sound.items()}
    why = ""
    if several:
        why = "its runs differ in more than the start"
    elif any(_others(sides, ran) for ran, _ in files):
        why = "other rows were trained than diagnosed"
    elif first.missing and not common:
        why = f"not run: {first.missing}"
    elif len(common) < SEEDS:
        why = f"{plural(len(common), 'seed')} that all starts have; {SEEDS} are needed"
    metric = metric_of(first.score, first.split)
    tried = {name: rate for name, rate in rates.items() if name in scores or name in failed}
    return Trial(block["name"], block["task"], sides, metric, scores, failed, why, tried)


def _start(ran: Block, row: TableRow, sides: Sequence[Diagnosed]) -> tuple[str, float]:
    """Return the start of the rows that were diagnosed, its recipes as a spec names them, and its rate."""
    spec = next(planned.spec for planned in ran.runs if planned.axes == row.axes)
    recipes = dict(spec.sides)
    recipe = " / ".join(dict.fromkeys(recipes[side.side].recipe for side in sides if side.side in recipes))
    rate = float(dict(spec.training).get(_RATE, 1.0))
    return start_of(recipe, rate), rate


def _others(sides: Sequence[Diagnosed], ran: Block) -> bool:
    """Return whether a run started from other rows than the diagnosed ones."""
    diagnosed = {side.side: side.rows for side in sides}
    used = {(name, side.rows) for planned in ran.runs for name, side in planned.spec.sides if side.rows}
    return any(rows != diagnosed.get(name) for name, rows in used)
