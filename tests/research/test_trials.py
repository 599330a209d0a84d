"""Cells: what was diagnosed and trained under one name, in one file or several."""

from __future__ import annotations

import itertools
from dataclasses import replace

from embinit.experiments.experiment import Planned
from embinit.experiments.spec import Spec
from embinit.reports.results_reader import ResultsFile
from research.judging import advised_start, outcome
from research.trials import trials
from tests.reports import made
from tests.research.advised import WIDE, measured, one, respecified, seen, trained


def test_too_few_seeds_runs_that_are_not_there_and_other_rows_leave_it_open() -> None:
    assert one(9.0, WIDE, seeds=4).open_reason == "4 seeds that all starts have; 5 are needed"
    (alone,) = trials([measured({"x": [seen(9.0)]})])
    assert alone.open_reason == "not trained yet"
    assert advised_start(alone) == "pretrained_xavier"
    assert outcome(alone, advised_start(alone)).status == "open"
    trial = one(9.0, {name: WIDE[name] for name in ("xavier", "pretrained")})
    assert outcome(trial, advised_start(trial)).reason == "pretrained_xavier was not run"
    ran, looked = trained({"x": WIDE}), measured({"x": [{**seen(9.0), "rows": "those"}]})
    assert looked.measured is not None
    spec = next(run.spec for run in ran.experiment.blocks[0].runs if dict(run.axes)["recipe"] == "pretrained")
    sides = tuple((name, replace(side, rows="these")) for name, side in spec.sides)
    ran.results[spec.key] = replace(ran.results[spec.key], spec=replace(spec, sides=sides))
    (other,) = trials([ran, looked])
    assert other.open_reason == "other rows were trained than diagnosed"


def test_what_several_files_trained_in_one_setting_is_one_cell() -> None:
    looked = measured({"x": [seen(9.0)]})
    fewer = trained({"x": WIDE}, seeds=8)
    more = trained(
        {"x": {name: WIDE[name] for name in ("xavier", "pretrained")} | {"pretrained_shuffled": 31.0}}, seeds=6
    )
    begun = trained({"x": {"xavier": 37.0, "xavier_pretrained": 33.0}}, seeds=3)
    for files in itertools.permutations((fewer, more, begun)):
        (trial,) = trials([*files, looked])
        assert not trial.open_reason
        assert set(trial.scores) == {*WIDE, "pretrained_shuffled"}
        assert {len(scores) for scores in trial.scores.values()} == {6}
        assert outcome(trial, advised_start(trial)).status == "hit"


def test_of_two_settings_the_one_with_more_recipes_and_then_seeds_counts() -> None:
    def longer(ran: ResultsFile) -> ResultsFile:
        return respecified(ran, lambda run: _epochs(run.spec, 99))

    looked = measured({"x": [seen(9.0)]})
    better = {name: level + 20 for name, level in WIDE.items()}
    for order in itertools.permutations((trained({"x": WIDE}, seeds=8), longer(trained({"x": better}, seeds=6)))):
        (trial,) = trials([*order, looked])
        assert len(trial.scores["xavier"]) == 8
        assert max(trial.scores["xavier"].values()) < 45
    more = longer(trained({"x": {**better, "pretrained_shuffled": 31.0}}, seeds=6))
    for order in itertools.permutations((trained({"x": WIDE}, seeds=8), more)):
        (trial,) = trials([*order, looked])
        assert len(trial.scores) == 4
        assert min(trial.scores["xavier"].values()) > 45


def _epochs(spec: Spec, epochs: int) -> Spec:
    return replace(spec, training=(*(pair for pair in spec.training if pair[0] != "epochs"), ("epochs", epochs)))


def test_a_block_with_several_settings_is_no_cell() -> None:
    ran = trained({"x": WIDE})
    (block,) = ran.experiment.blocks
    runs = tuple(
        Planned(replace(run.spec, model=(*run.spec.model, ("depth", depth))), (*run.axes, ("model.layers", str(depth))))
        for depth in (3, 6)
        for run in block.runs
    )
    found = {run.spec.key: made.result(run.spec, 37.0) for run in runs}
    several = ResultsFile(replace(ran.experiment, blocks=(replace(block, runs=runs),)), found)
    (trial,) = trials([several, measured({"x": [seen(9.0)]})])
    assert trial.open_reason == "its runs differ in more than the start"


def test_sides_that_were_run_as_they_are_advised_are_a_recipe_of_their_own() -> None:
    # The encoder's narrow rows as they are, the decoder's wide ones standardized.
    def spec(run: Planned) -> Spec:
        if dict(run.axes)["recipe"] != "mixed":
            return run.spec
        recipes = ("pretrained", "pretrained_xavier")
        sides = zip(run.spec.sides, recipes, strict=True)
        return replace(run.spec, sides=tuple((name, replace(side, recipe=own)) for (name, side), own in sides))

    ran = respecified(trained({"x": {**WIDE, "mixed": 41.0}}), spec)
    (trial,) = trials([ran, measured({"x": [seen(0.5), seen(9.0, "target")]})])
    assert advised_start(trial) == trial.best == "pretrained / pretrained_xavier"
    assert outcome(trial, "pretrained_xavier").status == "miss"
