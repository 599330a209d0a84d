"""`embinit report` as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.experiments.inputs.outline import read_experiment
from embinit.experiments.runs.registry import record
from tests.reports import made

FILE = """
title = "A small question"
question = "Does it help?"

[defaults]
task = "captions"
model.dim = 16
model.heads = 2
training.epochs = 4

[sources.made]
path = "vectors.txt"
about = "made vectors"
stands_in_for = "GloVe"
dim = 16

[[block]]
name = "captions"
source = "made"
grid.recipe = ["xavier", "pretrained", "pretrained_xavier"]
grid.seed = [1, 2, 3]
"""


def run(folder: Path, *words: object, columns: int = 160) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "embinit", "report", *map(str, words)]
    env = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an experiment, and runs of all of it but one."""
    (tmp_path / "small.toml").write_text(FILE)
    (tmp_path / "vectors.txt").write_text("a " + " ".join("0.1" for _ in range(16)) + "\n")
    (block,) = read_experiment(tmp_path / "small.toml").blocks
    levels = {"xavier": 37.0, "pretrained": 30.0, "pretrained_xavier": 39.0}
    for planned in block.runs[:-1]:
        recipe = planned.axes[0][1]
        made.result(planned.spec, levels[recipe] + made.noise(recipe, planned.spec.seed)).write(tmp_path / "runs")
    return tmp_path


def test_report_writes_the_page_and_prints_the_table_and_where_it_is(folder: Path) -> None:
    done = run(folder, "small.toml")
    assert done.returncode == 0, done.stderr
    assert "A small question" in done.stdout
    assert "(2/3)" in done.stdout
    assert "1 run of 9 is missing." in done.stdout
    assert "made: made vectors; stands in for GloVe" in done.stdout
    assert "written: reports/small.html" in done.stdout
    page = (folder / "reports" / "small.html").read_text("utf-8")
    assert "stands in for GloVe" in page
    assert "embinit run small.toml" in page


def test_lines_of_further_baselines_go_with_the_columns_that_a_narrow_terminal_has_no_room_for(folder: Path) -> None:
    file = folder / "small.toml"
    file.write_text(file.read_text().replace("[defaults]", 'baseline = ["xavier", "pretrained"]\n\n[defaults]', 1))
    wide, narrow = (run(folder, file, columns=columns).stdout.splitlines() for columns in (160, 44))
    first = next(place for place, line in enumerate(wide) if line.startswith("pretrained_xavier"))
    assert wide[first + 1].split()[0] == "pretrained"
    table = narrow[next(place for place, line in enumerate(narrow) if line.startswith("start")) :]
    assert [line.split()[0] for line in table[:4]] == ["start", "xavier", "pretrained", "pretrained_xavier"]
    assert table[4].strip()


def test_a_narrow_terminal_keeps_the_difference_and_names_the_hidden_columns(folder: Path) -> None:
    narrow, wide = (run(folder, "small.toml", columns=columns).stdout for columns in (60, 160))
    (line,) = [line for line in narrow.splitlines() if line.startswith("start")]
    assert line.split() == ["start", "BLEU", "against", "xavier"]
    assert "3 columns are hidden at this width (95 %, p (Holm), validation loss)" in " ".join(narrow.split())
    assert "hidden" not in wide


def test_a_long_name_of_a_start_wraps_and_hides_no_column(folder: Path) -> None:
    file = folder / "small.toml"
    steps = "pretrained | center | scale std=0.02"
    file.write_text(file.read_text().replace('"pretrained_xavier"', f'"{steps}"'))
    for planned in read_experiment(file).blocks[0].runs:
        if planned.axes[0][1] == steps:
            made.result(planned.spec, 39 + made.noise(steps, planned.spec.seed)).write(folder / "runs")
    shown = run(folder, file, columns=80).stdout
    assert "p (Holm)" in next(line for line in shown.splitlines() if line.startswith("start"))


def test_runs_of_a_quick_look_are_counted_until_the_others_are_finished(folder: Path) -> None:
    file, runs = folder / "small.toml", folder / "runs"
    (folder / "runs").rename(folder / "elsewhere")
    quick = [
        replace(planned.spec, training=tuple({**dict(planned.spec.training), "epochs": 2}.items()))
        for planned in read_experiment(file).blocks[0].runs[:6]
    ]
    for spec in quick:
        made.result(spec, 20.0).write(runs)
    record(runs, file, "small", [spec.key for spec in quick], quick=True)
    done = run(folder, file)
    assert "No run is finished yet." in done.stdout
    assert "6 runs of a quick look (2 epochs) are left out." in done.stdout
    for planned in read_experiment(file).blocks[0].runs:
        made.result(planned.spec, 37.0 + made.noise("xavier", planned.spec.seed)).write(runs)
    assert "quick look" not in run(folder, file).stdout


