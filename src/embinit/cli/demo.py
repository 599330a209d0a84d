"""`embinit demo`: inspect generated vectors, make a matrix from them, and compare starts, without a download."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.format import listed

if TYPE_CHECKING:
    from rich.console import Console

NEEDS_ARGUMENTS = False

_ONSETS = ("b", "br", "d", "f", "fl", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_TOPICS, _WORDS, _DIM = 40, 3_000, 100
#: What the experiment needs besides the base installation.
_LIBRARIES = ("torch", "sacrebleu", "spacy", "numba", "scipy")


def command(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The folder for the files of the demo.")
    ] = Path("embinit-demo"),
    short: Annotated[bool, typer.Option("--short", help="Stop before the experiment, which takes minutes.")] = False,
) -> None:
    """Inspect generated vectors, make a matrix from them, and run an experiment that shows which start is best.

    The vectors of the first part have GloVe's σ of 0.4 and 40 topics. The vocabulary has a few words that the vectors lack.
    The experiment trains a small translator of generated captions. It needs the extras train, spacy and glove; without
    them the demo prints the line that installs them.

    embinit demo --short
    """
    from embinit.cli import inspect, make
    from embinit.cli.console import console

    vectors, vocabulary = out / "vectors.txt", out / "vocabulary.txt"
    _write_data(vectors, vocabulary)
    screen = console()
    screen.print(f"[dim]$ embinit inspect {vectors} --vocab {vocabulary}[/]\n", soft_wrap=True)
    inspect.command(str(vectors), vocab=vocabulary)
    matrix = out / "embedding.safetensors"
    screen.print(
        f"\n[dim]$ embinit make {vectors} --vocab {vocabulary} --recipe pretrained_xavier --out {matrix}[/]\n",
        soft_wrap=True,
    )
    make.command(str(vectors), out=matrix, vocab=vocabulary, recipe="pretrained_xavier")
    screen.print(f"\n[dim]$ embinit inspect {matrix}[/]\n")
    inspect.command(str(matrix))
    if not short:
        _compare_starts(out, screen)


def _compare_starts(out: Path, screen: Console) -> None:
    """Run the experiment that ships with the package, and report on it; print the install line if a library is missing."""
    from embinit.cli import report, run
    from embinit.files import replacing

    experiment, runs = out / "demo.toml", out / "runs"
    with replacing(experiment) as file:
        file.write(files("embinit.experiments").joinpath("demo.toml").read_bytes())
    if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
        screen.print(
            f"\nThe second part of the demo trains a small translator from four starts. It needs {listed(missing)}:\n\n"
            f"  pip install 'embinit[train,spacy,glove]'\n  embinit demo --out {out}",
            markup=False,
            soft_wrap=True,
        )
        return
    screen.print(f"\n[dim]$ embinit run {experiment} --runs {runs}[/]\n", soft_wrap=True)
    run.command([experiment], runs=runs)
    screen.print(f"\n[dim]$ embinit report {experiment} --runs {runs} --out {out}[/]\n", soft_wrap=True)
    report.command(experiment, runs=runs, out=out)


def _write_data(vectors: Path, vocabulary: Path) -> None:
    """Write words with vectors near the center of their topic, and a vocabulary with 200 more words."""
    import numpy as np

    from embinit.files import replacing
    from embinit.seeds import stream

    rng = stream(0, "demo")
    words: dict[str, None] = {}  # an ordered set
    while len(words) < _WORDS + 200:
        syllables = rng.integers(1, 4)
        words["".join(str(rng.choice(_ONSETS)) + str(rng.choice(_VOWELS)) for _ in range(syllables))] = None
    topics = rng.standard_normal((_TOPICS, _DIM))
    rows = 0.28 * topics[rng.integers(0, _TOPICS, _WORDS)] + 0.28 * rng.standard_normal((_WORDS, _DIM))
    with replacing(vectors) as out:
        for word, row in zip(words, rows.astype(np.float32), strict=False):
            out.write(f"{word} {' '.join(f'{value:.5g}' for value in row)}\n".encode())
    with replacing(vocabulary) as out:
        out.write("\n".join(["<unk>", "<pad>", "<bos>", "<eos>", *words]).encode() + b"\n")
