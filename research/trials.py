"""Trials: blocks that were both diagnosed and trained, with the scores of each start.

A start is a recipe at a rate of the rows: the full rate, which the other weights have, or a lower one.
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

#: Number of seeds that all starts of a trial must share. With fewer, hardly any start is significantly worse.
SEEDS = 5
_RATE = "embedding_rate"
_TrainedBlock = tuple[Block, tuple[TableRow, ...]]


@dataclass(frozen=True)
class DiagnosedMatrix:
    """One matrix of a trial, with the measurements behind its verdict."""

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
    sides: tuple[DiagnosedMatrix, ...]
    metric: Metric
    #: start -> seed -> score, over the seeds that all starts share, without the failed ones. A recipe without a built-in
    #: name is named by its steps
    scores: Mapping[str, Mapping[str, float]]
    #: start with unscored runs, which cannot be the best -> the reason
    failed: Mapping[str, str]
    #: why the trial cannot be judged; empty if it can be
    open_reason: str = ""
    #: start -> factor of the rows' rate; starts at the full rate are absent
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """Return the start with the best mean, the first of equal ones; empty if the trial cannot be judged."""
        if self.open_reason or not self.scores:
            return ""
        sign = 1 if self.metric.higher else -1
        return max(self.scores, key=lambda name: sign * plain.fmean(self.scores[name].values()))

    @property
    def starts(self) -> tuple[str, ...]:
        """Return the starts that were run."""
        return (*self.scores, *self.failed)


def start_of(recipe: str, rate: float) -> str:
    """Return the name of a recipe at a rate of the rows.

    >>> start_of("pretrained", 1.0), start_of("pretrained", 0.1)
    ('pretrained', 'pretrained · rows at a tenth of the rate')
    """
    return recipe if rate == 1 else f"{recipe} · {setting(f'training.{_RATE}', as_text(rate))}"


def trials(files: Sequence[ResultsFile]) -> tuple[Trial, ...]:
    """Return a trial for every diagnosed block, in the order of the files, with the trained blocks of the same name."""
    trained: dict[str, list[_TrainedBlock]] = {}
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
    """Return a block with the specs of its finished runs, which have the fingerprints of their rows."""
    specs = [
        file.results[planned.spec.key].spec if planned.spec.key in file.results else None for planned in block.runs
    ]
    return replace(
        block,
        runs=tuple(
            planned if spec is None else replace(planned, spec=spec)
            for planned, spec in zip(block.runs, specs, strict=True)
        ),
    )


def _trial_of(block: Mapping[str, Any], trained: Sequence[_TrainedBlock]) -> Trial:
    """Return the trial of a block. Files with the same setting are joined; the most complete setting counts."""
    by_setting: dict[tuple[str, ...], list[_TrainedBlock]] = {}
    for trained_block, table_rows in trained:
        settings = {_setting(planned.spec) for planned in trained_block.runs}
        by_setting.setdefault(tuple(sorted(settings)), []).append((trained_block, table_rows))
    candidates = [_trial(block, files, several=len(key) > 1) for key, files in by_setting.items()]
    return max(candidates, key=_completeness, default=_untrained_trial(block))


def _setting(spec: Spec) -> str:
    """Return a key of a run's settings without its seed, its rows and their rate."""
    empty_sides = tuple((name, Side("", "")) for name, _ in spec.sides)
    training = tuple(pair for pair in spec.training if pair[0] != _RATE)
    return replace(spec, sides=empty_sides, seed=0, training=training).blank(dim=False).key


def _completeness(trial: Trial) -> tuple[bool, int, int]:
    """Return a sort key: whether a trial can be judged, its starts, its seeds."""
    seeds = max((len(scores) for scores in trial.scores.values()), default=0)
    return not trial.open_reason, len(trial.scores), seeds


def _matrices(block: Mapping[str, Any]) -> tuple[DiagnosedMatrix, ...]:
    return tuple(
        DiagnosedMatrix(row["side"], row["source"], row["rows"], basis_of(row["basis"])) for row in block["rows"]
    )


def _untrained_trial(block: Mapping[str, Any]) -> Trial:
    no_metric = metric_of("", "")
    return Trial(block["name"], block["task"], _matrices(block), no_metric, {}, {}, "not trained yet")


def _trial(block: Mapping[str, Any], files: Sequence[_TrainedBlock], several: bool) -> Trial:
    sides, first = _matrices(block), files[0][0]
    by_start: dict[str, dict[str, float]] = {}
    failed: dict[str, str] = {}
    rates: dict[str, float] = {}
    for trained_block, table_rows in files:
        for row in table_rows:
            name, rate = _start(trained_block, row, sides)
            by_start.setdefault(name, {}).update(row.scores)
            if rate != 1:
                rates[name] = rate
            if row.unscored:
                failed[name] = f"{row.unscored} of {plural(row.planned, 'run')} without a score"
    valid = {name: scores for name, scores in by_start.items() if scores and name not in failed}
    # A start with too few seeds so far does not delay the others.
    valid = {name: scores for name, scores in valid.items() if len(scores) >= SEEDS} or valid
    common = set.intersection(*(set(scores) for scores in valid.values())) if valid else set()
    scores = {name: {seed: by_seed[seed] for seed in sorted(common, key=int)} for name, by_seed in valid.items()}
    reason = ""
    if several:
        reason = "its runs differ in more than the start"
    elif any(_trains_other_rows(sides, trained_block) for trained_block, _ in files):
        reason = "other rows were trained than diagnosed"
    elif first.missing and not common:
        reason = f"not run: {first.missing}"
    elif len(common) < SEEDS:
        reason = f"{plural(len(common), 'seed')} that all starts have; {SEEDS} are needed"
    metric = metric_of(first.score, first.split)
    rates = {name: rate for name, rate in rates.items() if name in scores or name in failed}
    return Trial(block["name"], block["task"], sides, metric, scores, failed, reason, rates)


def _start(block: Block, row: TableRow, sides: Sequence[DiagnosedMatrix]) -> tuple[str, float]:
    """Return the start of the diagnosed rows, with its recipes as in the spec, and its rate."""
    spec = next(planned.spec for planned in block.runs if planned.axes == row.axes)
    recipes = dict(spec.sides)
    recipe = " / ".join(dict.fromkeys(recipes[side.side].recipe for side in sides if side.side in recipes))
    rate = float(dict(spec.training).get(_RATE, 1.0))
    return start_of(recipe, rate), rate


def _trains_other_rows(sides: Sequence[DiagnosedMatrix], block: Block) -> bool:
    """Return whether a run of the block started from other rows than the diagnosed ones."""
    diagnosed = {side.side: side.rows for side in sides}
    used = {(name, side.rows) for planned in block.runs for name, side in planned.spec.sides if side.rows}
    return any(rows != diagnosed.get(name) for name, rows in used)
