"""A command parses its experiment file once and passes the parsed value on."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from embinit.cli import app
from tests.experiments.made import BLOCK, HEAD, places, written


@pytest.mark.parametrize("kind", ["training", "distribution"])
@pytest.mark.parametrize(
    "words", [["run", "--dry-run"], ["run", "--plan", "plan"], ["status"], ["report"], ["clean", "--yes"], ["run"]]
)
def test_a_command_parses_its_file_once(
    kind: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words == ["run"] and kind == "training":
        pytest.skip("it would train; --dry-run and --plan go the same way")
    monkeypatch.chdir(tmp_path)
    where = places(tmp_path)
    file = written(tmp_path, BLOCK, f'kind = "{kind}"\n{HEAD}')
    text, parsed, loads = file.read_text("utf-8"), [], tomllib.loads

    def counting(content: str, **options: Any) -> dict[str, Any]:
        if content == text:
            parsed.append(content)
        return loads(content, **options)

    monkeypatch.setattr(tomllib, "loads", counting)
    folders = ["--data", str(where.data), "--vectors", str(where.vectors)]
    (tmp_path / "runs").mkdir()
    done = CliRunner().invoke(app, [words[0], str(file), *words[1:], *folders])
    assert done.exit_code == 0, done.output
    assert len(parsed) == 1
