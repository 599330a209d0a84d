"""Trials: blocks diagnosed and trained under one name, in one file or several."""

from __future__ import annotations

import itertools
from dataclasses import replace

from embinit.experiments.experiment import Planned
from embinit.experiments.spec import Spec
from embinit.reports.results_reader import ResultsFile
from research.judging import advised_start, outcome
from research.trials import trials
from tests.reports import made
from tests.research.advised import WIDE, diagnosis, trained_file, trial_of, verdict_file, with_specs


def test_a_trial_is_open_with_too_few_seeds_missing_runs_or_other_rows() -> None:
    assert trial_of(9.0, WIDE, seeds=4).open_reason == "4 seeds that all starts have; 5 are needed"
    (alone,) = trials([verdict_file({"x": [diagnosis(9.0)]})])
    assert alone.open_reason == "not trained yet"
    assert advised_start(alone) == "pretrained_xavier"
    assert outcome(alone, advised_start(alone)).status == "open"
    trial = trial_of(9.0, {name: WIDE[name] for name in ("xavier", "pretrained")})
    assert outcome(trial, advised_start(trial)).reason == "pretrained_xavier was not run"
    ran, verdicts = trained_file({"x": WIDE}), verdict_file({"x": [{**diagnosis(9.0), "rows": "those"}]})
    assert verdicts.measured is not None
    spec = next(run.spec for run in ran.experiment.blocks[0].runs if dict(run.axes)["recipe"] == "pretrained")
    sides = tuple((name, replace(side, rows="these")) for name, side in spec.sides)
    ran.results[spec.key] = replace(ran.results[spec.key], spec=replace(spec, sides=sides))
    (other,) = trials([ran, verdicts])
    assert other.open_reason == "other rows were trained than diagnosed"


def test_files_with_the_same_setting_are_one_trial() -> None:
    verdicts = verdict_file({"x": [diagnosis(9.0)]})
    fewer = trained_file({"x": WIDE}, seeds=8)
    more = trained_file(
        {"x": {name: WIDE[name] for name in ("xavier", "pretrained")} | {"pretrained_shuffled": 31.0}}, seeds=6
    )
    begun = trained_file({"x": {"xavier": 37.0, "xavier_pretrained": 33.0}}, seeds=3)
    for files in itertools.permutations((fewer, more, begun)):
        (trial,) = trials([*files, verdicts])
        assert not trial.open_reason
        assert set(trial.scores) == {*WIDE, "pretrained_shuffled"}
        assert {len(scores) for scores in trial.scores.values()} == {6}
        assert outcome(trial, advised_start(trial)).status == "hit"


def test_the_setting_with_more_recipes_then_more_seeds_counts() -> None:
    def longer(ran: ResultsFile) -> ResultsFile:
        return with_specs(ran, lambda run: _epochs(run.spec, 99))

    verdicts = verdict_file({"x": [diagnosis(9.0)]})
    better = {name: level + 20 for name, level in WIDE.items()}
    for order in itertools.permutations(
        (trained_file({"x": WIDE}, seeds=8), longer(trained_file({"x": better}, seeds=6)))
    ):
        (trial,) = trials([*order, verdicts])
        assert len(trial.scores["xavier"]) == 8
        assert max(trial.scores["xavier"].values()) < 45
    more = longer(trained_file({"x": {**better, "pretrained_shuffled": 31.0}}, seeds=6))
    for order in itertools.permutations((trained_file({"x": WIDE}, seeds=8), more)):
        (trial,) = trials([*order, verdicts])
        assert len(trial.scores) == 4
        assert min(trial.scores["xavier"].values()) > 45


def _epochs(spec: Spec, epochs: int) -> Spec:
    return replace(spec, training=(*(pair for pair in spec.training if pair[0] != "epochs"), ("epochs", epochs)))


def test_a_block_with_several_settings_is_open() -> None:
    ran = trained_file({"x": WIDE})
    (block,) = ran.experiment.blocks
    runs = tuple(
        Planned(replace(run.spec, model=(*run.spec.model, ("depth", depth))), (*run.axes, ("model.layers", str(depth))))
        for depth in (3, 6)
        for run in block.runs
    )
    results = {run.spec.key: made.result(run.spec, 37.0) for run in runs}
    several = ResultsFile(replace(ran.experiment, blocks=(replace(block, runs=runs),)), results)
    (trial,) = trials([several, verdict_file({"x": [diagnosis(9.0)]})])
    assert trial.open_reason == "its runs differ in more than the start"


def test_sides_with_their_advised_recipes_are_a_start() -> None:
    # The encoder's narrow rows as they are, the decoder's wide ones standardized.
    def spec(run: Planned) -> Spec:
        if dict(run.axes)["recipe"] != "mixed":
            return run.spec
        recipes = ("pretrained", "pretrained_xavier")
        sides = zip(run.spec.sides, recipes, strict=True)
        return replace(run.spec, sides=tuple((name, replace(side, recipe=recipe)) for (name, side), recipe in sides))

    ran = with_specs(trained_file({"x": {**WIDE, "mixed": 41.0}}), spec)
    (trial,) = trials([ran, verdict_file({"x": [diagnosis(0.5), diagnosis(9.0, "target")]})])
    assert advised_start(trial) == trial.best == "pretrained / pretrained_xavier"
    assert outcome(trial, "pretrained_xavier").status == "miss"
