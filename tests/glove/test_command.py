"""`embinit glove` as a person runs it."""

from __future__ import annotations

import gzip
import json
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from embinit.sources.load import load
from tests.glove.commanded import command
from tests.glove.topical import COMMON, TOPICS, WORDS, topical_text

SMALL = ("--dim", 6, "--epochs", 3, "--threads", 1)


def run(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*words), input=stdin, capture_output=True, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress("\n".join(topical_text(500)).encode()))
    return path


def test_it_writes_vectors_and_tells_what_it_did(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "v.txt"
    done = run(text, *SMALL, "-o", out)
    assert done.returncode == 0, done.stderr
    words = TOPICS * WORDS + COMMON
    assert f"{words} words x 6 dimensions, from 5,000 tokens and " in " ".join(done.stdout.split())
    assert len(done.stdout.partition("loss by epoch: ")[2].splitlines()[0].split()) == 3
    assert f"wrote {out}" in done.stdout
    assert "nearest" in done.stdout
    assert done.stderr == ""
    read = load(str(out))
    assert read.vectors.shape == (words, 6)
    assert read.tokens[0].startswith("common")
    assert list(out.parent.iterdir()) == [out]


def test_json_is_json_alone_and_stdin_is_a_text(text: Path, tmp_path: Path) -> None:
    content = gzip.decompress(text.read_bytes())
    done = run("-", *SMALL, "--json", "-o", tmp_path / "piped.txt", stdin=content)
    told = json.loads(done.stdout)
    assert told["words"] == TOPICS * WORDS + COMMON
    assert told["tokens"] == 5000
    assert told["losses"] == sorted(told["losses"], reverse=True)
    assert len(told["neighbours"]) == 6
    assert run(text, *SMALL, "-o", tmp_path / "read.txt").returncode == 0
    assert (tmp_path / "piped.txt").read_bytes() == (tmp_path / "read.txt").read_bytes()


def test_tokens_with_white_space_are_left_out_and_counted(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    (tmp_path / "text.txt").write_text("ein Satz,  der  Lücken hat\n" * 9, encoding="utf-8")
    done = run(tmp_path / "text.txt", "--tokenizer", "spacy:de", *SMALL, "-o", tmp_path / "v.txt")
    assert "left out: 1 token that a line of text cannot hold (' ')" in done.stdout
    assert {line.split()[0] for line in (tmp_path / "v.txt").read_text("utf-8").splitlines()} == {
        "ein", "Satz", ",", "der", "Lücken", "hat",
    }  # fmt: skip


def test_left_only_counts_half(text: Path, tmp_path: Path) -> None:
    def pairs(*more: str) -> int:
        return int(json.loads(run(text, *SMALL, "--json", *more, "-o", tmp_path / "v.txt").stdout)["pairs"])

    assert pairs("--left-only") < pairs()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{text}", "--dim", "0"], "--dim is 0; it must be 1 or more"),
        (["{text}", "--min-count", "100000"], "text.txt.gz has no word that occurs at least 100000 times"),
        (["{folder}/empty"], "empty is empty: there is no word in it"),
        (["{folder}/none.txt"], "no such text file: "),
        (["{folder}/latin"], "latin, line 2"),
        (["{text}", "--tokenizer", "whitespaces"], "unknown tokenizer 'whitespaces'; did you mean 'whitespace'?"),
        (["{text}", "-o", "{folder}"], "is a folder; give the name of a file"),
        (["{text}", "-o", "{folder}/empty/v.txt"], "cannot write "),
        (["{text}", "--lr", "-1"], "--lr is -1.0; it must be a number above 0"),
        (["-"], "stdin is empty: there is no word in it"),
    ],
)
def test_wrong_input_is_one_sentence(text: Path, tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "latin").write_bytes(b"good\nf\xfcr\n")
    asked = [word.format(text=text, folder=tmp_path) for word in words]
    done = run(*asked, *([] if "-o" in asked else ["-o", tmp_path / "v.txt"]))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("embinit: ") and done.stderr.count("\n") == 1
    assert sentence in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "latin", "text.txt.gz"]


def test_a_closed_stdin_is_one_sentence(tmp_path: Path) -> None:
    line = f"exec {shlex.join(command('-', *SMALL, '-o', tmp_path / 'v.txt'))} <&-"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("embinit: stdin is closed") and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("checkpoint", ["none", "left", "given up"])
def test_ctrl_c_names_the_checkpoint_where_one_is_gone_on_from(checkpoint: str, tmp_path: Path) -> None:
    if checkpoint != "none":
        (tmp_path / "v.txt.checkpoint").touch()
    fresh = ["--fresh"] if checkpoint == "given up" else []
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "bufsize": 0}
    process = subprocess.Popen(
        command("-", "-o", tmp_path / "v.txt", *fresh),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **pipes,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"more than a pipe holds\n" * 10_000)  # goes on when the command reads
    process.send_signal(signal.SIGINT)
    tail = b"; run the same command again to continue from the last checkpoint" if checkpoint == "left" else b""
    assert process.stderr.read() == b"stopped" + tail + b"\n"
    assert process.wait(timeout=60) == 130
    process.stdin.close()


@pytest.mark.parametrize("library", ["numba", "scipy"])
def test_a_missing_library_is_one_sentence_before_anything_is_read(library: str, tmp_path: Path) -> None:
    words = command(tmp_path / "none.txt", "-o", tmp_path / "v.txt")
    words[2] = f"import sys; sys.modules[{library!r}] = None\n{words[2]}"
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"embinit: training word vectors needs {library}: pip install 'embinit[glove]'\n"


def test_help_names_every_option() -> None:
    shown = run("--help").stdout
    for option in ("dim", "window", "epochs", "min-count", "tokenizer", "lower", "x-max", "alpha", "lr", "threads"):
        assert f"--{option}" in shown
