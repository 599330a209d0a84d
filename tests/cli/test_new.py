"""`embinit new` writes an experiment file that runs as it is."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from embinit.cli import app
from embinit.experiments import starter
from embinit.experiments.definition.reader import read_draft
from embinit.models.architecture import default_heads

GERMAN = [f"wort{i}" for i in range(30)]
ENGLISH = [f"word{i}" for i in range(30)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with parallel text, a table with labels, and vectors of each language; it is the current one."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 30, rng.integers(2, 6)) for _ in range(120)]
    (tmp_path / "train.de").write_text("".join(" ".join(GERMAN[i] for i in row) + "\n" for row in rows))
    (tmp_path / "train.en").write_text("".join(" ".join(ENGLISH[i] for i in row) + "\n" for row in rows))
    (tmp_path / "short.txt").write_text("".join(" ".join(ENGLISH[i] for i in row) + "\n" for row in rows[:25]))
    labelled = [f"{' '.join(ENGLISH[i] for i in row)}\t{'low' if row[0] < 15 else 'high'}\n" for row in rows]
    (tmp_path / "reviews.tsv").write_text("text\tlabel\n" + "".join(labelled))
    for name, words in (("german.txt", GERMAN), ("english.txt", ENGLISH)):
        vectors = rng.standard_normal((30, 20))
        lines = [f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(words, vectors, strict=True)]
        (tmp_path / name).write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def embinit(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == code, f"{done.output} {done.exception}"
    return json.loads(done.stdout) if code == 0 else str(done.exception)


TEXTS = ("--source-text", "train.de", "--target-text", "train.en", "--tokenizer", "whitespace")
CASES = {
    "both languages": (*TEXTS, "--vectors", "english.txt", "--vectors", "german.txt"),
    "one language": (*TEXTS, "--vectors", "english.txt"),
    "text": ("--text", "train.en", "--vectors", "english.txt", "--tokenizer", "whitespace"),
    "text below a block": ("--text", "short.txt", "--vectors", "english.txt", "--tokenizer", "whitespace"),
    "labels": ("--labelled", "reviews.tsv", "--vectors", "english.txt", "--tokenizer", "whitespace"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_file_runs_as_it_is_written(case: str, folder: Path) -> None:
    made = embinit("new", "my.toml", *CASES[case])
    if not case.startswith("text"):
        assert made["rows"] == {"train": 96, "valid": 12, "test": 12}
    assert len(made["starts"]) == 3
    outcome = embinit("run", "my.toml", "--epochs", "1", "--workers", "1")
    assert len(outcome["written"]) == 9
    spec = json.loads((folder / "runs" / outcome["written"][0] / "spec.json").read_text("utf-8"))
    assert (spec["model"]["dim"], spec["model"]["heads"], spec["task"]["name"]) == (20, default_heads(20), "my")
    (part,) = embinit("report", "my.toml", "-o", "my.html")["parts"]
    assert len(part["rows"]) == 3


def test_each_side_takes_the_vectors_that_have_its_words(folder: Path) -> None:
    embinit("new", "both.toml", *CASES["both languages"])
    draft = read_draft(folder / "both.toml")
    paths = {side: draft.sources[one.source].path for side, one in draft.blocks[0].runs[0].sides}
    assert paths == {"source": "german.txt", "target": "english.txt"}
    embinit("new", "one.toml", *CASES["one language"])
    starts = {
        tuple(str(side.recipe) for _, side in run.sides) for run in read_draft(folder / "one.toml").blocks[0].runs
    }
    assert len(starts) == 3
    assert len({source for source, _ in starts}) == 1  # the source side starts random


def test_vectors_of_one_language_are_not_taken_for_the_other(folder: Path) -> None:
    """Large vectors of one language have many tokens of another: its names, its punctuation and its loan words."""
    (folder / "more.txt").write_text(
        (folder / "english.txt").read_text() + "".join((folder / "german.txt").read_text().splitlines(True)[:26])
    )
    made = embinit("new", "my.toml", *TEXTS, "--vectors", "more.txt")
    ((path, side, share),) = made["unused"]
    assert (path, side) == ("more.txt", "encoder")
    assert 0.8 < share < 0.9
    (folder / "more.txt").write_text((folder / "english.txt").read_text() + (folder / "german.txt").read_text())
    assert embinit("new", "both.toml", *TEXTS, "--vectors", "more.txt")["unused"] == []


def test_few_tokens_on_the_only_side_are_a_note(folder: Path) -> None:
    lines = (folder / "english.txt").read_text().splitlines(True)
    (folder / "few.txt").write_text("".join(lines[:20]))
    words = ("--labelled", "reviews.tsv", "--vectors", "few.txt", "--tokenizer", "whitespace")
    notes = embinit("new", "my.toml", *words)["notes"]
    assert any("few.txt has only 6" in note and "word2" in note for note in notes)
    (folder / "few.txt").write_text("".join(lines[:5]))
    assert "few.txt has only" in embinit("new", "other.toml", *words, code=1)


def test_a_linked_file_is_named_as_it_is_written(folder: Path) -> None:
    (folder / "vectors").mkdir()
    (folder / "english.txt").rename(folder / "vectors" / "glove.txt")
    (folder / "linked.txt").symlink_to(folder / "vectors" / "glove.txt")
    embinit("new", "my.toml", "--labelled", "reviews.tsv", "--vectors", "linked.txt", "--tokenizer", "whitespace")
    assert tomllib.loads((folder / "my.toml").read_text("utf-8"))["sources"]["vectors"]["path"] == "linked.txt"


def test_the_lines_that_are_held_out_of_running_text_are_named(folder: Path) -> None:
    made = embinit("new", "my.toml", *CASES["text"])
    (note,) = made["notes"]
    assert all(f"{made['rows'][name]} " in note for name in ("train", "valid", "test"))
    done = CliRunner().invoke(app, ["run", "my.toml", "--dry-run"])
    assert f"note: my: {note}" in done.output


def test_files_are_named_from_the_folder_of_the_toml(folder: Path) -> None:
    (folder / "deep").mkdir()
    embinit("new", "deep/my.toml", *CASES["labels"])
    content = tomllib.loads((folder / "deep" / "my.toml").read_text("utf-8"))
    assert content["tasks"]["my"]["path"] == str(folder / "reviews.tsv")
    embinit("new", "my.toml", *CASES["labels"])
    content = tomllib.loads((folder / "my.toml").read_text("utf-8"))
    assert (content["tasks"]["my"]["path"], content["sources"]["vectors"]["path"]) == ("reviews.tsv", "english.txt")


def test_validation_rows_beside_the_file_are_taken(folder: Path) -> None:
    (folder / "train.tsv").write_text((folder / "reviews.tsv").read_text())
    (folder / "dev.tsv").write_text("text\tlabel\n" + "word1 word2\tlow\nword20 word3\thigh\n" * 9)
    made = embinit("new", "my.toml", "--labelled", "train.tsv", *CASES["labels"][2:])
    assert made["rows"] == {"train": 120, "valid": 18}
    outcome = embinit("run", "my.toml", "--epochs", "1", "--seeds", "1", "--workers", "1")
    assert len(outcome["written"]) == 3
    # Runs lie in the same folder as the data now; the data is still known.
    assert embinit("run", "my.toml", "--epochs", "1", "--dry-run")["estimate"]["prepared"]


@pytest.mark.parametrize("split", ["valid", "val", "test"])
def test_text_files_of_other_splits_are_taken_by_the_languages_of_the_given_files(split: str, folder: Path) -> None:
    for language in ("de", "en"):
        lines = (folder / f"train.{language}").read_text().splitlines(keepends=True)
        (folder / f"{split}.{language}").write_text("".join(lines[:30]))
    made = embinit("new", "my.toml", *TEXTS, "--vectors", "english.txt")
    assert made["rows"]["test" if split == "test" else "valid"] == 30
    assert embinit("run", "my.toml", "--dry-run")["runs"] == 9


def test_vectors_that_no_side_takes_are_named(folder: Path) -> None:
    lines = (folder / "english.txt").read_text().splitlines(keepends=True)
    (folder / "fewer.txt").write_text("".join(lines[:28]))
    words = (*CASES["labels"], "--vectors", "fewer.txt")
    assert (
        "fewer.txt is not used: the other vectors have more of the tokens" in embinit("new", "my.toml", *words)["notes"]
    )


def test_a_language_without_rules_is_named(folder: Path) -> None:
    done = CliRunner().invoke(app, ["new", "my.toml", *CASES["labels"][:4], "--pair", "qq"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "spaCy has no rules for qq" in done.output


def test_without_vectors_glove_is_trained_on_the_text(folder: Path) -> None:
    made = embinit("new", "my.toml", *TEXTS)
    draft = read_draft(folder / "my.toml")
    assert {name: list(source.glove.texts) for name, source in draft.sources.items() if source.glove} == {
        "own-encoder": ["train.de"],
        "own-decoder": ["train.en"],
    }
    assert made["dim"] % dict(draft.blocks[0].runs[0].model)["heads"] == 0


WRONG = {
    ("my.toml",): "--source-text FILE",
    ("my.toml", "--source-text", "train.de"): "--target-text",
    ("my.toml", *CASES["labels"], "--source-text", "train.de"): "one task",
    ("my.txt", *TEXTS): ".toml",
    ("my.toml", *TEXTS[:3], "train.enn"): "train.en?",
    ("my.toml", *TEXTS, "--vectors", "englisch.txt"): "english.txt?",
    ("my.toml", "--labelled", "reviews.tsv", "--vectors", "german.txt", "--tokenizer", "whitespace"): "0 %",
    ("my.toml", *TEXTS[:3], "german.txt"): "",
    ("my.toml", *TEXTS[:3], "train.de"): "give two files",
    ("my.toml", *TEXTS, "--pair", "german-english"): "two languages, as in de-en",
    ("my.toml", *CASES["labels"], "--pair", "de-en"): "one language, as in en",
    ("my.toml", "--text", "reviews.tsv"): "--labelled reviews.tsv",
    ("there.toml", *TEXTS): "--force",
    ("my.toml", *TEXTS, "--pair", "en-de"): "train.de is the source and train.en the target, but the pair is en-de",
    ("my.toml", "--labelled", "one.tsv"): "all training rows have the label 'low'",
    ("my.toml", "--labelled", "headless.tsv"): "Add a first line with these names",
    ("my.toml", "--labelled", "reviews.tsv", "--vectors", "few.txt", "--tokenizer", "whitespace"): "At least 50 %",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_is_said_and_nothing_is_written(words: tuple[str, ...], folder: Path) -> None:
    (folder / "there.toml").write_text("mine")
    reviews = (folder / "reviews.tsv").read_text()
    (folder / "one.tsv").write_text(reviews.replace("\thigh", "\tlow"))
    (folder / "headless.tsv").write_text(reviews.partition("\n")[2])
    (folder / "few.txt").write_text("".join((folder / "english.txt").read_text().splitlines(keepends=True)[:5]))
    before = sorted(path.name for path in folder.iterdir())
    assert WRONG[words] in embinit("new", *words, code=1)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / "there.toml").read_text() == "mine"


def test_rows_too_few_to_hold_some_out_are_refused_before_anything_trains(folder: Path) -> None:
    table = (folder / "reviews.tsv").read_text().splitlines(keepends=True)
    embinit("new", "my.toml", *CASES["labels"])
    (folder / "reviews.tsv").write_text("".join(table[:13]))
    assert "no validation rows" in embinit("new", "few.toml", *CASES["labels"], code=1)
    assert not (folder / "few.toml").exists()
    done = CliRunner().invoke(app, ["run", "my.toml"])
    assert done.exit_code == 1
    assert "no validation rows" in done.output
    assert not list((folder / "runs").glob("*.failed.json"))


def test_rows_that_are_held_out_are_named_before_anything_trains(folder: Path) -> None:
    embinit("new", "my.toml", *CASES["labels"])
    for more in (["--dry-run"], ["--epochs", "1", "--seeds", "1", "--workers", "1"]):
        done = CliRunner().invoke(app, ["run", "my.toml", *more])
        note = done.output.index("note: my: 12 for validation and 12 for the test were taken from the rows")
        assert note < done.output.find("side by side") or more == ["--dry-run"]
    embinit("run", "my.toml", "--seeds", "1", "--workers", "1")
    notes = embinit("report", "my.toml", "-o", "my.html")["notes"]
    assert any(note.startswith("my: 12 for validation") for note in notes)
    assert any("fewer than 200 rows" in note for note in notes)


def test_the_report_says_the_command_that_runs_it_again(folder: Path) -> None:
    embinit("new", "my.toml", *CASES["labels"])
    embinit("report", "my.toml", "--vectors", str(folder), "-o", "my.md")
    assert f"embinit run my.toml --vectors {folder}" in (folder / "my.md").read_text("utf-8")


def test_the_tokenizer_follows_the_language_and_what_is_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("--source-text", "train.de", "--target-text", "train.en")
    assert embinit("new", "spacy.toml", *texts)["tokenizer"] == "spacy:de, spacy:en"
    assert embinit("new", "other.toml", *texts, "--pair", "ab-en")["tokenizer"] == "spacy:xx, spacy:en"
    monkeypatch.setattr(starter, "find_spec", lambda name: None)
    assert embinit("new", "plain.toml", *texts)["tokenizer"] == "whitespace"
    for name in ("spacy", "other", "plain"):
        assert read_draft(folder / f"{name}.toml").tasks[name].tokenizer
