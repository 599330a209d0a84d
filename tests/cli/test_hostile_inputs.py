"""Whatever a command is fed, it ends in one sentence and exit code 2, and writes nothing."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from embinit.cli import main

GRID = """
[sources.small]
path = "small.txt"
[tasks.copying]
name = "files"
path = "copying"
tokenizer = "whitespace"
[defaults]
task = "copying"
source = "small"
[[block]]
name = "x"
grid.recipe = ["xavier", "pretrained"]
grid.seed = {seeds}
grid.training.rate = {rates}
"""


def _edge(path: Path) -> None:
    numbers = "3.4028235e38 -3.4028235e38 3.4e38 3.4028235e38"
    path.write_text("".join(f"w{i} {numbers}\n" for i in range(40)))


def _wide(path: Path) -> None:
    arguments = struct.pack("<12id", 2, 5, 5, 1, 5, 1, 1, 1, 10, 3, 2**31 - 1, 100, 1e-4)
    path.write_bytes(struct.pack("<2i", 793_712_314, 12) + arguments + struct.pack("<3i2q", 1, 1, 0, 5, -1))


def _grid(path: Path) -> None:
    path.write_text(GRID.format(seeds=list(range(3000)), rates=[i / 1e6 for i in range(1, 3000)]))


#: case: the words of the command; how its file `{file}` is made; what the sentence contains
CASES: dict[str, tuple[list[str], str, Callable[[Path], object], str]] = {
    "a grid of millions": (["run", "{file}", "--dry-run"], "x.toml", _grid, "17,994,000 runs"),
    "TOML without end": (["run", "{file}", "--dry-run"], "x.toml", lambda p: p.symlink_to("/dev/zero"), "larger than"),
    "TOML of brackets": (
        ["status", "{file}"],
        "x.toml",
        lambda p: p.write_text("a = " + "[" * 9000),
        "nested too deeply",
    ),
    "NUL in include": (
        ["run", "{file}"],
        "x.toml",
        lambda p: p.write_text('include = "a\\u0000b"'),
        "no file can have",
    ),
    "a recipe without end": (
        ["make", "{vectors}", "--recipe", "{file}", "-o", "{folder}/o.npy"],
        "x.toml",
        lambda p: p.symlink_to("/dev/zero"),
        "larger than",
    ),
    "a bound below zero": (
        ["make", "{vectors}", "--recipe", "uniform bound=-1", "-o", "{folder}/o.npy"],
        "x",
        lambda p: p.touch(),
        "uniform bound=-1",
    ),
    "ids of millions": (
        ["make", "{vectors}", "--vocab", "{file}", "-o", "{folder}/o.npy"],
        "x.json",
        lambda p: p.write_text('{"the": 0, "cat": 9999999}'),
        "id 9,999,999",
    ),
    "odd specials": (
        ["inspect", "{vectors}", "--vocab", "{file}"],
        "x.json",
        lambda p: p.write_text('{"tokens": ["w1"], "specials": [["x"]]}'),
        "specials",
    ),
    "a page of a comparison": (
        ["inspect", "{vectors}", "--new-tokens", "2", "--html", "{file}"],
        "x.html",
        lambda p: p.touch(),
        "--html does not go with --new-tokens",
    ),
    "a vocabulary without end": (
        ["inspect", "{vectors}", "--vocab", "{file}"],
        "x.txt",
        lambda p: p.symlink_to("/dev/zero"),
        "larger than",
    ),
    "a tokenizer without end": (
        ["inspect", "{vectors}", "--text", "{vectors}", "--tokenizer", "{file}"],
        "x.json",
        lambda p: p.symlink_to("/dev/zero"),
        "not a regular file",
    ),
    "a tokenizer of a gigabyte": (
        ["inspect", "{vectors}", "--text", "{vectors}", "--tokenizer", "{file}"],
        "x.json",
        lambda p: (p.touch(), os.truncate(p, 1 << 30)),
        "larger than 256 MB",
    ),
    "a new tokenizer without end": (
        ["extend", "{folder}/model", "--tokenizer", "{file}", "-o", "{folder}/o"],
        "x",
        lambda p: (p.mkdir(), (p / "vocab.txt").touch(), (p / "tokenizer.json").symlink_to("/dev/zero")),
        "not a regular file",
    ),
    "scores without end": (["report", "{file}"], "x.csv", lambda p: p.symlink_to("/dev/zero"), "larger than"),
    "results without end": (["report", "{file}"], "x.json", lambda p: p.symlink_to("/dev/zero"), "larger than"),
    "jobs without end": (
        ["execute", "{file}", "-o", "{folder}/o"],
        "x.json",
        lambda p: p.symlink_to("/dev/zero"),
        "larger",
    ),
    "jobs in a list": (["execute", "{file}", "-o", "{folder}/o"], "x.json", lambda p: p.write_text("[1]"), "an object"),
    "a form feed alone": (["inspect", "{file}"], "x.txt", lambda p: p.write_bytes(b"\x0c\n"), "not a vector"),
    "rows without numbers": (["inspect", "{file}"], "x.npy", lambda p: np.save(p, np.zeros((40, 0))), "(40, 0)"),
    "numbers at the edge": (["inspect", "{file}"], "x.txt", _edge, "float32"),
    "n-grams without end": (["inspect", "{file}"], "x.bin", _wide, "2147483647 characters"),
    "a device": (["inspect", "/dev/zero"], "x", lambda p: p.touch(), "not a regular file"),
    "a name without end": (["inspect", "x" * 5000], "x", lambda p: p.touch(), "File name too long"),
    "nobody's home": (["inspect", "~nobody/x/y.txt"], "x", lambda p: p.touch(), "no such file"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES)
def test_it_is_one_sentence(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, name, make, said = CASES[case]
    inputs, outputs = tmp_path / "inputs", tmp_path / "outputs"
    inputs.mkdir()
    outputs.mkdir()
    rng = np.random.default_rng(0)
    vectors = inputs / "v.txt"
    vectors.write_text("".join(f"w{i} {' '.join(map(str, rng.normal(size=4)))}\n" for i in range(40)))
    (inputs / "x.tokens.json").write_text(json.dumps([f"w{i}" for i in range(40)]))
    make(inputs / name)
    given = [word.format(file=inputs / name, vectors=vectors, folder=outputs) for word in words]
    monkeypatch.setattr(sys, "argv", ["embinit", *given])
    monkeypatch.chdir(outputs)
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 2, printed
    assert printed.err.startswith("embinit: ")
    assert printed.err.count("\n") == 1
    assert said in printed.err
    assert list(outputs.iterdir()) == []
