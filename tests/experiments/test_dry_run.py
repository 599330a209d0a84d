"""`run --dry-run` and `status` look: they prepare nothing, train nothing and write nothing."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from embinit.cli import app
from embinit.experiments.execution import cost
from embinit.experiments.execution.engine import execute
from embinit.experiments.inputs import tasks, vectors
from tests.experiments.made import BLOCK, HEAD, places, planned, written

TRAINED_HERE = HEAD.replace(
    'path = "small.txt"\nabout = "made vectors"', 'glove = { texts = ["captions:en"], sentences = 50, dim = 16 }'
)


def dry(folder: Path, command: str = "run", *words: str) -> Any:
    """Return the JSON of a dry run, or of `status`, in the folder of a small experiment."""
    own = ["run", str(folder / "made.toml"), "--dry-run"] if command == "run" else [command, str(folder / "made.toml")]
    lying = ["--data", str(folder / "data"), "--vectors", str(folder / "vectors"), "--work", str(folder / "work")]
    done = CliRunner().invoke(app, [*own, "--runs", str(folder / "runs"), *lying, "--json", *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("head", [HEAD, TRAINED_HERE])
def test_nothing_is_prepared_trained_or_written(head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places(tmp_path)
    written(tmp_path, head=head)
    (tmp_path / "runs").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for module, name in ((tasks, "prepare"), (vectors, "train"), (vectors, "align")):
        monkeypatch.delattr(module, name)
    content = dry(tmp_path)
    assert (content["runs"], content["estimate"]["runs"], content["estimate"]["prepared"]) == (4, 4, False)
    assert content["estimate"]["seconds"] > 0
    assert [(line["keys"], line["runs"], line["missing"]) for line in content["lines"]] == [(None, 2, "")] * 2
    assert [line["keys"] for line in dry(tmp_path, "status")["lines"]] == [None, None]
    assert sorted(tmp_path.rglob("*")) == before


def test_the_cost_on_a_card_is_estimated_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places(tmp_path)
    written(tmp_path)
    monkeypatch.setattr(cost, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert dry(tmp_path, "run", "--device", "cuda")["estimate"]["device"] == "cuda"


def test_what_is_prepared_has_its_keys_and_its_real_size(tmp_path: Path) -> None:
    places(tmp_path, rows=2_000)
    written(tmp_path)
    guess = dry(tmp_path)["estimate"]
    shutil.rmtree(tmp_path / "data")
    shutil.rmtree(tmp_path / "vectors")
    planned(tmp_path, rows=2_000)
    content = dry(tmp_path)
    assert all(len(key) == 16 for line in content["lines"] for key in line["keys"])
    assert content["estimate"]["prepared"]
    assert 0.5 < guess["seconds"] / content["estimate"]["seconds"] < 2
    assert 0.5 < guess["memory"] / content["estimate"]["memory"] < 2


def test_rows_that_are_not_aligned_yet_leave_the_key_open(tmp_path: Path) -> None:
    random = BLOCK.replace('["xavier", "pretrained"]', '["xavier"]')
    planned(tmp_path, random, HEAD.replace('source = "small"', "model.dim = 16"))
    written(tmp_path, BLOCK.replace('["xavier", "pretrained"]', '["pretrained"]'))
    content = dry(tmp_path)
    assert [line["keys"] for line in content["lines"]] == [None]
    assert not content["estimate"]["prepared"]


def test_finished_runs_are_found_before_anything_is_prepared_again(tmp_path: Path) -> None:
    execute(planned(tmp_path), tmp_path / "runs", workers=1)
    shutil.rmtree(tmp_path / "work")
    content = dry(tmp_path)
    assert [len(line["done"]) for line in content["lines"]] == [2, 2]
    assert content["estimate"]["runs"] == 0
    assert len(dry(tmp_path, "status")["done"]) == 4
    assert not (tmp_path / "work").exists()


def test_heads_that_do_not_divide_the_usual_dimension_are_estimated_too(tmp_path: Path) -> None:
    places(tmp_path)
    written(tmp_path, head=HEAD.replace("dim = 16\n", "").replace("model.heads = 2", "model.heads = 8"))
    assert dry(tmp_path)["estimate"]["runs"] == 4
