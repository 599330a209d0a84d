"""Verdicts as a measure: what `embinit inspect` says of the very rows that runs start from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embinit.diagnosis.basis import basis_of
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.verdict import verdict
from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import Draft
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.inputs.row_files import read_rows
from embinit.experiments.measurements import measure
from tests.experiments.made import HEAD, command, places, resolved, written

VERDICT = f'kind = "verdict"\n{HEAD}'
BLOCKS = """
[[block]]
name = "both sides"
recipe = "pretrained"
grid.seed = [1, 2]

[[block]]
name = "the decoder alone"
encoder.recipe = "xavier"
decoder.recipe = "pretrained"

[[block]]
name = "not here"
source = "other"
recipe = "pretrained"
model.scaled = false
"""
EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def test_each_source_is_diagnosed_once_by_the_same_code_as_inspect(tmp_path: Path) -> None:
    where = places(tmp_path)
    (tmp_path / "vectors" / "other.txt").unlink()
    file = written(tmp_path, BLOCKS, VERDICT)
    made = resolved(file, where)
    path = measure(read_draft(file), made.experiments[0], made, tmp_path / "runs", where)
    both, alone, missing = json.loads(path.read_text("utf-8"))["blocks"]
    assert [row["side"] for row in both["rows"]] == ["source", "target"]
    assert [row["side"] for row in alone["rows"]] == ["target"]
    assert not missing["rows"]
    assert missing["missing"] == "needs other.txt"  # a file names no folders of the machine
    assert both["task"] == "copying"
    row = both["rows"][1]
    found = made.rows[row["rows"]]
    vocabulary = next(iter(made.tasks.values())).prepared.vocabularies["target"]
    seen = diagnose(read_rows(found.path, vocabulary, row["rows"]), seed=1)
    assert row["verdict"]["recipe"] == seen.verdict.recipe == "pretrained | center | scale ratio=0.4"
    assert row["verdict"]["advice"] == "standardize"
    assert row["basis"]["absorbed"]["ratio"] == pytest.approx(seen.absorption.ratio if seen.absorption else None)
    assert verdict(basis_of(row["basis"])) == seen.verdict


def test_a_classifier_is_diagnosed_as_one(tmp_path: Path) -> None:
    where = places(tmp_path)
    file = written(tmp_path, '[[block]]\nname = "x"\ntask = "sorting"\nrecipe = "pretrained"\n', VERDICT)
    made = resolved(file, where)
    path = measure(read_draft(file), made.experiments[0], made, tmp_path / "runs", where)
    ((row,),) = (block["rows"] for block in json.loads(path.read_text("utf-8"))["blocks"])
    assert (row["side"], row["basis"]["task"]) == ("text", "classification")
    assert (row["verdict"]["recipe"], row["verdict"]["rate"]) == ("pretrained_xavier", 0.1)
    assert row["verdict"]["at_full_rate"] == "pretrained | center | scale ratio=1.4"


def test_a_part_of_the_blocks_does_not_take_the_place_of_all(tmp_path: Path) -> None:
    where = places(tmp_path)
    file = written(tmp_path, BLOCKS, VERDICT)
    line = ["--data", where.data, "--vectors", where.vectors, "--work", where.work, "--runs", tmp_path / "runs"]
    done = command("run", file, "--block", "decoder alone", "--seeds", 1, *line)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "runs" / "measured" / f"{file.stem}.json").read_text("utf-8"))
    assert [block["name"] for block in content["blocks"]] == ["both sides", "the decoder alone", "not here"]


def test_the_command_says_what_is_advised_and_the_small_file_keeps_it(tmp_path: Path) -> None:
    where = places(tmp_path)
    file = written(tmp_path, BLOCKS, VERDICT)
    asked = ["--runs", tmp_path / "runs", "--data", where.data, "--vectors", where.vectors]
    done = command("run", file, *asked)
    assert done.returncode == 0, done.stderr
    assert "standardize" in done.stdout
    kept = command("report", file, *asked, "--format", "results,md", "-o", tmp_path / "kept")
    assert kept.returncode == 0, kept.stderr
    content = (tmp_path / "kept" / "made.results.json").read_text("utf-8")
    assert '"advice":"standardize"' in content
    assert "W3" not in content  # neither sentences nor tokens
    # σ is 1: 5.7 times the positions' rms with × √16, and 1.4 times without.
    said = "Of 5 matrices it advises 'standardize' for 3 and 'as is or lightly scaled' for 2."
    assert said in (tmp_path / "kept" / "made.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('model.positions = "rotary"', "a verdict needs model.positions = 'sinusoidal' without"),
        ("model.position_dims = 4", "a verdict needs model.positions = 'sinusoidal' without"),
        ("model.position_gain = 4.0", "a verdict needs model.positions = 'sinusoidal' without"),
        ('model.norm = "pre"', "a verdict needs model.norm = 'post'"),
        ("model.embedding_norm = true", "a verdict needs model.norm = 'post'"),
    ],
)
def test_models_that_the_verdict_was_not_measured_with_are_refused(tmp_path: Path, setting: str, reason: str) -> None:
    where = places(tmp_path)
    file = written(tmp_path, f'[[block]]\nname = "x"\nrecipe = "pretrained"\n{setting}\n', VERDICT)
    made = resolved(file, where)
    with pytest.raises(EmbinitError, match=f"block x: {reason}"):
        measure(read_draft(file), made.experiments[0], made, tmp_path / "runs", where)


def sides(draft: Draft) -> dict[str, tuple[object, ...]]:
    """Return for each block what decides its rows: task, heads, and each side's source with whether it is used."""
    found: dict[str, tuple[object, ...]] = {}
    for block in draft.blocks:
        used = [run for run in block.runs if any(side.uses_source for _, side in run.sides)]
        run = used[0]
        listed = tuple((name, side.source if side.uses_source else "") for name, side in run.sides)
        found[block.name] = (run.task, dict(run.model)["heads"], listed)
    return found


def test_the_blocks_are_those_that_are_trained_with_what_is_at_hand() -> None:
    diagnosed = sides(read_draft(EXPERIMENTS / "verdicts.toml"))
    draft = read_draft(EXPERIMENTS / "paper" / "table1.toml")
    trained = sides(draft)
    official = {"glove-840b", "glove-de", "bert", "mbert", "t5", "mt5"}
    at_hand = {block.name for block in draft.blocks if not official & set(block.source_names())}
    assert {name: trained[name] for name in at_hand} == {name: diagnosed[name] for name in diagnosed if name in trained}
    files = ("engine.toml", "open/languages.toml", "open/narrow.toml")
    others = {name: side for file in files for name, side in sides(read_draft(EXPERIMENTS / file)).items()}
    more = diagnosed.keys() - trained.keys()
    assert {name: diagnosed[name] for name in more} == {name: others[name] for name in more}
    assert len(more) == 4
