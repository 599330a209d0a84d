"""No command writes over a file that it reads, nor two results into one file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from embinit.cli import app
from embinit.errors import EmbinitError
from embinit.export.formats import write
from embinit.reports.results_file import write_compact
from tests.experiments import made as experiments
from tests.reports import made as reports

WORDS = [f"w{i}" for i in range(10)]
EXPERIMENT = """
include = "shared.toml"
[defaults]
task = "sorting"
source = "small"
model.dim = 16
model.heads = 2
training.epochs = 1
[[block]]
name = "sorting"
grid.recipe = ["xavier", "pretrained"]
grid.seed = [1, 2]
"""
REPORT = ["report", "made.toml", "--data", "data", "--vectors", "vectors", "--format", "csv", "-o"]
NEW = ["--tokenizer", "whitespace", "--force"]
#: The words of a command, and its output, which it reads too; "" if two outputs are one file.
CASES: dict[str, tuple[list[str], str]] = {
    "new: text": (["new", "text.toml", "--text", "text.toml", *NEW], "text.toml"),
    "new: source": (["new", "text.toml", "--source-text", "text.toml", "--target-text", "text.txt", *NEW], "text.toml"),
    "new: target": (["new", "text.toml", "--source-text", "text.txt", "--target-text", "text.toml", *NEW], "text.toml"),
    "new: vectors": (["new", "rows.toml", "--text", "text.txt", "--vectors", "rows.toml", *NEW], "rows.toml"),
    "new: tokenizer": (
        ["new", "tokenizer.toml", "--text", "text.txt", "--tokenizer", "tokenizer.toml", "--force"], "tokenizer.toml"
    ),
    "new: a link": (["new", "linked.toml", "--text", "text.txt", *NEW], "linked.toml"),
    "glove: tokenizer": (["glove", "text.txt", "--tokenizer", "tokenizer.toml", "-o", "tokenizer.toml"], "tokenizer.toml"),
    "glove: checkpoint": (["glove", "v.txt.checkpoint", "-o", "v.txt", "--fresh"], "v.txt.checkpoint"),
    "extend: checkpoint": (["extend", "model", "--tokens", "out.checkpoint", "-o", "out"], "out.checkpoint"),
    "extend: text": (
        ["extend", "model", "--tokens", "text.txt", "--text", "out.checkpoint", "-o", "out"], "out.checkpoint"
    ),
    "inspect: page": (["inspect", "rows.vec", "--html", "rows.vec"], "rows.vec"),
    "inspect: questions": (["inspect", "rows.vec", "--questions", "text.txt", "--missing", "text.txt"], "text.txt"),
    "inspect: one file twice": (["inspect", "rows.vec", "--html", "new.txt", "--missing", "./new.txt"], ""),
    "make: one file twice": (["make", "rows.vec", "-o", "new.npy", "--missing", "new.npy"], ""),
    "make: card": (["make", "rows.vec", "-o", "new.npy", "--missing", "new.npy.card.json"], ""),
    "report: scores": (["report", "scores.csv", "-o", "scores.csv"], "scores.csv"),
    "report: results": (["report", "made.results.json", "-o", "made.results.json", "--format", "json"], "made.results.json"),
    "report: experiment": ([*REPORT, "made.toml"], "made.toml"),
    "report: included": ([*REPORT, "shared.toml"], "shared.toml"),
    "report: data": ([*REPORT, "data/sorting/train.tsv"], "data/sorting/train.tsv"),
    "report: vectors": ([*REPORT, "vectors/small.txt"], "vectors/small.txt"),
    "report: a run": ([*REPORT, "runs/0123456789abcdef/scores.json"], "runs/0123456789abcdef/scores.json"),
    "run: plan": (["run", "jobs.json", "--plan", ".", "--data", "data", "--vectors", "vectors"], "jobs.json"),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with everything that the commands read."""
    folder = tmp_path_factory.mktemp("files")
    rows = np.random.default_rng(1).standard_normal((10, 4)).astype(np.float32)
    write(rows, WORDS, folder / "rows.vec")
    shutil.copy(folder / "rows.vec", folder / "rows.toml")
    for name in ("text.txt", "text.toml", "v.txt.checkpoint", "out.checkpoint"):
        (folder / name).write_text(f"{' '.join(WORDS)}\n" * 60)
    (folder / "linked.toml").hardlink_to(folder / "text.txt")
    splitter = {"model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "w0"}}
    (folder / "tokenizer.toml").write_text(json.dumps(splitter))
    (folder / "scores.csv").write_text("start,seed,bleu\na,1,2.0\na,2,3\nb,1,4\nb,2,5\n")
    experiments.places(folder)
    tables, _, _ = experiments.HEAD.partition("[defaults]")
    (folder / "shared.toml").write_text(tables)
    for name in ("made.toml", "jobs.json"):
        (folder / name).write_text(EXPERIMENT)
    block = reports.block()
    write_compact(reports.experiment(block), reports.results(block), folder / "made.results.json")
    run = folder / "runs" / "0123456789abcdef"
    run.mkdir(parents=True)
    for name in ("run.json", "scores.json"):
        (run / name).write_text("{}")
    (folder / "model").mkdir()
    return folder


@pytest.mark.parametrize("case", CASES)
def test_what_a_command_reads_stays(case: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "files"
    shutil.copytree(files, folder)
    (folder / "linked.toml").unlink()
    (folder / "linked.toml").hardlink_to(folder / "text.txt")
    monkeypatch.chdir(folder)
    words, kept = CASES[case]
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, EmbinitError), done.output
    assert f"{kept} is " in str(done.exception) if kept else "two files of this command" in str(done.exception)
    assert "this command" in str(done.exception)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_report_and_a_plan_beside_the_data_are_written_again(files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "sorting"
    shutil.copytree(files / "data", tmp_path / "data")
    (folder / "made.toml").write_text(
        (files / "shared.toml").read_text().replace('"sorting"', '"."')
        + EXPERIMENT.partition("\n")[2].partition("\n")[2]
    )
    places = ["--data", str(folder), "--vectors", str(files / "vectors"), "--runs", str(tmp_path)]
    for _ in range(2):
        for words in (["report", "-o", str(folder / "report.csv")], ["run", "--plan", str(folder)]):
            done = CliRunner().invoke(app, [words[0], str(folder / "made.toml"), *words[1:], *places])
            assert done.exit_code == 0, (done.output, done.exception)
