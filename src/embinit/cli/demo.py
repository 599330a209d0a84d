"""`embinit demo`: inspect generated vectors and make a matrix from them, without a download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NEEDS_ARGUMENTS = False

_ONSETS = ("b", "br", "d", "f", "fl", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_TOPICS, _WORDS, _DIM = 40, 3_000, 100


def command(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The folder for the files of the demo.")
    ] = Path("embinit-demo"),
) -> None:
    """Inspect generated vectors and make a matrix from them, as you would with GloVe and your own vocabulary.

    The vectors have GloVe's σ of 0.4 and 40 topics. The vocabulary has a few words that the vectors lack.
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
