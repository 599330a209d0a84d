"""The commands as a person runs them: what they print, write, and say to wrong input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import embinit
import embinit.__main__
from tests.cli.running import run


def test_make_writes_the_matrix_its_tokens_and_a_card(glove_file: Path, vocabulary: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "embedding.safetensors"
    done = run("make", glove_file, "--vocab", vocabulary, "-o", out, "--seed", 3, "--fill", "mean")
    assert done.returncode == 0, done.stderr
    card = json.loads(out.with_name(out.name + ".card.json").read_text())
    assert card["seed"] == 3
    assert card["recipe"] == {
        "name": "pretrained_xavier",
        "steps": "pretrained | center | scale to=xavier",
        "fill": "mean",
    }
    assert card["coverage"]["matches"]["exact"] == 300
    assert card["before"]["std"] == pytest.approx(0.4, rel=0.02)
    back = embinit.load(out)
    assert list(back.tokens)[:3] == ["<unk>", "<pad>", "w0"]
    aligned = embinit.align(glove_file, embinit.Vocabulary(tuple(back.tokens), specials=frozenset(("<unk>", "<pad>"))))
    expected = embinit.recipe("pretrained_xavier", "mean")(aligned, embinit.stream(3, "matrix"))
    assert (back.vectors == expected).all()


def test_make_from_text(glove_file: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("W1 w2 w1\nw3 W2 unseen\n")
    out = tmp_path / "made.vec"
    done = run("make", glove_file, "--text", text, "--lower", "--min-count", 2, "--recipe", "pretrained", "-o", out)
    assert done.returncode == 0, done.stderr
    assert list(embinit.load(out).tokens) == ["<unk>", "<pad>", "<bos>", "<eos>", "w1", "w2"]


def test_apply_puts_a_matrix_into_a_model(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    model = tmp_path / "model"
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=6, **sizes)).save_pretrained(model)
    (model / "vocab.txt").write_text("[PAD]\n[UNK]\nw0\nw1\n##x\n##y\n")
    vectors = tmp_path / "rows.txt"
    vectors.write_text("".join(f"w{i} {' '.join([f'{i}.5'] * 24)}\n" for i in range(3)))
    raw = ("--recipe", "pretrained")
    done = run("apply", vectors, model, "-o", tmp_path / "out", "--json", *raw)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert (content["replaced"], content["specials_kept"], content["others_kept"], content["rows"]) == (2, 2, 2, 6)
    rows = embinit.load(tmp_path / "out", wanted={"w0", "w1"}).vectors
    assert (rows[:, 0] == [0.5, 1.5]).all()
    resized = run("apply", vectors, model, "-o", tmp_path / "resized", "--resize", "--json", *raw)
    assert json.loads(resized.stdout)["replaced"] == json.loads(resized.stdout)["rows"] == 3


def test_analogy_and_table_4(glove_file: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text(
        ": made\n" + "\n".join(f"w{i} w{i + 1} w{i + 2} w{i + 3}" for i in range(20)) + "\nnot in the file"
    )
    done = run("analogy", glove_file, "-q", questions, "--json")
    assert json.loads(done.stdout)["total"]["asked"] == 20
    table = json.loads(run("analogy", glove_file, "-q", questions, "--table4", "--draws", 2, "--json").stdout)
    assert len(table) == 7
    assert [len(row["right"]) for row in table] == [1, 1, 2, 1, 1, 2, 2]
    assert "20 of 21 questions" in run("analogy", glove_file, "-q", questions, "--method", "3cosmul").stdout


def test_recipes_and_fetch_list_what_there_is() -> None:
    listed = run("recipes").stdout
    for name in ("pretrained_xavier", "Eq. 1", "all_but_the_top", "subword", "fairseq"):
        assert name in listed
    assert json.loads(run("recipes", "--json").stdout)["recipes"]["xavier"]["paper"] == "Sec. 3.1"
    assert "glove:840B" in run("fetch").stdout


def test_demo_runs_the_whole_way(tmp_path: Path) -> None:
    done = run("demo", "--short", "-o", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert "Standardize these vectors" in done.stdout
    assert "Use these vectors as they are" in done.stdout
    assert (tmp_path / "demo" / "embedding.safetensors").is_file()


# ---------------------------------------------------------------- wrong input

WRONG = {
    "no such file": (["inspect", "nowhere/glove.txt"], "no such file: nowhere/glove.txt"),
    "close name": (["inspect", "{folder}/glvoe.txt"], "did you mean 'glove.txt'?"),
    "empty file": (["inspect", "{folder}/empty"], "is empty"),
    "prose": (["inspect", "{folder}/prose"], "line 1: 'It was a dark night'"),
    "a picture": (["inspect", "{folder}/picture"], "is a picture"),
    "pickle": (["inspect", "{folder}/pickle"], "is a pickle"),
    "recipe": (["inspect", "{glove}", "--recipe", "pretrained_xaver"], "did you mean 'pretrained_xavier'?"),
    "model": (["inspect", "{glove}", "--model", "brt"], "unknown model 'brt'; did you mean 'bert'?"),
    "task": (
        ["inspect", "{glove}", "--task", "clasify"],
        "unknown kind of task 'clasify'; choose one of classification",
    ),
    "vocab": (["inspect", "{glove}", "--vocab", "nowhere"], "no such vocabulary: nowhere"),
    "lower alone": (["inspect", "{glove}", "--lower"], "--lower needs --text"),
    "equal numbers": (["inspect", "{folder}/equal"], "all numbers are equal"),
    "both": (["inspect", "{glove}", "--vocab", "{glove}", "--text", "{glove}"], "--vocab or --text, not both"),
    "text": (["inspect", "{glove}", "--text", "nowhere"], "no such text file: nowhere"),
    "text folder": (["inspect", "{glove}", "--text", "{folder}"], "is a folder; give the text files in it"),
    "glove folder": (["glove", "{folder}", "-o", "{folder}/x.txt"], "is a folder; give the text files in it"),
    "questions folder": (["analogy", "{glove}", "-q", "{folder}"], "is a folder; give the text files in it"),
    "prepare's tokenizer": (
        ["prepare", "captions", "--size", "100", "--tokenizer", "nope", "-o", "{folder}/prepared"],
        "unknown tokenizer 'nope'; choose one of",
    ),
    "tokenizer": (["inspect", "{glove}", "--text", "{glove}", "--tokenizer", "spcy:en"], "did you mean 'spacy:en'?"),
    "dim": (
        ["inspect", "{glove}", "--dim", "7"],
        "has 24 dimensions, but the model has 7; choose a projection: project='orthogonal' or 'pca'",
    ),
    "project": (
        ["inspect", "{glove}", "--project", "pca"],
        "for example dim=768, or --dim 768 on the command line",
    ),
    "plot": (["inspect", "{glove}", "--plot", "{folder}/x.jpeg"], "x.jpeg; the name must end in .png, .svg, .pdf"),
    "ending": (["make", "{glove}", "-o", "{folder}/x"], "which format?"),
    "format": (["make", "{glove}", "-o", "{folder}/x", "-f", "glov"], "did you mean 'glove'?"),
    "fill": (["make", "{glove}", "-o", "{folder}/x.npy", "--fill", "zero"], "did you mean 'zeros'?"),
    "folder": (["make", "{glove}", "-o", "{folder}/taken.npy"], "taken.npy is a folder"),
    "no model": (["apply", "{glove}", "{folder}", "-o", "{folder}/out"], "is no model folder"),
    "questions": (["analogy", "{glove}", "-q", "{glove}"], "an analogy has four"),
    "name": (["fetch", "glove:840"], "did you mean 'glove:840B'?"),
    "not fetched": (["inspect", "glove:840B"], "run: embinit fetch glove:840B"),
    "nothing found": (
        ["make", "{glove}", "--vocab", "{folder}/prose", "-o", "{folder}/x.npy"],
        "no token of the vocabulary",
    ),
    "unknown option": (["inspect", "{glove}", "--lowr"], "--lower"),
    "unknown command": (["inspct", "{glove}"], "inspect"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence_and_exit_code_2(case: str, glove_file: Path) -> None:
    folder = glove_file.parent
    (folder / "empty").touch()
    (folder / "prose").write_text("It was a dark night\nand nobody spoke\n")
    (folder / "equal").write_text("a 1 1\nb 1 1\n")
    (folder / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "pickle").write_bytes(b"\x80\x04\x95" + bytes(50))
    (folder / "taken.npy").mkdir()
    words, sentence = WRONG[case]
    before = {path.name for path in folder.iterdir()}
    env = {"EMBINIT_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    done = run(*(word.format(glove=glove_file, folder=folder) for word in words), env=env)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    if "unknown" not in case:
        assert done.stderr.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before


def test_ctrl_c_is_one_word_and_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    row = " ".join(f"0.{i}5" for i in range(300))
    with path.open("w") as out:
        out.writelines(f"w{i} {row}\n" for i in range(60_000))
    command = [sys.executable, "-m", "embinit", "make", str(path), "-o", str(tmp_path / "out.txt")]
    # What a shell starts in the background ignores Ctrl-C, and hands that down to its children.
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.txt*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == "stopped\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["large.txt"]


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "{glove}", "--vocab", "{pipe}"],
        ["make", "{glove}", "--vocab", "{pipe}", "-o", "{folder}/x.npy"],
        ["analogy", "{glove}", "--vocab", "{pipe}", "--questions", "{folder}/questions"],
        ["run", "{pipe}"],
    ],
)
def test_ctrl_c_is_one_word_wherever_a_command_is(words: list[str], glove_file: Path) -> None:
    pipe = glove_file.with_name("pipe")
    os.mkfifo(pipe)
    glove_file.with_name("questions").write_text("w1 w2 w3 w4\n")
    given = [word.format(glove=glove_file, pipe=pipe, folder=glove_file.parent) for word in words]
    process = subprocess.Popen(
        [sys.executable, "-m", "embinit", *given],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    writer, deadline = None, time.monotonic() + 60
    while writer is None and process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # until the command reads it
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)
    assert writer is not None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    os.close(writer)
    assert (process.returncode, printed) == (130, "stopped\n")


def test_ctrl_c_while_modules_are_imported_is_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "embinit.cli", Interrupted("embinit.cli"))
    with pytest.raises(SystemExit) as ended:
        embinit.__main__.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "stopped\n")


@pytest.mark.parametrize("words", [["recipes"], ["recipes", "--json"], ["inspect", "{glove}"], ["--help"]])
def test_a_pipe_that_nobody_reads_is_no_error(words: list[str], glove_file: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "embinit", *(word.format(glove=glove_file) for word in words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


def test_version() -> None:
    assert run("--version").stdout.strip() == f"embinit {embinit.__version__}"


def test_an_input_is_never_overwritten(glove_file: Path, vocabulary: Path, tmp_path: Path) -> None:
    matrix = tmp_path / "made.npy"
    assert run("make", glove_file, "--vocab", vocabulary, "-o", matrix).returncode == 0
    tokens = matrix.with_name("made.npy.tokens.json")
    before = {path: path.read_bytes() for path in (glove_file, vocabulary, tokens)}
    for words in (
        ("make", glove_file, "--vocab", tokens, "-o", matrix, "--recipe", "pretrained"),
        ("make", glove_file, "--text", matrix.with_name("made.npy.card.json"), "-o", matrix),
        ("make", glove_file, "-o", glove_file),
        ("make", glove_file, "--vocab", vocabulary, "-o", vocabulary, "--format", "glove"),
        ("glove", vocabulary, "-o", vocabulary),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert "is an input of this command" in done.stderr
    assert {path: path.read_bytes() for path in before} == before
    text = run("make", glove_file, "--vocab", tokens, "-o", matrix, "--format", "glove")
    assert text.returncode == 0, text.stderr  # this format writes no tokens beside it


@pytest.mark.parametrize("command", ["inspect", "recipes"])
def test_a_locale_without_sigma_does_not_matter(command: str, glove_file: Path) -> None:
    done = run(command, *([glove_file] if command == "inspect" else []), env={"LC_ALL": "C", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr


def test_a_models_folder_says_its_dimension(glove_file: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "bert", "hidden_size": 32}')
    done = run("make", glove_file, "--model", tmp_path / "model", "-o", tmp_path / "x.npy")
    assert done.returncode == 2
    assert "has 24 dimensions, but the model has 32" in done.stderr
    assert (
        run("make", glove_file, "--model", tmp_path / "model", "--project", "pad", "-o", tmp_path / "x.npy").returncode
        == 0
    )
    assert np.load(tmp_path / "x.npy").shape[1] == 32


def test_a_full_disk_and_too_much_memory_are_one_sentence(glove_file: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "embinit", "inspect", str(glove_file)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    done = run("inspect", glove_file, "--dim", 10**9, "--project", "pad")
    assert done.returncode == 2
    assert "not enough memory" in done.stderr
