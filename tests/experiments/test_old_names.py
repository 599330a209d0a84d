"""Runs on the user's own files were named after the path of the data once; they are found by their content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from embinit.cli import app
from embinit.experiments.execution.engine import execute
from embinit.experiments.inputs.locations import Places
from embinit.experiments.runs.store import content_key, finished_folders, results_of
from embinit.experiments.spec import from_json
from tests.experiments.made import BLOCK, HEAD, places, planned, resolved, written


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an experiment whose finished runs have the path of the data as the name of their task."""
    folder = tmp_path_factory.mktemp("old")
    execute(planned(folder), folder / "runs", workers=1)
    for run in [path for path in (folder / "runs").iterdir() if (path / "run.json").is_file()]:
        content = json.loads((run / "spec.json").read_text("utf-8"))
        content["task"]["name"] = "data/copying"
        (run / "spec.json").write_text(json.dumps(content))
        run.rename(run.with_name(from_json(content).key))
    return folder


def embinit(folder: Path, command: str, *words: str) -> Any:
    lying = ["--data", str(folder / "data"), "--vectors", str(folder / "vectors"), "--work", str(folder / "work")]
    line = [command, str(folder / "made.toml"), "--runs", str(folder / "runs"), *lying, "--json", *words]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_they_are_found_and_not_trained_again(trained: Path) -> None:
    (experiment,) = resolved(trained / "made.toml", looked_at(trained)).experiments
    folders = finished_folders(experiment, trained / "runs")
    assert len(folders) == 4
    assert not {path.name for path in folders.values()} & set(folders)
    assert set(results_of(experiment, trained / "runs")) == set(folders)
    before = sorted((trained / "runs").iterdir())
    assert embinit(trained, "run", "--dry-run")["estimate"]["runs"] == 0
    outcome = embinit(trained, "run")
    assert (outcome["written"], outcome["already"]) == ([], 4)
    assert [path for path in sorted((trained / "runs").iterdir()) if len(path.name) == 16] == [
        path for path in before if len(path.name) == 16
    ]
    state = embinit(trained, "status")
    assert (len(state["done"]), state["stale"], state["others"]) == (4, [], {})
    report = embinit(trained, "report", "-o", str(trained / "made.html"))
    (part,) = report["parts"]
    assert [len(row["scores"]) for row in part["rows"]] == [2, 2]
    assert part["task"] == "copying"
    assert any(note.startswith("copying: valid has 12 rows") for note in report["notes"])
    assert "data/copying" not in (trained / "made.html").read_text("utf-8").replace(str(trained), "")


def test_other_data_is_another_run(trained: Path, tmp_path: Path) -> None:
    where = places(tmp_path, rows=80)
    (experiment,) = resolved(written(tmp_path), where).experiments
    assert finished_folders(experiment, trained / "runs") == {}


def test_another_name_of_the_same_files_is_the_same_run(trained: Path) -> None:
    renamed = trained / "renamed.toml"
    renamed.write_text(
        (HEAD + BLOCK).replace("tasks.copying", "tasks.mine").replace('task = "copying"', 'task = "mine"')
    )
    (experiment,) = resolved(renamed, looked_at(trained)).experiments
    assert {run.spec.task.name for run in experiment.blocks[0].runs} == {"mine"}
    assert len(finished_folders(experiment, trained / "runs")) == 4


def test_known_data_sets_are_found_by_their_keys_alone(trained: Path) -> None:
    (experiment,) = resolved(trained / "made.toml", looked_at(trained)).experiments
    content = experiment.blocks[0].runs[0].spec.as_json()
    assert content_key(from_json(content))
    content["task"]["name"] = "multi30k"
    assert content_key(from_json(content)) == ""


def looked_at(folder: Path) -> Places:
    return Places(folder / "data", folder / "vectors", folder / "work")
