"""`candidate` of a block: the one row that its file names before it is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Block, Experiment, implied_target
from embinit.experiments.inputs.outline import read_experiment
from embinit.reports.results_file import write_compact
from embinit.reports.results_reader import read_compact
from tests.experiments.made import BLOCK, HEAD, written

ROOT = Path(__file__).parents[2]
NORMS = BLOCK + 'grid.model.norm = ["post", "pre"]\n'


def read(folder: Path, candidate: str, block: str = NORMS) -> Block:
    (found,) = read_experiment(written(folder, f"{block}candidate = {candidate}\n", HEAD)).blocks
    return found


def test_it_is_one_row_of_its_block(tmp_path: Path) -> None:
    block = read(tmp_path, '{ recipe = "pretrained", model.norm = "pre" }')
    assert dict(block.candidate) == {"recipe": "pretrained", "model.norm": "pre"}
    assert block.candidate in {run.axes for run in block.runs}
    assert read_experiment(written(tmp_path, NORMS, HEAD)).blocks[0].candidate == ()


def test_it_renames_no_run(tmp_path: Path) -> None:
    with_one = read(tmp_path, '{ recipe = "pretrained", model.norm = "pre" }')
    (without,) = read_experiment(written(tmp_path, NORMS, HEAD)).blocks
    assert [run.spec.key for run in with_one.runs] == [run.spec.key for run in without.runs]


WRONG = {
    '"pretrained"': "'pretrained', but a table is expected: candidate = {recipe = ",
    "{}": "{}, but a table is expected: candidate = {recipe = ",
    '{ recipe = "pretrained" }': "2 starts match; add model.norm",
    '{ recipe = "pretrainde", model.norm = "pre" }': "the grid has no recipe = 'pretrainde'; did you mean 'pretrained'?",
    '{ recipe = "pretrained", model.layers = 2 }': "the grid has no axis model.layers",
}  # fmt: skip


@pytest.mark.parametrize(("said", "error"), WRONG.items())
def test_what_names_no_single_row_is_an_error(said: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError) as raised:
        read(tmp_path, said)
    assert f".candidate: {error}" in str(raised.value)


def test_the_question_of_position_and_meaning_has_one_for_both_of_its_last_tasks() -> None:
    named = {block.name: dict(block.candidate) for block in read_experiment(ROOT / "experiments/open/both.toml").blocks}
    wanted = {"recipe": "larger", "model.positions": "rotary"}
    assert {name for name, found in named.items() if found} == {"MNLI sample (65,591 rows)", "Tatoeba"}
    assert all(found in ({}, wanted) for found in named.values())


CHOOSING = '[[block]]\nname = "{name}"\n{line}grid.recipe = ["xavier", "pretrained"]\ngrid.seed = [101, 102]\n'


@pytest.mark.parametrize(
    ("name", "line", "target"),
    [
        ("first look", 'chooses_for = "copying"\n', "copying"),
        ("copying, chosen on", "", "copying"),
        ("copying, chosen on", 'chooses_for = "copying"\n', "copying"),
        ("other, chosen on", "", ""),
    ],
)
def test_a_block_chooses_for_another_by_its_key_or_as_before_by_its_name(
    name: str, line: str, target: str, tmp_path: Path
) -> None:
    judged, choosing = read_experiment(written(tmp_path, BLOCK + CHOOSING.format(name=name, line=line))).blocks
    assert (judged.chooses_for, choosing.chooses_for) == ("", target)
    results = tmp_path / "results.json"
    experiment = Experiment("made", "made", "", (judged, choosing))
    write_compact(experiment, {}, results)
    assert [block.chooses_for for block in read_compact(results).experiment.blocks] == ["", target]
    assert ('"chooses_for"' in results.read_text()) == (name == "first look")


@pytest.mark.parametrize("target", ["copyin", "x"])
def test_a_block_chooses_for_another_block_of_its_file(target: str, tmp_path: Path) -> None:
    block = CHOOSING.format(name="x", line=f'chooses_for = "{target}"\n')
    with pytest.raises(EmbinitError, match=f"chooses_for: no other block is named '{target}'"):
        read_experiment(written(tmp_path, BLOCK + block))


def test_the_projects_choosing_blocks_name_the_block_that_they_choose_for() -> None:
    """The explicit key and the old names mean the same, so that committed results keep their form."""
    choosing = 0
    for name in ("both", "size"):
        blocks = read_experiment(ROOT / f"experiments/open/{name}.toml").blocks
        for block in blocks:
            assert block.chooses_for == implied_target(block.name, [other.name for other in blocks])
            choosing += bool(block.chooses_for)
        text = (ROOT / f"experiments/open/{name}.toml").read_text("utf-8")
        assert text.count("chooses_for = ") == sum(bool(block.chooses_for) for block in blocks)
    assert choosing == 8
