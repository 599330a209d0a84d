"""Results files from elsewhere: any value may be wrong, names lead nowhere, and text does not control a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from embinit.cli import app
from embinit.errors import EmbinitError
from embinit.files import component
from embinit.reports.results_file import write_compact, write_measured
from embinit.reports.results_reader import read_compact
from embinit.reports.writers.html import page
from embinit.reports.writers.markdown import markdown
from tests.reports import made
from tests.reports.test_measurements import analogies, distributions
from tests.research.advised import diagnosis

WRONG = (None, True, -1, 10**30, 1e999, "", "../x", [], [[]], {}, {"a": None})


def content_of(path: Path) -> Any:
    block = made.block(recipes=("xavier", "pretrained"), seeds=range(2))
    write_compact(made.experiment(block, against=()), made.results(block), path)
    return json.loads(path.read_text("utf-8"))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value inside a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], wrong)
    return copy


def check(content: Any, path: Path) -> bool:
    """Return whether a file is reported on; whatever is wrong with it is an EmbinitError."""
    path.write_text(json.dumps(content), "utf-8")
    try:
        compact = read_compact(path)
        summary = compact.summary()
        return (
            bool(markdown(summary) + page(summary) + json.dumps(summary.as_json(), allow_nan=False))
            and not compact.damaged
        )
    except EmbinitError:
        return False


@pytest.mark.parametrize("kind", ["training", "distribution", "analogy", "verdict"])
def test_a_wrong_value_anywhere_is_no_traceback(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.json"
    if kind == "training":
        content = content_of(path)
    else:
        measured = {"distribution": distributions, "analogy": analogies}.get(kind)
        rows = {"name": "v", "kind": "verdict", "blocks": [{"name": "Table 4", "rows": [diagnosis(9.0)]}]}
        block = made.block("Table 6" if kind == "distribution" else "Table 4", seeds=range(1))
        write_measured(
            made.experiment(block, kind=kind), measured() if measured else json.loads(json.dumps(rows)), path
        )
        content = json.loads(path.read_text("utf-8"))
    assert check(content, path)
    listed = list(places(content))
    rng = np.random.default_rng(0)
    tried = [(listed[int(rng.integers(len(listed)))], WRONG[int(rng.integers(len(WRONG)))]) for _ in range(600)]
    refused = sum(not check(replaced(content, place, wrong), path) for place, wrong in tried)
    assert refused > 200


def test_a_damaged_run_is_named_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = content_of(path)
    content["blocks"][0]["runs"][1]["scores"]["test"]["bleu"] = "37"
    path.write_text(json.dumps(content), "utf-8")
    compact = read_compact(path)
    assert len(compact.results) == 3
    (message,) = compact.damaged
    assert "run 1" in message and "'37'" in message
    done = CliRunner().invoke(app, ["report", str(path), "-o", str(tmp_path / "out.md")])
    assert done.exit_code == 0
    assert "left out: " in done.output
    assert "1 run of 4 is missing" in done.output


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "a\\b", "..", ".", "", "a\x1b[2J", "a\nb", "n" * 300])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.json"
    content = content_of(path)
    content["experiment"]["name"] = name
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(EmbinitError, match=r"experiment\.name"):
        read_compact(path)
    with pytest.raises(EmbinitError, match="files are named after it"):
        component(name, "the name")


def test_names_of_usual_experiments_are_taken() -> None:
    for name in ("table1", "my experiment", "2024.05", "größe", ".hidden"):
        assert component(name, "the name") == name


def test_text_of_a_file_does_not_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    content = content_of(path)
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\rgone"
    content["experiment"]["title"] = content["experiment"]["question"] = evil
    content["experiment"]["notes"] = [evil]
    content["blocks"][0]["name"] = f"block {evil}"
    content["blocks"][0]["sources"] = [[evil, evil]]
    path.write_text(json.dumps(content), "utf-8")
    done = CliRunner().invoke(app, ["report", str(path), "-o", str(tmp_path / "out.html")])
    assert done.exit_code == 0
    assert "gone" in done.output
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set(done.output)
    content["blocks"][0]["runs"][1]["like"] = 99
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(EmbinitError) as error:
        read_compact(path)
    assert "like is 99" in str(error.value)
