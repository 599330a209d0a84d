"""Write trained vectors to a file, and list the nearest neighbours of a few words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from embinit.files import replacing
from embinit.types import Matrix, Vocabulary


class _Nothing(Exception):
    """Ends a trial write."""


def check_writable(path: Path) -> None:
    """Raise the error that a write would raise, without changing anything."""
    with suppress(_Nothing), replacing(path):
        raise _Nothing


def write(path: Path, vocabulary: Vocabulary, vectors: Matrix) -> None:
    """Write GloVe's text format: one token and its numbers per line, in six significant digits and vocabulary order."""
    line = "%s" + " %.6g" * vectors.shape[1] + "\n"
    with replacing(path) as out:
        for token, row in zip(vocabulary.tokens, vectors, strict=True):
            out.write((line % (token, *row.tolist())).encode())


def telling(vocabulary: Vocabulary, number: int) -> list[str]:
    """Return common words with a meaning: with at least five letters, after the most frequent hundredth.

    If these are too few, the most frequent other words follow.
    """
    later = vocabulary.tokens[len(vocabulary) // 100 :]
    chosen = [token for token in later if len(token) >= 5 and token.isalpha()][:number]
    others = (token for token in vocabulary.tokens if token not in chosen)
    return [*chosen, *others][:number]


def nearest(vocabulary: Vocabulary, vectors: Matrix, words: Sequence[str], number: int) -> dict[str, list[str]]:
    """Return the nearest words of each word by cosine, nearest first."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    neighbours = {}
    for word in words:
        here = vocabulary.index[word]
        closeness = unit @ unit[here]
        order = np.argsort(-closeness, kind="stable")
        neighbours[word] = [vocabulary.tokens[row] for row in order[: number + 1] if row != here][:number]
    return neighbours
