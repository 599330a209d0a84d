"""`embinit demo`: the whole way on generated vectors, with nothing downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

NEEDS_ARGUMENTS = False

_ONSETS = ("b", "br", "d", "f", "fl", "g", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_TOPICS, _WORDS, _DIM = 40, 3_000, 100


def command(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the demo's files go.")] = Path(
        "embinit-demo"
    ),
) -> None:
    """Inspect generated vectors and make a matrix from them, as you would with GloVe and your vocabulary.

    The vectors have GloVe's σ of 0.4 and forty topics; the vocabulary has a few words that they lack.
    """
    from embinit.cli import inspect, make
    from embinit.cli.console import console

    vectors, vocabulary = out / "vectors.txt", out / "vocabulary.txt"
    _generate(vectors, vocabulary)
    screen = console()
    screen.print(f"[dim]$ embinit inspect {vectors} --vocab {vocabulary}[/]\n")
    inspect.command(str(vectors), vocab=vocabulary)
    target = out / "embedding.safetensors"
    screen.print(f"\n[dim]$ embinit make {vectors} --vocab {vocabulary} --recipe pretrained_xavier --out {target}[/]\n")
    make.command(str(vectors), out=target, vocab=vocabulary, recipe="pretrained_xavier")
    screen.print(f"\n[dim]$ embinit inspect {target}[/]\n")
    inspect.command(str(target))


def _generate(vectors: Path, vocabulary: Path) -> None:
    """Write words with vectors that lie around topics, and a vocabulary that is a little larger."""
    import numpy as np

    from embinit.files import replacing
    from embinit.seeds import stream

    rng = stream(0, "demo")
    words: dict[str, None] = {}
    while len(words) < _WORDS + 200:
        parts = rng.integers(1, 4)
        words["".join(str(rng.choice(_ONSETS)) + str(rng.choice(_VOWELS)) for _ in range(parts))] = None
    listed = list(words)
    topics = rng.standard_normal((_TOPICS, _DIM))
    rows = 0.28 * topics[rng.integers(0, _TOPICS, _WORDS)] + 0.28 * rng.standard_normal((_WORDS, _DIM))
    with replacing(vectors) as out:
        for word, row in zip(listed, rows.astype(np.float32), strict=False):
            out.write(f"{word} {' '.join(f'{value:.5g}' for value in row)}\n".encode())
    with replacing(vocabulary) as out:
        out.write("\n".join(["<unk>", "<pad>", "<bos>", "<eos>", *listed]).encode() + b"\n")
