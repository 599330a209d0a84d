"""Diagnoses and results of which is known what the advice should have been."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from embinit.alignment import align
from embinit.diagnosis.diagnose import diagnose
from embinit.experiments.experiment import Planned
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Spec
from embinit.reports.results_reader import ResultsFile
from embinit.types import Embeddings, Origin, TaskKind
from research.trials import Trial, trials
from tests.reports import made

#: BLEU of each recipe where rows are narrow enough as they are, and where they are not.
NARROW = {"xavier": 37.0, "pretrained": 39.0, "pretrained_xavier": 37.5}
WIDE = {"xavier": 37.0, "pretrained": 33.0, "pretrained_xavier": 39.0}
RECIPES = tuple(NARROW)


def seen(
    ratio: float, side: str = "source", rows: int = 1500, extra: int = 0, task: TaskKind | None = None
) -> dict[str, Any]:
    """Return the measure of vectors with this ratio to the positions; of `extra` more tokens there is no row."""
    rng = np.random.default_rng(0)
    matrix = (ratio * 0.70710678 / 32**0.5 * rng.standard_normal((rows, 32))).astype(np.float32)
    words = [f"w{i}" for i in range(rows)]
    aligned = align(Embeddings(words, matrix, Origin("made", "made")), [*words, *(f"x{i}" for i in range(extra))])
    found = diagnose(aligned, task=task)
    return {
        "side": side, "source": "glove", "rows": "", "basis": found.basis.as_json(), "verdict": found.verdict.as_dict()
    }  # fmt: skip


def measured(blocks: Mapping[str, list[dict[str, Any]]], tasks: Mapping[str, str] | None = None) -> ResultsFile:
    listed = [
        {"name": name, "task": (tasks or {}).get(name, "multi30k"), "missing": "", "rows": rows}
        for name, rows in blocks.items()
    ]
    asked = made.experiment(*(made.block(name) for name in blocks), name="verdicts", kind="verdict")
    return ResultsFile(asked, {}, json.loads(json.dumps({"name": "verdicts", "kind": "verdict", "blocks": listed})))


def trained(levels: Mapping[str, Mapping[str, float]], seeds: int = 8) -> ResultsFile:
    blocks = [made.block(name, recipes=tuple(one), seeds=range(seeds)) for name, one in levels.items()]
    found: dict[str, Result] = {}
    renamed = []
    for block, one in zip(blocks, levels.values(), strict=True):
        # Equal specs are the same run: the task's name tells the blocks apart.
        runs = tuple(
            replace(run, spec=replace(run.spec, task=replace(run.spec.task, pair=block.name))) for run in block.runs
        )
        for run in runs:
            recipe = dict(run.axes)["recipe"]
            found[run.spec.key] = made.result(run.spec, one[recipe] + made.noise(recipe, run.spec.seed))
        renamed.append(replace(block, runs=runs))
    return ResultsFile(made.experiment(*renamed, name="trained"), found)


def respecified(ran: ResultsFile, change: Callable[[Planned], Spec]) -> ResultsFile:
    """Return what was trained with the specs that a function makes of its runs, at the same scores."""
    (block,) = ran.experiment.blocks
    runs = tuple(replace(run, spec=change(run)) for run in block.runs)
    found = {
        new.spec.key: replace(ran.results[old.spec.key], spec=new.spec)
        for old, new in zip(block.runs, runs, strict=True)
    }
    return ResultsFile(replace(ran.experiment, blocks=(replace(block, runs=runs),)), found)


def one(ratio: float, levels: Mapping[str, float], seeds: int = 8) -> Trial:
    (trial,) = trials([trained({"x": levels}, seeds), measured({"x": [seen(ratio)]})])
    return trial


def of_classifier(slow: Mapping[str, float] | None = None) -> Trial:
    """Return a cell of classification in which the size that is advised to classifiers was run, under a name of its own.

    `slow` are the levels of starts that learned at a tenth of the rate, in another file.
    """

    def of_size(rate: float) -> Callable[[Planned], Spec]:
        def spec(run: Planned) -> Spec:
            own = dict(run.axes)["recipe"]
            steps = "pretrained | center | scale ratio=1.4" if own == "larger" else own
            sides = tuple((name, replace(side, source="glove", recipe=steps)) for name, side in run.spec.sides)
            training = {**dict(run.spec.training), "embedding_rate": rate}
            return replace(run.spec, sides=sides, training=tuple(sorted(training.items())))

        return spec

    files = [respecified(trained({"x": {**WIDE, "larger": 41.0}}), of_size(1.0))]
    files += [respecified(trained({"x": slow}), of_size(0.1))] if slow else []
    (trial,) = trials([*files, measured({"x": [seen(9.0, task="classification")]})])
    return trial


def cells(border: float, ratios: tuple[float, ...] = (1.5, 2.0, 3.0, 9.0)) -> tuple[Trial, ...]:
    """Return two cells of each ratio, one in each half, in which rows up to the border do best as they are."""
    names = {f"{task}, {ratio}": ratio for task in ("a", "b") for ratio in ratios}
    levels = {name: NARROW if ratio < border else WIDE for name, ratio in names.items()}
    tasks = {name: name[0] for name in names}
    looked = measured({name: [seen(ratio)] for name, ratio in names.items()}, tasks)
    return trials([trained(levels), looked])
