"""Experiments from the command line, as a person runs them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.experiments.made import BLOCK, HEAD, command, contents, data, environment, vectors, written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data(tmp_path / "data")
    vectors(tmp_path / "vectors")
    written(tmp_path)
    return tmp_path


def places(folder: Path) -> list[object]:
    return ["--runs", folder / "runs", "--data", folder / "data", "--vectors", folder / "vectors"]


def test_dry_run_run_status_and_again(folder: Path) -> None:
    file = folder / "made.toml"
    dry = command("run", file, "--dry-run", *places(folder))
    assert dry.returncode == 0, dry.stderr
    assert "4 runs, 0 done, 4 to train" in dry.stdout
    assert "estimated on cpu:" in dry.stdout
    assert "estimate, not prepared" in dry.stdout
    assert not (folder / "runs").exists()
    ran = command("run", file, *places(folder))
    assert ran.returncode == 0, ran.stderr
    assert "4 runs finished, 0 finished before" in ran.stdout
    assert "pretrained" in ran.stdout
    assert "side by side" in ran.stderr
    assert len(contents(folder / "runs")) == 20
    again = command("run", file, *places(folder), "--json")
    assert json.loads(again.stdout) == {"written": [], "already": 4, "failed": {}, "elsewhere": [], "stopped": False}
    status = command("status", file, *places(folder))
    assert "4 of 4 runs done" in status.stdout
    content = json.loads(command("run", file, "--dry-run", *places(folder), "--json").stdout)
    assert content["estimate"]["runs"] == 0
    assert [line["axes"]["recipe"] for line in content["lines"]] == ["xavier", "pretrained"]


def test_the_sizes_of_a_users_own_splits_are_printed_before_training_and_reported(folder: Path) -> None:
    file = written(folder, BLOCK.replace("[1, 2]", "[1]"))
    for path in [*(folder / "data" / "copying").glob("test.*"), *(folder / "data" / "copying").glob("valid.*")]:
        path.unlink()
    sizes = "6 for validation and 6 for the test were taken from the rows"
    assert sizes in command("run", file, "--dry-run", *places(folder)).stdout
    ran = command("run", file, *places(folder))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.index(sizes) < ran.stderr.index("begins")
    reported = command("report", file, *places(folder), "--format", "md", "-o", folder / "made.md")
    assert reported.returncode == 0, reported.stderr
    assert sizes in (folder / "made.md").read_text("utf-8")


def test_a_plan_is_executed_elsewhere_and_collected(folder: Path) -> None:
    file = folder / "made.toml"
    done = command("run", file, "--plan", folder / "plan", *places(folder))
    assert "4 runs planned (0 finished before)" in done.stdout
    (folder / "plan").rename(folder / "carried")
    executed = command("execute", folder / "carried" / "jobs.json", "--out", folder / "made there")
    assert executed.returncode == 0, executed.stderr
    archive = folder / "back.tar.gz"
    subprocess.run(["tar", "czf", archive, "-C", folder, "made there"], check=True)
    collected = command("collect", archive, "--runs", folder / "runs", "--json")
    assert len(json.loads(collected.stdout)["taken"]) == 4
    assert "4 of 4 runs done" in command("status", file, *places(folder)).stdout
    assert (
        "0 runs planned (4 finished before)" in command("run", file, "--plan", folder / "more", *places(folder)).stdout
    )
    kept = command("report", file, "--format", "results", "-o", folder / "kept", *places(folder))
    assert kept.returncode == 0, kept.stderr
    command("collect", folder / "kept" / "made.results.json", "--runs", folder / "from results")
    there = command("status", file, *places(folder), "--runs", folder / "from results")
    assert "4 of 4 runs done" in there.stdout
    wrong = command("run", file, "--dry-run", "--block", "coping", *places(folder))
    assert "no block has 'coping' in its name; did you mean 'copying'?" in wrong.stderr


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from {module} import main
sys.exit(main())
"""


