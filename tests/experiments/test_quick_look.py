"""`run --epochs` and `run --tensorboard`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from embinit.cli import app
from embinit.experiments.execution.tensorboard import curve_names
from embinit.experiments.inputs.outline import read_experiment
from tests.experiments.made import places, written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    places(tmp_path)
    written(tmp_path)
    return tmp_path


def embinit(folder: Path, command: str, *words: str) -> Any:
    lying = ["--data", str(folder / "data"), "--vectors", str(folder / "vectors"), "--runs", str(folder / "runs")]
    done = CliRunner().invoke(app, [command, str(folder / "made.toml"), *lying, "--json", *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def epochs(folder: Path, key: str) -> int:
    return len(json.loads((folder / "runs" / key / "history.json").read_text("utf-8")))


def test_runs_of_a_quick_look_are_other_runs(folder: Path) -> None:
    quick = embinit(folder, "run", "--epochs", "1", "--workers", "1")["written"]
    assert [epochs(folder, key) for key in quick] == [1] * 4
    assert embinit(folder, "run", "--dry-run")["estimate"]["runs"] == 4
    (registry,) = (folder / "runs" / ".experiments").glob("*.json")
    assert json.loads(registry.read_text("utf-8"))["planned"] == []
    state = embinit(folder, "status")
    assert (state["done"], sorted(state["stale"])) == ([], sorted(quick))
    real = embinit(folder, "run", "--workers", "1")["written"]
    assert [epochs(folder, key) for key in real] == [2] * 4
    assert not set(real) & set(quick)
    assert embinit(folder, "run", "--epochs", "2")["written"] == []  # the file's own number: the same runs
    assert sorted(embinit(folder, "status")["done"]) == sorted(real)


def test_curves_of_each_run_are_written_for_tensorboard(folder: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    embinit(folder, "run", "--tensorboard", str(folder / "live"), "--workers", "1")
    embinit(folder, "run", "--tensorboard", str(folder / "later"))
    names = curve_names([read_experiment(folder / "made.toml")])
    assert sorted(names.values())[0] == "made/copying/pretrained/seed-1"
    histories = {}
    for spec in (folder / "runs").glob("*/spec.json"):
        content = json.loads(spec.read_text("utf-8"))
        start = content["sides"]["source"]["recipe"]
        name = f"made/copying/{start}/seed-{content['seed']}"
        histories[name] = json.loads(spec.with_name("history.json").read_text("utf-8"))
    assert len(histories) == 4
    for kind in ("live", "later"):
        for name, history in histories.items():
            events = EventAccumulator(str(folder / kind / name)).Reload()
            for tag, column in (("loss/train", "train loss"), ("score/bleu", "bleu"), ("sigma/source", "σ, source")):
                written_values = [(event.step, event.value) for event in events.Scalars(tag)]
                expected = [(epoch, pytest.approx(record[column], rel=1e-5)) for epoch, record in enumerate(history, 1)]
                assert written_values == expected
