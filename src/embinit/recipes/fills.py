"""What a token gets that the source lacks. Found rows are done by then, so that filling never changes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from embinit.text.markers import scheme_of, strip_marker
from embinit.types import Flags, Matrix, Vocabulary, as_matrix, xavier_std

#: (found rows after all steps, vocabulary, which are found, generator) -> rows for the others
Fill = Callable[[Matrix, Vocabulary, Flags, np.random.Generator], Matrix]

FILLS: dict[str, Fill] = {}


def _fill(function: Fill) -> Fill:
    FILLS[function.__name__] = function
    return function


@_fill
def target(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Uniform with mean and σ of the found rows after the recipe: Xavier's own draw where the recipe ends there."""
    bound = 3**0.5 * float(rows.std(dtype=np.float64))
    mean = float(rows.mean(dtype=np.float64))
    return as_matrix(mean + rng.uniform(-bound, bound, _shape(rows, found)))


@_fill
def mean(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """The mean of the found rows, the same for all."""
    return np.repeat(rows.mean(axis=0, dtype=np.float64)[None].astype(np.float32), len(found) - found.sum(), axis=0)


@_fill
def normal(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Normal with mean and σ of the found rows, dimension by dimension."""
    center, spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    return as_matrix(center + spread * rng.standard_normal(_shape(rows, found)))


@_fill
def zeros(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Zeros, as OpenNMT-py does; every missing token then starts as the same one."""
    return np.zeros(_shape(rows, found), dtype=np.float32)


@_fill
def xavier(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Uniform between ±√(6/(N+D)), whatever the recipe made of the found rows."""
    bound = 3**0.5 * xavier_std(len(found), rows.shape[1])
    return rng.uniform(-bound, bound, _shape(rows, found)).astype(np.float32)


@_fill
def subword(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Mean of the found tokens that share most character n-grams, at their usual length; `target` where none does."""
    filled = target(rows, vocabulary, found, rng)
    scheme = scheme_of(vocabulary.tokens)
    texts = [strip_marker(token, scheme)[0].lower() for token in vocabulary.tokens]
    known = np.flatnonzero(found)
    holders: dict[str, list[int]] = defaultdict(list)
    for row, i in enumerate(known.tolist()):
        for gram in _ngrams(texts[i]):
            holders[gram].append(row)
    length = float(np.median(np.linalg.norm(rows, axis=1)))
    for place, i in enumerate(np.flatnonzero(~found).tolist()):
        if vocabulary.tokens[i] in vocabulary.specials:
            continue
        shared: dict[int, float] = defaultdict(float)
        for gram in _ngrams(texts[i]):
            for row in holders.get(gram, ()):
                shared[row] += len(gram) / len(holders[gram]) ** 0.5
        if shared:
            best = sorted(shared, key=lambda row: (-shared[row], row))[:5]
            vector = np.average(rows[best], axis=0, weights=[shared[row] for row in best])
            size = float(np.linalg.norm(vector))
            filled[place] = vector * (length / size) if size else vector
    return filled


def _ngrams(text: str, shortest: int = 3, longest: int = 6) -> set[str]:
    framed = f"<{text}>"
    return {framed[i : i + n] for n in range(shortest, longest + 1) for i in range(len(framed) - n + 1)}


def _shape(rows: Matrix, found: Flags) -> tuple[int, int]:
    return int(len(found) - found.sum()), int(rows.shape[1])
