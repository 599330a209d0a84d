"""The few types that travel between rooms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError, closest

Matrix = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
TaskKind = Literal["translation", "classification"]


def task_kind(name: str) -> TaskKind:
    """Return a kind of task by its name."""
    kinds: tuple[TaskKind, ...] = get_args(TaskKind)
    for kind in kinds:
        if kind == name.lower():
            return kind
    raise EmbinitError(f"unknown kind of task {name!r}{closest(name, kinds)}")


def as_matrix(values: npt.ArrayLike) -> Matrix:
    """Return numbers as float32."""
    return np.asarray(values, dtype=np.float32)


def matrix_of(given: object) -> Matrix:
    """Return what a person gives as a matrix, as float32; anything but rows of numbers is an error."""
    if hasattr(given, "detach"):  # a tensor or parameter of torch, wherever it lies
        given = given.detach().cpu().float().numpy()
    try:
        matrix = as_matrix(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        matrix = None
    if matrix is None or matrix.ndim != 2:
        shape = "" if matrix is None else f" of shape {matrix.shape}"
        raise EmbinitError(f"a matrix is an array of (tokens, dimensions), not {type(given).__name__}{shape}")
    return matrix


def finite_rows(matrix: Matrix) -> Flags:
    """Return which rows hold neither NaN nor infinity."""
    return np.asarray(np.isfinite(matrix).all(axis=1))


#: Given tokens, the vectors that the source can make for them from sub-words, and which it could make.
Composer = Callable[[Sequence[str]], tuple[Matrix, Flags]]


@dataclass(frozen=True)
class Origin:
    """Where vectors came from, and what was counted on the way in."""

    source: str
    format: str
    #: name of the thing counted -> how often: rows, duplicates, rejected, undecodable, padding ...
    counts: Mapping[str, int] = field(default_factory=dict)
    #: the first few rejected rows, in words: `line 17: 299 numbers, expected 300`
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Tokens with their vectors, finite and without duplicates, as a source holds them."""

    tokens: Sequence[str]
    vectors: Matrix  # (tokens, dim)
    origin: Origin
    #: tokens that the source does not store and made from sub-words
    composed: frozenset[str] = frozenset()
    #: tokens that the source itself declares special ([CLS], </s>)
    specials: frozenset[str] = frozenset()
    compose: Composer | None = None

    @property
    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Embeddings({len(self):,} x {self.dim}, {self.origin.format}, {self.origin.source!r})"

    @cached_property
    def index(self) -> dict[str, int]:
        """Return the row of each token."""
        return {token: row for row, token in enumerate(self.tokens)}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A model's tokens in row order, with how often each was seen where that is known."""

    tokens: tuple[str, ...]
    counts: Counts | None = None
    specials: frozenset[str] = frozenset()
    origin: str = "a list"
    #: how the vocabulary's tokenizer splits one word, where it is a sub-word one
    split: Callable[[str], list[str]] | None = None

    def __post_init__(self) -> None:
        if self.counts is not None and len(self.counts) != len(self.tokens):
            raise ValueError(f"{len(self.counts)} counts for {len(self.tokens)} tokens")

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} tokens, {self.origin!r})"

    @cached_property
    def index(self) -> dict[str, int]:
        """Return the id of each token."""
        return {token: row for row, token in enumerate(self.tokens)}


#: How a token of the vocabulary came by its row.
Kind = Literal["exact", "case", "marker", "composed", "special", "missing"]
KINDS: tuple[Kind, ...] = ("exact", "case", "marker", "composed", "special", "missing")


@dataclass(frozen=True, eq=False)
class Aligned:
    """A source's vectors in vocabulary order; rows that were not found are zero and not to be read."""

    vocabulary: Vocabulary
    vectors: Matrix  # (tokens, dim)
    found: Flags  # (tokens,)
    kinds: tuple[Kind, ...]
    origin: Origin

    @property
    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.vocabulary)

    @cached_property
    def rows(self) -> Matrix:
        """Return the found rows alone."""
        return np.ascontiguousarray(self.vectors[self.found])

    def matches(self) -> dict[Kind, int]:
        """Return how many tokens were matched in each way."""
        return {kind: self.kinds.count(kind) for kind in KINDS}

    def coverage(self) -> tuple[float, float | None]:
        """Return the share of types found, and of running tokens where counts are known; specials aside."""
        ordinary = np.array([kind != "special" for kind in self.kinds], dtype=bool)
        types = float(self.found[ordinary].mean()) if ordinary.any() else 0.0
        if self.vocabulary.counts is None:
            return types, None
        weights = self.vocabulary.counts[ordinary]
        total = int(weights.sum())
        return types, float(weights[self.found[ordinary]].sum() / total) if total else None


def check_aligned(given: object, what: str) -> None:
    """Raise where vectors have not been laid along a vocabulary yet."""
    if not isinstance(given, Aligned):
        raise EmbinitError(
            f"{what} takes aligned vectors, not {type(given).__name__}: embinit.align(source, vocabulary) first"
        )


PositionKind = Literal["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]
NumberFormat = Literal["float32", "tf32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Host:
    """What an embedding meets in the model that receives it."""

    name: str
    #: rows are multiplied by √D before anything else
    scaled: bool
    positions: PositionKind
    #: root mean square of what is added to a row; 0 where positions are not added
    position_rms: float
    #: `none`: the sum goes straight into attention; `sum`: it is normalized first (BERT); `pre`: each block reads a
    #: normalized copy, the residual stream keeps the scale (GPT-2, Llama, T5)
    norm: Literal["none", "sum", "pre"]
    tied: bool
    #: the format that the model is usually trained in
    numbers: NumberFormat
    #: how the model's own code draws embeddings: `xavier`, `inverse_sqrt_d` or a σ
    initial: str | float
    about: str = ""
    #: what goes into a tied output layer is divided by √D first (T5)
    output_scaled: bool = False
    #: the model's dimension, where it is a checkpoint's
    dim: int | None = None
    #: `position_rms` is what such models start from: the checkpoint's own learned positions are not in its folder
    position_rms_assumed: bool = False

    @property
    def adds_positions(self) -> bool:
        """Return whether positions are added to the rows (and can be absorbed by them)."""
        return self.position_rms > 0

    def multiplier(self, dim: int) -> float:
        """Return what rows of this many dimensions are multiplied by."""
        return math.sqrt(dim) if self.scaled else 1.0

    def initial_std(self, rows: int, dim: int) -> float:
        """Return the σ of the model's own initialization at this size."""
        if self.initial == "xavier":
            return xavier_std(rows, dim)
        if self.initial == "inverse_sqrt_d":
            return 1 / math.sqrt(dim)
        return float(self.initial)


def xavier_std(rows: int, dim: int) -> float:
    """Return √(2/(N+D)), the σ of Xavier's uniform distribution (Sec. 3.1; PAPER.md 7)."""
    return math.sqrt(2 / (rows + dim))
