"""`embinit make`: the recipe that it chooses, what it prints about the choice, and the files that it leaves alone."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embinit
from embinit.cli import app
from embinit.export.formats import write
from embinit.hosts import host_names


def call(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def printed(*words: object) -> str:
    done = call(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("task", [None, "classification"])
@pytest.mark.parametrize("model", host_names())
def test_the_default_recipe_is_that_of_inspect(
    model: str, task: str | None, glove_file: Path, vocabulary: Path, tmp_path: Path
) -> None:
    words = ["--vocab", vocabulary, "--model", model, "--fill", "mean", "--json", *(["--task", task] if task else [])]
    advised = json.loads(call("inspect", glove_file, *words).stdout)["verdict"]
    told = json.loads(call("make", glove_file, *words, "-o", tmp_path / "x.npy").stdout)
    for name in ("advice", "headline", "recipe", "rate", "at_full_rate"):
        assert told["advice"][name] == advised[name]
    aligned = embinit.align(glove_file, vocabulary)
    verdict = embinit.diagnose(aligned, host=model, recipe=embinit.recipe("pretrained", "mean"), task=task).verdict
    assert (np.load(tmp_path / "x.npy") == verdict.matrix(aligned)).all()
    assert told["recipe"]["steps"] == str(embinit.recipe(advised["recipe"]))
    assert told["recipe"]["fill"] == "mean"


def test_make_prints_the_chosen_recipe_its_rate_and_that_for_one_rate(glove_file: Path, tmp_path: Path) -> None:
    text = printed("make", glove_file, "--task", "classification", "-o", tmp_path / "x.npy")
    assert "pretrained | center | scale to=xavier (advised" in text
    assert "a tenth" in text
    assert "if all weights share one learning rate, give --recipe 'pretrained'" in text
    same = printed("make", glove_file, "-o", tmp_path / "x.npy")
    assert "(advised" in same
    assert "a tenth" not in same
    assert "one learning rate" not in same


@pytest.mark.parametrize("recipe", ["advised", "pretrained | center | scale to=host"])
def test_make_names_the_model_that_it_falls_back_to(recipe: str, glove_file: Path, tmp_path: Path) -> None:
    words = ["make", glove_file, "-o", tmp_path / "x.npy", "--recipe", recipe]
    assert "tutorial (the default; choose another with --model)" in printed(*words)
    assert "(the default" not in printed(*words, "--model", "gpt2")


def test_a_given_recipe_is_not_judged(glove_file: Path, tmp_path: Path) -> None:
    done = call("make", glove_file, "-o", tmp_path / "x.npy", "--recipe", "pretrained", "--json")
    assert json.loads(done.stdout)["advice"] is None
    assert (np.load(tmp_path / "x.npy") == embinit.load(glove_file).vectors).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["make", "--recipe", "advise", "-o", "x.npy"], "unknown recipe 'advise'"),
        (["make", "--fill", "maen", "-o", "x.npy"], "unknown fill 'maen'"),
        (["make", "--task", "clasification", "-o", "x.npy"], "unknown kind of task 'clasification'"),
        (["inspect", "--recipe", "advised"], "embinit make"),
    ],
)
def test_a_misspelt_choice_is_an_error_before_the_source_is_read(words: list[str], message: str) -> None:
    done = call(*words, "nowhere.txt")
    assert isinstance(done.exception, embinit.EmbinitError)
    assert message in str(done.exception)


def checkpoint(folder: Path) -> Path:
    """Return the folder of a small BERT: config, tokens and weights."""
    from safetensors.numpy import save_file

    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "vocab_size": 5, "hidden_size": 4}')
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\nthe\ncat\nsat\n")
    rows = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    save_file({"embeddings.word_embeddings.weight": rows}, folder / "model.safetensors")
    return folder


#: Each output is an input: the words of the command, its output, and the file that it would have replaced.
OVERWRITES = {
    "weights of the source": (["model"], "model/model.safetensors", "model/model.safetensors"),
    "weights of --model": (
        ["rows.vec", "--model", "model", "--recipe", "pretrained"], "model/model.safetensors", "model/model.safetensors"
    ),
    "implicit token list": (["rows.npy", "-f", "word2vec"], "rows.tokens.json", "rows.tokens.json"),
    "named token list": (["rows.npy::list.txt"], "list.txt", "list.txt"),
    "companion of the output": (["rows.npy", "-f", "npy"], "rows", "rows.tokens.json"),
    "path from home": (["~/rows.vec"], "rows.vec", "rows.vec"),
    "recipe": (["rows.vec", "--recipe", "own.toml::own", "-f", "glove"], "own.toml", "own.toml"),
    "tokenizer": (
        ["rows.vec", "--text", "text.en", "--tokenizer", "model", "-f", "glove"], "model/vocab.txt", "model/vocab.txt"
    ),
    "hard link": (["rows.vec"], "linked.vec", "rows.vec"),
}  # fmt: skip


@pytest.mark.parametrize("case", OVERWRITES)
def test_make_never_replaces_a_file_that_it_reads(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, out, kept = OVERWRITES[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    rows = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    checkpoint(tmp_path / "model")
    np.save("rows.npy", rows)
    Path("rows.tokens.json").write_text('["the", "cat", "sat"]')
    Path("list.txt").write_text("the\ncat\nsat\n")
    write(rows, ["the", "cat", "sat"], "rows.vec")
    Path("linked.vec").hardlink_to("rows.vec")
    Path("own.toml").write_text('[own]\nsteps = "pretrained"\n')
    Path("text.en").write_text("the cat sat\n")
    before = Path(kept).read_bytes()
    done = call("make", *words, "-o", out)
    assert isinstance(done.exception, embinit.EmbinitError), done.output
    assert "this command" in str(done.exception)
    assert Path(kept).read_bytes() == before
    assert call("make", *words, "-o", "other.npy", "-f", "npy").exit_code == 0


@pytest.mark.parametrize("command", ["inspect", "make"])
def test_missing_tokens_are_listed_in_text_in_json_and_in_a_file(
    command: str, glove_file: Path, tmp_path: Path
) -> None:
    text, missing = tmp_path / "text.en", tmp_path / "missing.txt"
    text.write_text("w1 w2, gnu\nw2, gnu w3\nw2,\n")
    words = [command, glove_file, "--text", text, *(["-o", tmp_path / "x.npy"] if command == "make" else [])]
    shown = printed(*words, "--missing", missing)
    assert "w2, (3), gnu (2)" in shown
    assert "another tokenization" in shown
    assert missing.read_text() == "w2,\t3\ngnu\t2\n"
    content = json.loads(call(*words, "--json").stdout)["missing"]
    assert (content["tokens"], content["most frequent"][0]) == (2, {"token": "w2,", "count": 3})
    assert [reason["kind"] for reason in content["reasons"]] == ["tokenization"]


def test_inspect_writes_a_page_that_stands_alone(glove_file: Path, vocabulary: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = call("inspect", glove_file, "--vocab", vocabulary, "--html", page, "--json")
    content = unescape(page.read_text("utf-8"))
    told = json.loads(done.stdout)
    assert told["verdict"]["headline"] in content
    assert told["command"] in content
    assert "<svg" in content
    assert "lacking" in content
    assert "http" not in content.replace("http-equiv", "")
    refused = call("inspect", glove_file, "--vocab", vocabulary, "--missing", vocabulary)
    assert "is an input of this command" in str(refused.exception)