def test_executing_needs_torch_numpy_safetensors_and_sacrebleu_alone(folder: Path) -> None:
    command("run", folder / "made.toml", "--plan", folder / "plan", *places(folder))
    blocked = (
        "typer", "rich", "click", "spacy", "tokenizers", "transformers", "huggingface_hub", "numba", "pyarrow",
        "matplotlib", "gensim", "ray", "pydantic", "pydantic_core",
    )  # fmt: skip
    line = [
        sys.executable,
        "-c",
        WITHOUT.format(blocked=blocked, module="embinit.experiments.execute"),
        folder / "plan" / "jobs.json",
        "--out",
        folder / "out",
    ]
    done = subprocess.run([*line, "--workers", "1"], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    assert "4 runs finished" in done.stdout


@pytest.mark.parametrize(("library", "purpose"), [("torch", "training"), ("sacrebleu", "scoring translations")])
def test_a_library_that_is_not_installed_is_said_before_anything_is_trained(
    folder: Path, library: str, purpose: str
) -> None:
    command("run", folder / "made.toml", "--plan", folder / "plan", *places(folder))
    said = f"embinit: {purpose} needs {library}: pip install 'embinit[train]'"
    execute = [folder / "plan" / "jobs.json", "--out", folder / "out"]
    for module, words in (
        ("embinit.experiments.execute", execute),
        ("embinit.cli", ["execute", *execute]),
        ("embinit.cli", ["run", folder / "made.toml", *places(folder)]),
    ):
        line = [sys.executable, "-c", WITHOUT.format(blocked=(library,), module=module), *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment())
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, said)
    assert not (folder / "out").exists()
    assert not contents(folder / "runs")


def test_runs_on_changed_text_are_found_with_a_note(folder: Path) -> None:
    file = folder / "made.toml"
    assert command("run", file, *places(folder)).returncode == 0
    note = "4 finished runs found by settings alone"
    assert "by settings alone" not in command("report", file, *places(folder)).stdout
    for words in (["status", file], ["run", file, "--dry-run"]):
        assert note not in command(*words, *places(folder)).stdout
    train = folder / "data" / "copying" / "train.source.txt"
    train.write_text(train.read_text().replace("w1", "w2"))
    for words in (["status", file], ["run", file, "--dry-run"]):
        assert note in command(*words, *places(folder)).stdout
    reported = command("report", file, "-o", folder / "made.html", *places(folder)).stdout
    assert "4 finished runs found by settings alone" in " ".join(reported.split())
    assert "4 runs finished, 0 finished before" in command("run", file, *places(folder)).stdout


def test_a_damaged_run_is_named_after_the_table(folder: Path) -> None:
    file = folder / "made.toml"
    assert command("run", file, *places(folder)).returncode == 0
    scores = min((folder / "runs").glob("*/scores.json"))
    scores.write_text(scores.read_text()[:20])
    again = command("run", file, *places(folder))
    assert again.returncode == 1
    assert f"{scores.parent.name}" in again.stderr
    assert "not counted: " in again.stderr
    silent = command("run", file, "--json", *places(folder))
    assert silent.returncode == 1
    assert json.loads(silent.stdout)["already"] == 4
    # Damaged runs of other experiments do not concern this one.
    shutil.rmtree(scores.parent)
    stranger = folder / "runs" / ("f" * 16)
    stranger.mkdir()
    (stranger / "spec.json").write_text("{")
    (stranger / "run.json").write_text("{}")
    unknown = BLOCK.replace('name = "copying"', 'name = "unknown"\nsource = "missing"')
    written(
        folder,
        unknown + BLOCK,
        HEAD.replace("[tasks.copying]", '[sources.missing]\npath = "missing.txt"\n\n[tasks.copying]'),
    )
    last = command("run", file, *places(folder))
    assert last.returncode == 0, last.stderr
    assert "needs missing.txt" in last.stderr


def test_runs_whose_vectors_have_moved_are_counted(folder: Path) -> None:
    file = folder / "made.toml"
    assert command("run", file, file, *places(folder)).returncode == 0
    (folder / "vectors" / "small.txt").rename(folder / "vectors" / "moved.txt")
    status = command("status", file, *places(folder)).stdout
    assert "needs small.txt" in status
    assert "4 of 4 runs done" in status
    # A run that two blocks share counts once.
    shared = '[[block]]\nname = "random"\nsource = ""\nmodel.dim = 16\nrecipe = "xavier"\ngrid.seed = [1, 2]\n'
    written(folder, shared + BLOCK)
    assert "4 of 4 runs done" in command("status", file, *places(folder)).stdout
    assert json.loads(command("status", file, "--json", *places(folder)).stdout)["runs"] == 4


def test_clean_cannot_ask_for_json(folder: Path) -> None:
    file = folder / "made.toml"
    assert command("run", file, *places(folder)).returncode == 0
    written(folder, BLOCK.replace('"xavier", ', ""))
    refused = command("clean", file, "--json", *places(folder))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "add --yes" in refused.stderr
    assert json.loads(command("clean", file, "--json", "--yes", *places(folder)).stdout)["stale"]


