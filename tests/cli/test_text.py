"""`embinit prepare` on running text: every kind, and a sentence for each text that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from embinit.cli import app
from embinit.errors import EmbinitError
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.resolve import resolve


def prepared(folder: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["prepare", *map(str, words), "-o", str(folder / "prepared"), "--json"])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{i} green bottles\n\n" for i in range(60)))
    return path


@pytest.mark.parametrize("task", ["language_model", "masked_language_model"])
def test_an_own_text_becomes_either_kind_of_task(task: str, text: Path, tmp_path: Path) -> None:
    found = json.loads(prepared(tmp_path, "files", "--task", task, "--data", text, "--tokenizer", "whitespace").stdout)
    assert found["task"] == task
    assert found["settings"]["lower"] is False
    assert list(found["splits"]) == ["train", "valid", "test"]
    tokens = json.loads((Path(found["path"]) / "text.vocabulary.json").read_text())["tokens"]
    assert ("<mask>" in tokens) == (task == "masked_language_model")


def test_boundaries_at_blank_lines_make_fewer_ends(text: Path, tmp_path: Path) -> None:
    words = ("files", "--task", "language_model", "--data", text, "--tokenizer", "whitespace")
    lines, documents = (
        json.loads(prepared(tmp_path, *words, *more).stdout)["splits"]["train"]["rows"]
        for more in ((), ("--boundary", "blank"))
    )
    assert lines == 2 * documents - 1, "the blank line at the end of the part is no line"


@pytest.mark.parametrize(("tokenizer", "least"), [("whitespace", 2), ("characters", 1), ("bytes", 1)])
def test_no_piece_of_a_text_is_unknown_unless_pieces_are_words(
    tokenizer: str, least: int, text: Path, tmp_path: Path
) -> None:
    text.write_text("Xylophones\n" + text.read_text())
    words = ("files", "--task", "language_model", "--data", text, "--tokenizer", tokenizer)
    found = json.loads(prepared(tmp_path, *words).stdout)
    assert found["settings"]["min_count"] == least
    assert (found["splits"]["train"]["sides"]["text"]["unknown"] == 0) == (least == 1)
    (tmp_path / "my.toml").write_text(
        f'[tasks.my]\nname = "files"\nkind = "language_model"\npath = "{text}"\ntokenizer = "{tokenizer}"\n'
        '[[block]]\nname = "one"\ntask = "my"\nmodel = { dim = 8, heads = 2, length = 8 }\n'
    )
    resolve([read_draft(tmp_path / "my.toml")], Places(None, None, tmp_path / "work"))
    (manifest,) = (tmp_path / "work").rglob("manifest.json")
    assert json.loads(manifest.read_text())["settings"]["min_count"] == least


def test_the_built_in_text_needs_no_data(tmp_path: Path) -> None:
    found = json.loads(prepared(tmp_path, "captions-text", "--size", 200, "--tokenizer", "characters").stdout)
    assert found["splits"]["train"]["rows"] == 200


@pytest.mark.parametrize(
    ("content", "words", "named"),
    [
        ("", (), "no text in text.txt"),
        ("\n\n", (), "no text in text.txt"),
        ("one line alone\n", (), "too short to be split: it has 1 line,"),
        ("a b\n" * 40, ("--boundary", "lines"), "boundary"),
        ("a b\n" * 40, ("--longest", "5"), "never cut"),
    ],
)
def test_a_text_that_cannot_be_used_is_one_sentence(
    content: str, words: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    path = tmp_path / "text.txt"
    path.write_text(content)
    result = prepared(tmp_path, "files", "--task", "language_model", "--data", path, *words)
    assert isinstance(result.exception, EmbinitError)
    assert named in str(result.exception)
    assert not list(tmp_path.glob("prepared/*"))


def test_sentences_are_no_running_text(tmp_path: Path) -> None:
    result = prepared(tmp_path, "captions", "--task", "language_model")
    assert "translation" in str(result.exception)