def test_formats_go_into_a_folder_and_one_into_a_file(folder: Path) -> None:
    done = run(folder, "small.toml", "--format", "md,csv,tex,json,svg", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "small-1-curves.svg", "small.csv", "small.json", "small.md", "small.tex",
    ]  # fmt: skip
    assert json.loads((folder / "out" / "small.json").read_text("utf-8"))["name"] == "small"
    for name in ("small.md", "small.tex"):
        assert "stands in for GloVe" in (folder / "out" / name).read_text("utf-8")
    assert run(folder, "small.toml", "-o", "table.md").returncode == 0
    assert (folder / "table.md").read_text("utf-8").startswith("# A small question")


def test_json_is_json_alone(folder: Path) -> None:
    done = run(folder, "small.toml", "--json")
    assert json.loads(done.stdout)["parts"][0]["rows"][0]["series"] == "xavier"
    assert done.stderr == ""


def test_a_small_file_gives_the_same_report(folder: Path) -> None:
    assert run(folder, "small.toml", "--format", "results", "-o", "results/small.json").returncode == 0
    before = json.loads(run(folder, "small.toml", "--json").stdout)
    after = json.loads(run(folder, "results/small.json", "--json").stdout)
    assert after["answer"] == before["answer"]
    assert after["commands"] == before["commands"]
    assert after["parts"][0]["rows"] == before["parts"][0]["rows"]


def test_a_report_never_takes_the_place_of_what_it_is_read_from(folder: Path) -> None:
    assert run(folder, "small.toml", "--format", "results", "-o", "results").returncode == 0
    (folder / "small.json").write_bytes((folder / "results" / "small.results.json").read_bytes())
    before = {name: (folder / name).read_bytes() for name in ("small.toml", "small.json")}
    for words in (
        ("small.toml", "--format", "md", "-o", "small.toml"),
        ("small.toml", "--format", "results", "-o", "small.toml"),
        ("small.json", "-o", "small.json"),
        ("small.json", "--format", "html,json", "-o", "."),
    ):
        done = run(folder, *words)
        assert done.returncode == 2
        assert f"{words[0]} is an input of this command" in done.stderr
        assert not (folder / "small.html").exists()
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_nothing_run_is_a_report_too(folder: Path) -> None:
    (folder / "runs").rename(folder / "elsewhere")
    done = run(folder, "small.toml")
    assert done.returncode == 0, done.stderr
    assert "No run is finished yet." in done.stdout
    assert "1 run of 9 is missing." in run(folder, "small.toml", "--runs", "elsewhere").stdout


def test_a_report_needs_neither_torch_nor_an_extra(folder: Path) -> None:
    blocked = ("torch", "transformers", "matplotlib", "sacrebleu", "scipy", "spacy", "tokenizers")
    code = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
sys.argv = ["embinit", "report", "small.toml", "--format", "html,md,csv,tex,json,results"]
from embinit.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "reports" / "small.html").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("small.toml", "--format", "htm"), "unknown format 'htm'; did you mean 'html'?"),
        (("small.toml", "-o", "x.docx"), "x.docx does not tell a format"),
        (("small.toml", "-o", "x.toml"), "x.toml does not tell a format; choose one with --format: html, md, csv"),
        (("small.toml", "--format", "md,csv", "-o", "x.md"), "x.md is one file, but --format names 2 formats"),
        (("small.toml", "--runs", "absent"), "--runs absent: no such folder"),
        (("small.toml", "--runs", "vectors.txt"), "--runs vectors.txt is a file, not a folder"),
        (("absent.toml",), "no such file: absent.toml"),
        (
            ("scores.csv", "--format", "png", "-o", "out"),
            "png would have curves and sweeps, and a table of scores has none to draw; choose another format: html, md",
        ),
        (("small.toml", "--runs", "empty", "-o", "x.svg"), "the report on small.toml has none to draw"),
        (("absent.json",), "no such file: absent.json"),
    ],
)
def test_wrong_words_are_one_sentence(folder: Path, words: tuple[str, ...], said: str) -> None:
    (folder / "scores.csv").write_text("start,seed,score\nxavier,1,2\nglove,1,3\n")
    (folder / "empty").mkdir()
    done = run(folder, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "reports").exists()


def test_a_picture_of_nothing_is_left_out_beside_other_formats(folder: Path) -> None:
    (folder / "scores.csv").write_text("start,seed,score\nxavier,1,2\nglove,1,3\n")
    done = run(folder, "scores.csv", "--format", "md,svg", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "not written: svg would have curves and sweeps" in done.stderr
    assert [path.name for path in (folder / "out").iterdir()] == ["scores.md"]


def test_the_small_file_of_a_measure_knows_its_experiment(folder: Path) -> None:
    (folder / "paper").mkdir()
    (folder / "paper" / "small.toml").write_text(
        f'kind = "distribution"\n{FILE.replace("vectors.txt", "../vectors.txt")}'
    )
    done = run(folder, "paper/small.toml", "--format", "results", "-o", "out")
    assert done.returncode == 0, done.stderr
    (written,) = (folder / "out").glob("*.json")
    assert json.loads(written.read_text("utf-8"))["file"] == "paper/small.toml"