def test_clean_asks_first(folder: Path) -> None:
    file = folder / "made.toml"
    assert command("run", file, *places(folder)).returncode == 0
    assert "nothing to remove" in command("clean", file, *places(folder)).stdout
    written(folder, BLOCK.replace('"xavier", ', ""))
    asked = command("clean", file, *places(folder))
    assert asked.returncode == 1
    assert asked.stdout.count("stale: ") == 2
    assert len(contents(folder / "runs")) == 20
    assert "removed 2" in command("clean", file, "--yes", *places(folder)).stdout
    assert len(contents(folder / "runs")) == 10


@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGINT, 2), pytest.param(signal.SIGTERM, 2, marks=pytest.mark.long), (signal.SIGTERM, 1)],
)
def test_a_signal_stops_after_a_checkpoint_and_says_how_to_go_on(folder: Path, number: int, workers: int) -> None:
    # Long epochs: the signal comes in the middle of one.
    for path in (folder / "data" / "copying").glob("train.*"):
        path.write_text(path.read_text() * 15)
    file = written(folder, head=HEAD.replace("training.epochs = 2", "training.epochs = 3"))
    words = ["run", file, *places(folder), "--workers", workers]
    line = [sys.executable, "-m", "embinit", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(line, text=True, env=environment(), start_new_session=True, **pipes)
    assert process.stderr is not None
    for said in process.stderr:
        if "side by side" in said:
            break
    time.sleep(0.5)
    os.killpg(process.pid, number)  # as a terminal, or `timeout`, does: to every process that was started from here
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "stopping after this step, with a checkpoint" in err
    assert "stopped; to continue: embinit run" in out
    assert "Traceback" not in err
    assert not contents(folder / "runs")
    assert list((folder / "runs").glob(".checkpoints/*/state/*"))
    status = command("status", file, *places(folder))
    assert "stopped: " in status.stdout
    assert command(*words).returncode == 0
    assert len(contents(folder / "runs")) == 20


def test_a_second_signal_stops_at_once(folder: Path) -> None:
    for path in (folder / "data" / "copying").glob("train.*"):
        path.write_text(path.read_text() * 200)
    words = ["run", folder / "made.toml", *places(folder)]
    line = [sys.executable, "-m", "embinit", *map(str, words)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stderr is not None
    for said in process.stderr:
        if "side by side" in said:
            break
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.1)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err


def test_failures_are_said_and_the_code_is_one(folder: Path) -> None:
    file = written(folder, BLOCK + 'training.frozen_rows = "found"\n')
    (folder / "sitecustomize.py").write_text(
        "import embinit.experiments.execution.groups as r\n"
        "def broken(*_):\n    raise RuntimeError('it is broken')\n"
        "r.train_members = broken\n"
    )
    line = [sys.executable, "-m", "embinit", "run", file, *places(folder), "--workers", "1"]
    env = {**environment(), "PYTHONPATH": str(folder)}
    done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 1
    assert "failed, 4 runs: RuntimeError: it is broken" in done.stdout
    status = command("status", file, *places(folder))
    assert "RuntimeError: it is broken" in status.stdout
    assert len(json.loads(command("status", file, *places(folder), "--json").stdout)["failed"]) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "none.toml"], "no such file: none.toml"),
        (["execute", "none.json", "--out", "x"], "none.json is missing"),
        (["report", "none.csv"], "no such file: none.csv"),
        (["report", "README.md"], "README.md is no experiment (.toml)"),
        (["run", "experiments/demo.toml", "--device", "cudaa"], "unknown device 'cudaa'; did you mean 'cuda'?"),
        (["collect", "none"], "no such file or folder: none"),
        (["collect", "none.json"], "no such file: none.json"),
        (["status", "none.toml"], "no such file: none.toml"),
    ],
)
def test_a_wrong_input_is_one_sentence(words: list[str], said: str) -> None:
    done = command(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_report_takes_an_experiment_of_any_ending(folder: Path) -> None:
    file = (folder / "made.toml").rename(folder / "made.conf")
    (folder / "runs").mkdir()
    done = command("report", file, *places(folder), "--format", "csv", "-o", folder / "made.csv")
    assert done.returncode == 0, done.stderr
    assert (folder / "made.csv").is_file()


def test_all_errors_of_a_file_are_said_before_anything_starts(folder: Path) -> None:
    file = written(folder, BLOCK + "model.head = 3\ntraining.epoch = 2\n")
    done = command("run", file, *places(folder))
    assert done.returncode == 2
    assert "unknown key 'head'; did you mean 'heads'?" in done.stderr
    assert "unknown key 'epoch'; did you mean 'epochs'?" in done.stderr
    assert not (folder / "runs").exists()


def test_nothing_that_can_be_run_is_said(folder: Path) -> None:
    (folder / "none").mkdir()
    done = command("run", folder / "made.toml", "--runs", folder / "runs", "--data", folder / "none")
    assert done.returncode == 2
    assert "not run: made: copying: needs copying" in done.stderr
    assert f"{folder / 'none' / 'copying'}" in done.stderr
    assert "nothing can be run here" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--data", "none"], "--data none: no such folder"),
        (["run", "--vectors", "made.toml"], "--vectors made.toml: no such folder"),
        (["run", "--runs", "made.toml"], "--runs made.toml is a file, not a folder"),
        (["status", "--runs", "none"], "--runs none: no such folder"),
        (["status", "--runs", "runs"], "--runs runs: no such folder"),
        (["clean", "--runs", "made.toml"], "--runs made.toml is a file, not a folder"),
    ],
)
def test_a_place_that_is_asked_for_must_be_there(folder: Path, words: list[str], said: str) -> None:
    before = sorted(folder.iterdir())
    line = [sys.executable, "-m", "embinit", words[0], "made.toml", *words[1:]]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, env=environment())
    assert (done.returncode, done.stderr) == (2, f"embinit: {said}\n")
    assert sorted(folder.iterdir()) == before


