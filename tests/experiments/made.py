"""Small experiments for tests: sentences to be copied in capital letters, and vectors of their words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from embinit.experiments.definition.reader import read_draft
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.resolve import Resolved, resolve
from embinit.experiments.plan import specs_of, write_plan

WORDS = [f"w{i}" for i in range(10)]

HEAD = """
[sources.small]
path = "small.txt"
about = "made vectors"
dim = 16

[sources.other]
path = "other.txt"

[tasks.copying]
name = "files"
path = "copying"
tokenizer = "whitespace"
lower = false
min_count = 1

[tasks.sorting]
name = "files"
path = "sorting"
kind = "classification"
tokenizer = "whitespace"
min_count = 1

[defaults]
task = "copying"
source = "small"
model.heads = 2
model.layers = 1
model.feedforward = 16
model.length = 20
training.epochs = 2
training.batch = 16
training.rate = 5e-3
"""
BLOCK = """
[[block]]
name = "copying"
grid.recipe = ["xavier", "pretrained"]
grid.seed = [1, 2]
"""


def data(folder: Path, rows: int = 60) -> Path:
    """Write a translation and a classification as a user has them, and return their folder."""
    rng = np.random.default_rng(0)
    for name in ("copying", "sorting"):
        (folder / name).mkdir(parents=True)
    for split, count in (("train", rows), ("valid", 12), ("test", 10)):
        texts = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(count)]
        (folder / "copying" / f"{split}.source.txt").write_text("".join(f"{text}\n" for text in texts))
        (folder / "copying" / f"{split}.target.txt").write_text("".join(f"{text.upper()}\n" for text in texts))
        labels = ["low" if text < "w5" else "high" for text in texts]
        lines = [f"{text}\t{label}\n" for text, label in zip(texts, labels, strict=True)]
        if split != "test":
            (folder / "sorting" / f"{split}.tsv").write_text("text\tlabel\n" + "".join(lines))
    return folder


def vectors(folder: Path) -> Path:
    """Write vectors of all words but two, of the capital ones too, and return their folder."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for name, dim in (("small", 16), ("other", 12)):
        words = [*WORDS[2:], *(word.upper() for word in WORDS[2:])]
        rows = [f"{word} {' '.join(f'{x:.4f}' for x in rng.standard_normal(dim))}\n" for word in words]
        (folder / f"{name}.txt").write_text("".join(rows))
    return folder


def places(folder: Path, rows: int = 60) -> Places:
    """Return a folder of data, one of vectors and one for the work."""
    return Places(data(folder / "data", rows), vectors(folder / "vectors"), folder / "work")


def written(folder: Path, blocks: str = BLOCK, head: str = HEAD, name: str = "made.toml") -> Path:
    """Return an experiment's file."""
    path = folder / name
    path.write_text(head + blocks)
    return path


def resolved(path: Path, where: Places) -> Resolved:
    return resolve([read_draft(path)], where)


def planned(folder: Path, blocks: str = BLOCK, head: str = HEAD, rows: int = 60) -> Path:
    """Return jobs.json of a small experiment."""
    where = places(folder, rows)
    made = resolved(written(folder, blocks, head), where)
    return write_plan(made, specs_of(made), where.work, where.work)


def contents(runs: Path) -> dict[str, bytes]:
    """Return every file of every finished run but run.json, which has the times."""
    files = (path for path in sorted(runs.glob(f"{'[0-9a-f]' * 16}/*")) if path.name != "run.json")
    return {str(path.relative_to(runs)): path.read_bytes() for path in files}


def environment() -> dict[str, str]:
    """Return the environment for a process of its own: one thread, so that several of them do not wait for each other."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """Run `embinit`."""
    line = [sys.executable, "-m", "embinit", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment())
