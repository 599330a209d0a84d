"""Fills: rows for the tokens that the source lacks. A fill runs after all steps and never changes found rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from embinit.types import Flags, Matrix, Vocabulary, as_matrix, standard_deviation, xavier_std

#: (found rows after all steps, vocabulary, flags of found tokens, generator) -> rows of the missing tokens
Fill = Callable[[Matrix, Vocabulary, Flags, np.random.Generator], Matrix]

FILLS: dict[str, Fill] = {}


def _fill(function: Fill) -> Fill:
    FILLS[function.__name__] = function
    return function


@_fill
def target(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Uniform with the mean and σ of the found rows after all steps."""
    bound = 3**0.5 * standard_deviation(rows)
    mean = float(rows.mean(dtype=np.float64))
    return as_matrix(mean + rng.uniform(-bound, bound, _shape(rows, found)))


@_fill
def mean(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """The mean of the found rows, the same for all missing tokens."""
    return np.repeat(rows.mean(axis=0, dtype=np.float64)[None].astype(np.float32), len(found) - found.sum(), axis=0)


@_fill
def normal(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Normal with the mean and σ of the found rows in each dimension."""
    center, spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    return as_matrix(center + spread * rng.standard_normal(_shape(rows, found)))


@_fill
def zeros(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Zeros, as in OpenNMT-py; all missing tokens then start equal."""
    return np.zeros(_shape(rows, found), dtype=np.float32)


@_fill
def xavier(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Uniform between ±√(6/(N+D)), whatever the steps of the recipe are."""
    bound = 3**0.5 * xavier_std(len(found), rows.shape[1])
    return rng.uniform(-bound, bound, _shape(rows, found)).astype(np.float32)


@_fill
def subword(rows: Matrix, vocabulary: Vocabulary, found: Flags, rng: np.random.Generator) -> Matrix:
    """Mean of the found tokens with most character n-grams in common, at the usual row length; otherwise `target`."""
    from embinit.text.markers import scheme_of, strip_marker

    filled = target(rows, vocabulary, found, rng)
    scheme = scheme_of(vocabulary.tokens)
    texts = [strip_marker(token, scheme)[0].lower() for token in vocabulary.tokens]
    rows_with: dict[str, list[int]] = defaultdict(list)  # n-gram -> found rows
    for row, token_id in enumerate(np.flatnonzero(found).tolist()):
        for gram in _ngrams(texts[token_id]):
            rows_with[gram].append(row)
    usual_length = float(np.median(np.linalg.norm(rows, axis=1)))
    for missing_row, token_id in enumerate(np.flatnonzero(~found).tolist()):
        if vocabulary.tokens[token_id] in vocabulary.specials:
            continue
        weights: dict[int, float] = defaultdict(float)  # long and rare n-grams count more
        for gram in _ngrams(texts[token_id]):
            for row in rows_with.get(gram, ()):
                weights[row] += len(gram) / len(rows_with[gram]) ** 0.5
        if weights:
            best = sorted(weights, key=lambda row: (-weights[row], row))[:5]
            vector = np.average(rows[best], axis=0, weights=[weights[row] for row in best])
            length = float(np.linalg.norm(vector))
            filled[missing_row] = vector * (usual_length / length) if length else vector
    return filled


def _ngrams(text: str, shortest: int = 3, longest: int = 6) -> set[str]:
    framed = f"<{text}>"
    return {framed[i : i + n] for n in range(shortest, longest + 1) for i in range(len(framed) - n + 1)}


def _shape(rows: Matrix, found: Flags) -> tuple[int, int]:
    return int(len(found) - found.sum()), int(rows.shape[1])
