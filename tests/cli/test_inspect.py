"""`embinit inspect` as a person runs it: what it says, and whether the commands that it prints do it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.running import run


def test_inspect_says_what_to_do_and_its_command_does_it(glove_file: Path, vocabulary: Path, tmp_path: Path) -> None:
    done = run("inspect", glove_file, "--vocab", vocabulary)
    assert done.returncode == 0, done.stderr
    assert "Standardize these vectors" in done.stdout
    assert "model tutorial (the default" in " ".join(done.stdout.split())
    assert "task translation (the default" in " ".join(done.stdout.split())
    assert all(len(line) <= 80 for line in done.stdout.splitlines()[1:] if "embinit make" not in line)
    (line,) = [line for line in done.stdout.splitlines() if "embinit make" in line]
    assert run(*shlex.split(line)[1:-1], tmp_path / "made.npy").returncode == 0
    matrix = np.load(tmp_path / "made.npy")
    assert matrix.shape == (303, 24)
    assert matrix.std() == pytest.approx((2 / 327) ** 0.5, rel=0.01)


def test_labels_and_numbers_are_whole_in_a_narrow_terminal(glove_file: Path) -> None:
    def printed(columns: int) -> str:
        done = run("inspect", glove_file, env={"COLUMNS": str(columns)})
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("rows and positions in")[0].partition("pretrained ")[2]

    narrow, wide = printed(40), printed(100)
    assert [line.split()[0] for line in narrow.splitlines() if line.startswith(("rows", "Xavier", "positions"))] == [
        *("rows", "Xavier,", "positions"),
        *("rows", "Xavier,", "positions"),
    ]
    (numbers,) = [line.split()[1:] for line in wide.splitlines() if line.startswith("rows ")]
    assert len(numbers) == 6
    assert [word for line in narrow.splitlines() if line.startswith("rows ") for word in line.split()[1:]] == numbers


def test_inspect_advises_a_classifier_otherwise_and_its_command_does_it(tmp_path: Path) -> None:
    wide, made = np.random.default_rng(0).standard_normal((300, 24)), tmp_path / "wide.txt"
    made.write_text("".join(f"w{i} {' '.join(f'{x:.4f}' for x in row)}\n" for i, row in enumerate(wide)))
    done = run("inspect", made, "--task", "classification")
    assert done.returncode == 0, done.stderr
    assert "Standardize these vectors, and train them at a tenth" in " ".join(done.stdout.split())
    assert "\ntask        classification  " in done.stdout
    learned = " ".join(run("inspect", made, "--task", "classification", "--model", "bert").stdout.split())
    assert "task classification (the advice depends on it only with sinusoidal positions)" in learned
    assert "task" not in run("inspect", made, "--model", "llama").stdout
    text = " ".join(run("inspect", made, "--task", "language_model", "--model", "gpt2").stdout.split())
    assert "task language_model recipe" in text, "no run of a language model has tested what the advice depends on"
    line, larger = (line for line in done.stdout.splitlines() if "embinit make" in line)
    assert "--recipe 'pretrained | center | scale ratio=1.4' --out embedding-full-rate.safetensors" in larger
    told = json.loads(run("inspect", made, "--task", "classification", "--json").stdout)
    assert (told["command"], told["command_at_full_rate"]) == (line.strip(), larger.strip())
    assert run(*shlex.split(line)[1:-1], tmp_path / "made.npy").returncode == 0
    matrix = np.load(tmp_path / "made.npy")
    assert matrix.std() == pytest.approx((2 / sum(matrix.shape)) ** 0.5, rel=0.01)
    advised = "torch.optim.Adam(embinit.parameter_groups(model, model.embedding, lr=1e-4, rate=0.1))"
    assert advised in done.stdout
    assert "parameter_groups" not in run("inspect", made).stdout
    assert "parameter_groups" not in run("inspect", made, "--recipe", "pretrained_xavier").stdout
    # Also where nothing needs to be done to the rows.
    fits = run("inspect", made, "--recipe", "pretrained_xavier", "--task", "classification").stdout
    assert "Use these vectors as they are" in fits
    assert advised in fits
    # Whoever has one rate keeps a size that suits it, whatever made it.
    own = "pretrained | scale ratio=1.4"
    kept = json.loads(run("inspect", made, "--recipe", own, "--task", "classification", "--json").stdout)["verdict"]
    assert (kept["recipe"], kept["at_full_rate"]) == ("pretrained_xavier", own)


def test_inspect_gives_one_command_where_both_rates_want_the_same(tmp_path: Path) -> None:
    # Of so few rows Xavier's σ is as large as classifiers want theirs at the full rate.
    made = tmp_path / "few.txt"
    few = np.random.default_rng(0).standard_normal((40, 24)) * (2 / 64) ** 0.5
    made.write_text("".join(f"w{i} {' '.join(f'{x:.4f}' for x in row)}\n" for i, row in enumerate(few)))
    told = json.loads(run("inspect", made, "--task", "classification", "--json").stdout)
    assert told["verdict"]["recipe"] == told["verdict"]["at_full_rate"] == "pretrained"
    assert told["command_at_full_rate"] is None
    assert "embedding-full-rate" not in run("inspect", made, "--task", "classification").stdout


def test_inspect_keeps_the_fill_of_your_own_recipe(glove_file: Path, vocabulary: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('[mine]\nsteps = ["pretrained"]\nfill = "mean"\n')
    told = json.loads(run("inspect", glove_file, "--vocab", vocabulary, "--recipe", f"{own}::mine", "--json").stdout)
    assert " --fill mean " in told["command"]
    assert "--fill" not in json.loads(run("inspect", glove_file, "--vocab", vocabulary, "--json").stdout)["command"]


def test_inspect_json_prints_only_json(glove_file: Path, vocabulary: Path) -> None:
    done = run("inspect", glove_file, "--vocab", vocabulary, "--json")
    content = json.loads(done.stdout)
    assert content["verdict"]["recipe"] == "pretrained_xavier"
    assert content["vocabulary"]["matches"]["missing"] == 1
    assert content["command"].startswith("embinit make ")
    assert done.stderr == ""


def test_inspect_with_questions_and_a_picture(glove_file: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text(": made\n" + "\n".join(f"w{i} w{i + 1} w{i + 2} w{i + 3}" for i in range(20)))
    picture = tmp_path / "picture.png"
    done = run("inspect", glove_file, "--questions", questions, "--plot", picture)
    assert "of 20 right" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_inspect_counts_what_it_could_not_read(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("a 1 2 3\nb 4 5\nc 6 nan 7\na 8 9 9\n" + "".join(f"w{i} {i} 1 2\n" for i in range(60)))
    printed = run("inspect", path).stdout
    assert "duplicates: 1" in printed
    assert "line 2: 2 numbers, expected 3" in printed
    assert "line 3: 'nan' is NaN or infinite" in printed


def test_a_file_that_is_cut_short_is_a_warning_before_everything_else(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 12)).astype("<f4")
    path = tmp_path / "cut.bin"
    path.write_bytes(b"3000 12\n" + b"".join(b"w%d " % i + row.tobytes() + b"\n" for i, row in enumerate(rows)))
    (tmp_path / "tokens.txt").write_text("\n".join(f"w{i}" for i in range(60)))
    for words in (("inspect", path), ("make", path, "--vocab", tmp_path / "tokens.txt", "-o", tmp_path / "out.npy")):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stdout.split())
        assert text.startswith("warning: ")
        assert "holds 40 of the 3,000 rows" in text
        (warning,) = json.loads(run(*words, "--json").stdout)["warnings"]
        assert "cut short" in warning
