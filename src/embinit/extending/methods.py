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
class NewTokens:
    """Facts about the new tokens that methods use."""

    tokens: tuple[str, ...]
    #: the old tokenizer's segmentation of each token
    pieces: Pieces
    #: the ids of the old tokens that a mapping or a description names, for each new token
    named: Pieces | None = None

    def __len__(self) -> int:
        return len(self.tokens)


#: From the old rows (rows, dim), the new tokens and a generator to the new rows.
Rows = Callable[[Matrix, NewTokens, np.random.Generator], Matrix]


@dataclass(frozen=True)
class RowMethod:
    """A way to make the rows of new tokens."""

    rows: Rows
    about: str
    #: the argument that the method needs besides the tokens
    needs: Literal["", "like", "description"] = ""


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
    return weighted(old, new.pieces, lambda count: np.ones(count))


def pieces_first(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return a mean of the rows of each token's pieces in which a piece has half the weight of the piece before it."""
    return weighted(old, new.pieces, lambda count: 0.5 ** np.arange(count))


def pieces_last(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return a mean of the rows of each token's pieces in which a piece has half the weight of the piece after it."""
    return weighted(old, new.pieces, lambda count: 0.5 ** np.arange(count)[::-1])


def first_piece(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return copies of the row of each token's first piece."""
    return old[[ids[0] for ids in new.pieces]]


def named(old: Matrix, new: NewTokens, rng: np.random.Generator) -> Matrix:
    """Return the mean of the rows of the old tokens that were named for each token."""
    if new.named is None:
        raise EmbinitError("this method needs a mapping from each new token to old tokens")
    return weighted(old, new.named, lambda count: np.ones(count))


def weighted(old: Matrix, ids: Pieces, weights: Callable[[int], np.ndarray]) -> Matrix:
    """Return weighted means of old rows, one for each list of ids."""
    made = np.empty((len(ids), old.shape[1]), np.float32)
    for place, row_ids in enumerate(ids):
        made[place] = np.average(old[list(row_ids)], axis=0, weights=weights(len(row_ids)))
    return made


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
    targets = np.array([lengths[list(row_ids)].mean() for row_ids in ids], np.float32)
    own = np.linalg.norm(rows, axis=1)
    return as_matrix(rows * (targets / np.where(own > 0, own, 1))[:, None])
