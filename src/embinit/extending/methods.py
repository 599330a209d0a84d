"""Methods for the rows of new tokens, in one registry. Input rows, output rows and output biases are made alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.types import Matrix, as_matrix

#: The ids of old tokens, for each new token.
Pieces = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Auxiliary:
    """Auxiliary vectors of new tokens and of old tokens."""

    new: Matrix  # (new tokens, dim); zeros for a token without a vector
    old: Matrix  # (old tokens with a vector, dim)
    #: their rows in the model
    old_ids: Sequence[int]


@dataclass(frozen=True)
class NewTokens:
    """Facts about the new tokens that methods use."""

    tokens: tuple[str, ...]
    #: the old tokenizer's segmentation of each token
    pieces: Pieces
    #: the ids of the old tokens that a mapping or a description names, for each new token
    named: Pieces | None = None
    #: vectors that hold both new tokens and old ones
    auxiliary: Auxiliary | None = None

    def __len__(self) -> int:
        return len(self.tokens)


#: Old rows in a combination of `omp`.
_ATOMS = 16

#: From the old rows (rows, dim), the new tokens and a generator to the new rows.
Rows = Callable[[Matrix, NewTokens, np.random.Generator], Matrix]


@dataclass(frozen=True)
class RowMethod:
    """A way to make the rows of new tokens."""

    rows: Rows
    about: str
    #: the argument that the method needs besides the tokens
    needs: Literal["", "like", "description", "vectors"] = ""
    #: whether its rows are the start of a fit on sentences
    fitted: bool = False


def mean(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return draws from N(mean, 1e-9 · covariance), as transformers' `resize_token_embeddings` does."""
    return _drawn(old, len(new), rng, 1e-9)


