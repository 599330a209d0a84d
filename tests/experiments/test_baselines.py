"""`baseline` of an experiment file: one recipe, several, or recipes in a pinned setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Baseline, Experiment
from embinit.experiments.inputs.outline import read_experiment
from tests.experiments.made import BLOCK, HEAD, written

ROOT = Path(__file__).parents[2]
NORMS = BLOCK + 'grid.model.norm = ["post", "pre"]\n'


def read(folder: Path, baseline: str, blocks: str = NORMS) -> Experiment:
    return read_experiment(written(folder, blocks, f"baseline = {baseline}\n{HEAD}"))


@pytest.mark.parametrize("baseline", ['"pretrained"', '["pretrained"]', '{ recipe = "pretrained" }'])
def test_one_recipe_is_compared_with_in_each_setting(baseline: str, tmp_path: Path) -> None:
    experiment = read(tmp_path, baseline)
    assert (experiment.baseline, experiment.against) == ("pretrained", ())
    assert experiment.baselines == (Baseline("pretrained"),)


def test_xavier_is_the_baseline_of_a_file_that_names_none(tmp_path: Path) -> None:
    experiment = read_experiment(written(tmp_path, BLOCK, HEAD))
    assert experiment.baselines == (Baseline("xavier"),)
    assert read(tmp_path, '""').baselines == (Baseline("xavier"),)


def test_several_recipes_may_be_pinned_to_a_setting(tmp_path: Path) -> None:
    experiment = read(tmp_path, '["xavier", { recipe = "pretrained", model.norm = "post" }]')
    assert experiment.baseline == "xavier"
    assert experiment.baselines == (Baseline("xavier"), Baseline("pretrained", (("model.norm", "post"),)))


def test_baselines_do_not_rename_runs(tmp_path: Path) -> None:
    first, second = (
        read(tmp_path, '"xavier"'),
        read(tmp_path, '["pretrained", { recipe = "xavier", model.norm = "pre" }]'),
    )
    keys = [[run.spec.key for block in read_file.blocks for run in block.runs] for read_file in (first, second)]
    assert keys[0] == keys[1]


WRONG = {
    "[]": 'baseline: an empty list, but "xavier", a list of recipes, or',
    "3": 'baseline: 3, but "xavier", a list',
    '["xavier", 3]': 'baseline: 3, but "xavier", a list',
    '["xavier", "pretrainde"]': "baseline: unknown recipe 'pretrainde'; did you mean 'pretrained'?",
    '["xavier", "xavier"]': "baseline: 'xavier' occurs twice in the list",
    '["xavier", "same"]': "baseline: 'same' needs a setting",
    '{ recipe = "same", model.norm = "post" }': "baseline: begins with 'same'; put a recipe first",
    '{ model.norm = "post" }': "but \"xavier\", a list of recipes, or {recipe = ",
    '{ recipe = "xavier", model.nrom = "post" }': "baseline.model: unknown key 'nrom'; did you mean 'norm'?",
    '{ recipe = "xavier", model.norm = "pots" }': "baseline.model.norm: 'pots' is unknown; did you mean 'post'?",
    '{ recipe = "xavier", seed = 1 }': "baseline: remove seed;",
    '{ recipe = "xavier", encoder.recipe = "xavier" }': "baseline: remove encoder.recipe;",
    '{ recipe = "xavier", model.layers = 2 }': "baseline: no block's grid has the axis model.layers",
}  # fmt: skip


@pytest.mark.parametrize("baseline", WRONG)
def test_mistakes_are_reported(baseline: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, baseline)
    assert WRONG[baseline] in str(raised.value)


def test_a_setting_that_no_run_has_is_no_baseline(tmp_path: Path) -> None:
    blocks = BLOCK + "grid.model.layers = [1, 2]\n"
    with pytest.raises(EmbinitError, match=r"baseline: no block's grid has model.layers = '3'"):
        read(tmp_path, '{ recipe = "xavier", model.layers = 3 }', blocks)
    assert read(tmp_path, '{ recipe = "xavier", model.layers = 2 }', blocks).baselines[0].at == (("model.layers", "2"),)


def test_the_question_of_both_is_asked_against_both_also_with_plain_sinusoids() -> None:
    found = read_experiment(ROOT / "experiments" / "open" / "both.toml").baselines
    plain = (("model.positions", "sinusoidal"), ("model.position_dims", "0"))
    recipes = ("xavier", "pretrained_xavier")
    assert found == (*(Baseline(name) for name in recipes), *(Baseline(name, plain) for name in recipes))


def test_table_7_has_table_1s_starts_and_runs() -> None:
    seven, one = (read_experiment(ROOT / "experiments" / "paper" / f"table{number}.toml") for number in (7, 1))
    names = {block.name: {run.spec.key for run in block.runs} for block in one.blocks}
    for block in seven.blocks:
        added = {run.spec.key for run in block.runs if run.axes[0][1] == seven.baseline}
        assert len(added) == 10
        assert {run.spec.key for run in block.runs} - added == names[block.name]