def test_what_only_looks_makes_no_folder_of_runs(folder: Path) -> None:
    before = sorted(folder.iterdir())
    for name, said in (("status", "0 of 4 runs done"), ("clean", "nothing to remove")):
        line = [sys.executable, "-m", "embinit", name, "made.toml", *map(str, places(folder)[2:])]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, env=environment())
        assert said in done.stdout
        assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("damaged", ["vectors/other.txt", "data/sorting/train.tsv"])
def test_what_is_here_and_cannot_be_read_is_said_and_the_others_run(folder: Path, damaged: str) -> None:
    block = '[[block]]\nname = "{}"\nrecipe = "pretrained"\n{}\n'
    other = block.format("other", 'task = "sorting"\nsource = "other"')
    file = written(folder, block.format("sound", "") + other)
    path = folder / damaged
    path.write_bytes(bytes(range(256)) * 40)
    done = command("run", file, *places(folder))
    assert done.returncode == 1, done.stderr
    assert "1 run finished" in done.stdout
    assert "1 x 16: 1 run begins" in done.stderr
    assert "1 x 16: 1 run done, 1 of 1" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("failed: made: other: cannot be prepared: ")
    assert path.name in last
    assert command("run", file, "--plan", folder / "plan", *places(folder)).returncode == 1
    path.unlink()
    left_out = command("run", file, *places(folder))
    assert left_out.returncode == 0, left_out.stderr
    assert "not run: made: other: " in left_out.stderr


def test_a_measure_trains_nothing(folder: Path) -> None:
    file = written(folder, head=f'kind = "distribution"\n{HEAD}')
    done = command("run", file, *places(folder))
    assert done.returncode == 0, done.stderr
    content = json.loads((folder / "runs" / "measured" / "made.json").read_text())
    rows = content["blocks"][0]["rows"]
    assert [row["axes"].get("recipe") for row in rows] == ["xavier", "xavier", "pretrained", "pretrained", None]
    assert rows[2]["sides"]["source"]["scaled"]["std"] == pytest.approx(4 * rows[2]["sides"]["source"]["std"])
    assert rows[4]["positions"]["max"] == pytest.approx(1, abs=1e-3)
    assert not contents(folder / "runs")


def test_the_analogy_test_is_a_measure(folder: Path) -> None:
    (folder / "data" / "questions.txt").write_text(
        ": made\n" + "".join(f"W{i} W{i + 1} W{i + 2} W{i + 3}\n" for i in range(2, 7))
    )
    block = '[[block]]\nname = "x"\nrecipe = "pretrained"\nquestions = "questions.txt"\ndraws = 2\n'
    head = HEAD.replace("lower = false", "lower = true")
    file = written(folder, block, f'kind = "analogy"\n{head}')
    done = command("run", file, *places(folder))
    assert done.returncode == 0, done.stderr
    rows = json.loads((folder / "runs" / "measured" / "made.json").read_text())["blocks"][0]["rows"]
    assert len(rows) == 7
    assert {row["asked"] for row in rows} == {5}
    assert len(rows[2]["right"]) == 2