def multivariate(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return draws from N(mean, covariance) of the old rows."""
    return _drawn(old, len(new), rng, 1.0)


def _drawn(old: Matrix, count: int, rng: np.random.Generator, scale: float) -> Matrix:
    center = old.mean(axis=0, dtype=np.float64)
    centered = old - center
    values, directions = np.linalg.eigh(centered.T @ centered / len(old))
    normal = rng.standard_normal((count, old.shape[1]))
    return as_matrix(center + normal * np.sqrt(scale * np.maximum(values, 0)) @ directions.T)


def pieces(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return the mean of the rows of each token's pieces."""
    return weighted(old, new.pieces, rng, np.ones)


def pieces_first(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return a mean of the rows of each token's pieces in which a piece has half the weight of the piece before it."""
    return weighted(old, new.pieces, rng, lambda count: 0.5 ** np.arange(count))


def pieces_last(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return a mean of the rows of each token's pieces in which a piece has half the weight of the piece after it."""
    return weighted(old, new.pieces, rng, lambda count: 0.5 ** np.arange(count)[::-1])


def first_piece(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return copies of the row of each token's first piece."""
    return weighted(old, [ids[:1] for ids in new.pieces], rng, np.ones)


def named(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return the mean of the rows of the old tokens that were named for each token."""
    if new.named is None:
        raise EmbinitError("this method needs a mapping from each new token to old tokens")
    return weighted(old, new.named, rng, np.ones)


def focus(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return means of old rows, weighted by the similarity of auxiliary vectors (Dobler and de Melo 2023).

    The weights are the sparsemax of the cosines, so that most old rows have no weight. A token without an auxiliary vector
    gets the mean of its pieces.
    """
    return _by_vectors(old, new, rng, lambda target, shared: sparsemax(shared @ target))


def omp(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return sparse combinations of old rows that make up the token's auxiliary vector (orthogonal matching pursuit)."""
    return _by_vectors(old, new, rng, lambda target, shared: matching_pursuit(target, shared, _ATOMS))


def _by_vectors(
    old: Matrix, new: NewTokens, rng: np.random.Generator, weigh: Callable[[Matrix, Matrix], np.ndarray]
) -> Matrix:
    if new.auxiliary is None:
        raise EmbinitError("this method needs auxiliary vectors")
    rows = pieces(old, new, rng)
    shared, used = unit_rows(new.auxiliary.old), old[list(new.auxiliary.old_ids)]
    for place, target in enumerate(unit_rows(new.auxiliary.new)):
        if target.any():
            weights = weigh(target, shared)
            kept = np.flatnonzero(weights)
            rows[place] = weights[kept] @ used[kept]
    return rows


def sparsemax(scores: np.ndarray) -> np.ndarray:
    """Return the nearest point to the scores whose entries are not negative and have the sum 1.

    >>> sparsemax(np.array([1.0, 0.8, -1.0])).round(2).tolist()
    [0.6, 0.4, 0.0]
    """
    ordered = -np.sort(-scores.astype(np.float64))
    above = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    weights: np.ndarray = np.maximum(scores - above[np.flatnonzero(ordered > above)[-1]], 0)
    return weights


def matching_pursuit(target: Matrix, shared: Matrix, atoms: int) -> np.ndarray:
    """Return weights of at most `atoms` shared vectors of length 1 whose sum is nearest to a target, chosen one by one."""
    weights, chosen = np.zeros(len(shared)), list[int]()
    rest = target
    for _ in range(min(atoms, len(shared))):
        scores = np.abs(shared @ rest)
        scores[chosen] = -1
        chosen.append(int(scores.argmax()))
        fitted = np.linalg.lstsq(shared[chosen].T, target, rcond=None)[0]
        rest = as_matrix(target - fitted @ shared[chosen])
        if np.linalg.norm(rest) < 1e-6:
            break
    weights[chosen] = fitted
    return weights


def unit_rows(rows: Matrix) -> Matrix:
    """Return rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return as_matrix(rows / np.where(lengths > 0, lengths, 1))


def weighted(old: Matrix, ids: Pieces, rng: np.random.Generator, weights: Callable[[int], np.ndarray]) -> Matrix:
    """Return weighted means of old rows, one for each list of ids; a token without ids gets a draw like old rows."""
    rows = np.empty((len(ids), old.shape[1]), np.float32)
    empty = [place for place, row_ids in enumerate(ids) if not row_ids]
    if empty:
        rows[empty] = _drawn(old, len(empty), rng, 1.0)
    for place, row_ids in enumerate(ids):
        if row_ids:
            rows[place] = np.average(old[list(row_ids)], axis=0, weights=weights(len(row_ids)))
    return rows


METHODS: Mapping[str, RowMethod] = {
    "mean": RowMethod(mean, "the mean of the old rows with almost no noise: transformers' default"),
    "multivariate": RowMethod(multivariate, "draws from a normal distribution with the old rows' mean and covariance"),
    "pieces": RowMethod(pieces, "the mean of the rows of the word's old pieces"),
    "pieces-first": RowMethod(pieces_first, "the same mean, the first piece with the largest weight"),
    "pieces-last": RowMethod(pieces_last, "the same mean, the last piece with the largest weight"),
    "first-piece": RowMethod(first_piece, "the row of the word's first piece"),
    "like": RowMethod(named, "the row of an existing token that you name for each new token", "like"),
    "description": RowMethod(
        named, "the mean of the pieces of a phrase that you give for each new token", "description"
    ),
    "focus": RowMethod(focus, "a mean of old rows, weighted by similarity in auxiliary vectors", "vectors"),
    "omp": RowMethod(omp, "a sparse combination of old rows that makes up the auxiliary vector", "vectors"),
    "distill": RowMethod(
        pieces,
        "the mean of the pieces, then fitted on sentences so that the model reads the word as before",
        fitted=True,
    ),
}


def row_method(name: str) -> RowMethod:
    """Return a method of the registry by name."""
    if name not in METHODS:
        raise EmbinitError(f"unknown method {name!r}{closest(name, METHODS)}")
    return METHODS[name]


def match_lengths(rows: Matrix, old: Matrix, ids: Pieces) -> Matrix:
    """Return the rows at the mean length of the old rows that they are made of.

    A mean of rows is shorter than the rows. Rows of one number, which are biases, keep their size.
    """
    if rows.shape[1] == 1:
        return rows
    lengths = np.linalg.norm(old, axis=1)
    own = np.linalg.norm(rows, axis=1)
    means = [lengths[list(row_ids)].mean() if row_ids else length for row_ids, length in zip(ids, own, strict=True)]
    targets = np.array(means, np.float32)
    return as_matrix(rows * (targets / np.where(own > 0, own, 1))[:, None])
