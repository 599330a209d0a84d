"""The JSON Schema of experiment files: it accepts what the reader accepts, and explains every key."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from embinit.cli.schema import command
from embinit.errors import EmbinitError
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.definition.run_settings import setting_names
from embinit.experiments.definition.schema import experiment_schema, key_comments
from embinit.models.architecture import Architecture
from embinit.training.options import Training
from tests.experiments.made import BLOCK, HEAD, written

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "experiments").rglob("*.toml") if path.name != "sources.toml")
SCHEMA = experiment_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
FORMS = (
    'baseline = "xavier"\n',
    'baseline = ["xavier", {recipe = "pretrained", model.norm = "post"}]\n',
    '[recipes.a]\nsteps = ["pretrained", {scale = {ratio = 0.4}}]\n',
)
#: Mistakes that a schema finds without knowing names.
WRONG = (
    "model.head = 4",
    "model.layers = 2.5",
    'model.norm = "pots"',
    "training.betas = [0.9]",
    "training.rate = true",
    "seed = -1",
    "seed = [1, 2]",
    'fill = "men"',
    "grid.seed = 3",
    "grid.seed = []",
    'grid.model.norm = ["pots"]',
    'encoder.recip = "xavier"',
    "candidate = 3",
)


def errors(text: str) -> list[Any]:
    return list(VALIDATOR.iter_errors(tomllib.loads(text)))


def test_it_is_a_schema_of_draft_7() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_accepts_the_projects_files(path: Path) -> None:
    assert errors(path.read_text("utf-8")) == []


@pytest.mark.parametrize("form", FORMS)
def test_it_accepts_every_form_of_a_value(form: str, tmp_path: Path) -> None:
    head, block = (HEAD, form + BLOCK) if form.startswith("[") else (form + HEAD, BLOCK + 'grid.model.norm = ["post"]')
    assert read_draft(written(tmp_path, block, head)).blocks
    assert errors(head + block) == []


@pytest.mark.parametrize("line", WRONG)
def test_it_refuses_what_the_reader_refuses(line: str, tmp_path: Path) -> None:
    block = f'[[block]]\nname = "x"\n{line}\n'
    with pytest.raises(EmbinitError):
        read_draft(written(tmp_path, block, HEAD))
    assert len(errors(HEAD + block)) == 1


def test_every_key_is_explained() -> None:
    tables = {"file": SCHEMA, **SCHEMA["definitions"]}
    keys = {f"{name}.{key}": value for name, table in tables.items() for key, value in table["properties"].items()}
    assert len(keys) > 150
    assert [key for key, value in keys.items() if not value.get("description")] == []


def test_it_has_every_setting_of_a_model_and_of_training() -> None:
    for name, kind in (("ArchitectureSettings", Architecture), ("TrainingSettings", Training)):
        properties = SCHEMA["definitions"][name]["properties"]
        prefix = "model" if kind is Architecture else "training"
        assert set(properties) == {key.partition(".")[2] for key in setting_names() if key.startswith(f"{prefix}.")}
        for key, comment in key_comments(kind).items():
            assert key not in properties or properties[key]["description"] == comment
    assert SCHEMA["definitions"]["ArchitectureSettings"]["properties"]["norm"]["enum"] == ["post", "pre"]
    assert SCHEMA["definitions"]["TrainingSettings"]["properties"]["epochs"]["default"] == Training.epochs


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    command()
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(SCHEMA))
