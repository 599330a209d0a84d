"""Diagnoses and results for which the right advice is known."""

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

#: BLEU of each recipe if the rows are narrow enough as they are, and if they are not.
NARROW = {"xavier": 37.0, "pretrained": 39.0, "pretrained_xavier": 37.5}
WIDE = {"xavier": 37.0, "pretrained": 33.0, "pretrained_xavier": 39.0}
RECIPES = tuple(NARROW)


def diagnosis(
    ratio: float, side: str = "source", rows: int = 1500, extra: int = 0, task: TaskKind | None = None
) -> dict[str, Any]:
    """Return the diagnosis of vectors with this ratio to the positions, and with `extra` missing rows."""
    rng = np.random.default_rng(0)
    matrix = (ratio * 0.70710678 / 32**0.5 * rng.standard_normal((rows, 32))).astype(np.float32)
    words = [f"w{i}" for i in range(rows)]
    aligned = align(Embeddings(words, matrix, Origin("made", "made")), [*words, *(f"x{i}" for i in range(extra))])
    diagnosed = diagnose(aligned, task=task)
    return {
        "side": side,
        "source": "glove",
        "rows": "",
        "basis": diagnosed.basis.as_json(),
        "verdict": diagnosed.verdict.as_dict(),
    }


def verdict_file(blocks: Mapping[str, list[dict[str, Any]]], tasks: Mapping[str, str] | None = None) -> ResultsFile:
    entries = [
        {"name": name, "task": (tasks or {}).get(name, "multi30k"), "missing": "", "rows": rows}
        for name, rows in blocks.items()
    ]
    experiment = made.experiment(*(made.block(name) for name in blocks), name="verdicts", kind="verdict")
    return ResultsFile(
        experiment, {}, json.loads(json.dumps({"name": "verdicts", "kind": "verdict", "blocks": entries}))
    )


def trained_file(levels: Mapping[str, Mapping[str, float]], seeds: int = 8) -> ResultsFile:
    blocks = [made.block(name, recipes=tuple(of_block), seeds=range(seeds)) for name, of_block in levels.items()]
    results: dict[str, Result] = {}
    renamed = []
    for block, of_block in zip(blocks, levels.values(), strict=True):
        # Equal specs are the same run: the task's name tells the blocks apart.
        runs = tuple(
            replace(run, spec=replace(run.spec, task=replace(run.spec.task, pair=block.name))) for run in block.runs
        )
        for run in runs:
            recipe = dict(run.axes)["recipe"]
            results[run.spec.key] = made.result(run.spec, of_block[recipe] + made.noise(recipe, run.spec.seed))
        renamed.append(replace(block, runs=runs))
    return ResultsFile(made.experiment(*renamed, name="trained"), results)


def with_specs(file: ResultsFile, change: Callable[[Planned], Spec]) -> ResultsFile:
    """Return a file of one block with changed specs and the same scores."""
    (block,) = file.experiment.blocks
    runs = tuple(replace(run, spec=change(run)) for run in block.runs)
    results = {
        new.spec.key: replace(file.results[old.spec.key], spec=new.spec)
        for old, new in zip(block.runs, runs, strict=True)
    }
    return ResultsFile(replace(file.experiment, blocks=(replace(block, runs=runs),)), results)


def trial_of(ratio: float, levels: Mapping[str, float], seeds: int = 8) -> Trial:
    (trial,) = trials([trained_file({"x": levels}, seeds), verdict_file({"x": [diagnosis(ratio)]})])
    return trial


def classifier_trial(slow: Mapping[str, float] | None = None) -> Trial:
    """Return a trial of classification in which the advised size was run, under the recipe name `larger`.

    `slow` has the levels of starts at a tenth of the rate, which are in another file.
    """

    def of_size(rate: float) -> Callable[[Planned], Spec]:
        def spec(run: Planned) -> Spec:
            name = dict(run.axes)["recipe"]
            recipe = "pretrained | center | scale ratio=1.4" if name == "larger" else name
            sides = tuple((key, replace(side, source="glove", recipe=recipe)) for key, side in run.spec.sides)
            training = {**dict(run.spec.training), "embedding_rate": rate}
            return replace(run.spec, sides=sides, training=tuple(sorted(training.items())))

        return spec

    files = [with_specs(trained_file({"x": {**WIDE, "larger": 41.0}}), of_size(1.0))]
    files += [with_specs(trained_file({"x": slow}), of_size(0.1))] if slow else []
    (trial,) = trials([*files, verdict_file({"x": [diagnosis(9.0, task="classification")]})])
    return trial


def trials_by_ratio(border: float, ratios: tuple[float, ...] = (1.5, 2.0, 3.0, 9.0)) -> tuple[Trial, ...]:
    """Return two trials of each ratio, on different tasks, in which rows below the border do best as they are."""
    names = {f"{task}, {ratio}": ratio for task in ("a", "b") for ratio in ratios}
    levels = {name: NARROW if ratio < border else WIDE for name, ratio in names.items()}
    tasks = {name: name[0] for name in names}
    verdicts = verdict_file({name: [diagnosis(ratio)] for name, ratio in names.items()}, tasks)
    return trials([trained_file(levels), verdicts])
