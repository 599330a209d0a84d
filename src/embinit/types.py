"""The few types that travel between rooms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from embinit.display import HistogramChart, Panel, histogram, sampled
from embinit.errors import EmbinitError, closest
from embinit.format import listed, number, percent, plural, reading_notes

Matrix = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]
#: Numbers that are squared at once.
_SUMMED = 1 << 20
TaskKind = Literal["translation", "classification", "language_model", "masked_language_model"]
#: Tasks that read running text, in blocks of one length.
TEXT_TASKS: tuple[TaskKind, ...] = ("language_model", "masked_language_model")


def task_kind(name: str) -> TaskKind:
    """Return the kind of task with this name, in any case; an unknown name is an error."""
    kinds: tuple[TaskKind, ...] = get_args(TaskKind)
    for kind in kinds:
        if kind == name.lower():
            return kind
    raise EmbinitError(f"unknown kind of task {name!r}{closest(name, kinds)}")


def as_matrix(values: npt.ArrayLike) -> Matrix:
    """Return numbers as float32."""
    return np.asarray(values, dtype=np.float32)


def check_matrix(values: object) -> Matrix:
    """Return an array, a tensor or nested lists as a float32 matrix; anything but rows of numbers is an error."""
    if hasattr(values, "detach"):  # a torch tensor or parameter, on any device
        values = values.detach().cpu().float().numpy()
    try:
        matrix = as_matrix(values)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        matrix = None
    if matrix is None or matrix.ndim != 2 or not matrix.shape[1]:
        shape = "" if matrix is None else f" of shape {matrix.shape}"
        raise EmbinitError(f"a matrix is an array of (tokens, dimensions), not {type(values).__name__}{shape}")
    return matrix


def finite_rows(matrix: Matrix) -> Flags:
    """Return a flag for each row: whether all of its numbers are finite."""
    return np.asarray(np.isfinite(matrix).all(axis=1))


def standard_deviation(matrix: Matrix) -> float:
    """Return the σ of all numbers: that of `matrix.std(dtype=np.float64)` to the last bit, without a float64 copy of it."""
    values = np.ravel(matrix)
    mean = np.add.reduce(matrix, axis=None, dtype=np.float64) / matrix.size

    def squares(start: int, size: int) -> float:
        if size <= _SUMMED:
            differences = values[start : start + size] - mean
            differences *= differences
            return float(np.add.reduce(differences))
        half = size // 2  # numpy's pairwise sum halves like this
        half -= half % 8
        return squares(start, half) + squares(start + half, size - half)

    return math.sqrt(squares(0, matrix.size) / matrix.size)


def _harms(warnings: Sequence[str]) -> list[tuple[str, str]]:
    return [("harm", warning) for warning in warnings]


def _shown_tokens(tokens: Sequence[str]) -> str:
    return " ".join(tokens[:8]) + (" …" if len(tokens) > 8 else "")


def _numbers_of(matrix: Matrix) -> tuple[list[tuple[str, str]], HistogramChart | None]:
    """Return facts about the size of a matrix's numbers, and their histogram; both come from evenly spaced rows."""
    values = sampled(matrix).astype(np.float64)
    if not values.size:
        return [], None
    length = math.sqrt(float((values**2).mean()) * matrix.shape[1])
    size = f"σ {number(float(values.std()))}, mean {number(float(values.mean()))}, row length {number(length)}"
    return [("numbers", size)], histogram({"numbers of the rows": values})


#: From tokens to the vectors that the source can compose from sub-words, with a flag for each token that it can compose.
Composer = Callable[[Sequence[str]], tuple[Matrix, Flags]]


@dataclass(frozen=True)
class Origin:
    """The place that vectors were read from, and the counts of reading."""

    source: str
    format: str
    #: rows, duplicates, rejected rows, undecodable tokens and so on
    counts: Mapping[str, int] = field(default_factory=dict)
    #: messages about the first few rejected rows: `line 17: 299 numbers, expected 300`
    examples: tuple[str, ...] = ()
    #: messages about damage that costs many rows: a file that is cut short
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The tokens and vectors of a source. All vectors are finite, and no token occurs twice."""

    tokens: Sequence[str]
    #: one row for each token, float32 of shape (tokens, dim)
    vectors: Matrix
    #: the place that the vectors were read from, and the counts of reading
    origin: Origin
    #: tokens that the source does not store; it composed their vectors from sub-words
    composed: frozenset[str] = frozenset()
    #: tokens that the source itself declares special (`[CLS]`, `</s>`)
    specials: frozenset[str] = frozenset()
    #: a function that composes rows for words that the source lacks
    compose: Composer | None = None
    #: the same for the text of pieces that continue a word (`##ing`)
    compose_inside: Composer | None = None

    @property
    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Embeddings({len(self):,} x {self.dim}, {self.origin.format}, {self.origin.source!r})"

    def __str__(self) -> str:
        return self.panel(numbers=False).text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self, *, numbers: bool = True) -> Panel:
        """Return the summary, with or without the size of the numbers and their histogram."""
        facts = [
            ("source", f"{self.origin.source} ({self.origin.format})"),
            ("size", f"{plural(len(self), 'row')} of {self.dim} dimensions"),
            ("first tokens", _shown_tokens(self.tokens)),
        ]
        facts += [("reading", note) for note in reading_notes(self.origin.counts, self.origin.examples)]
        size, chart = _numbers_of(self.vectors) if numbers else ([], None)
        return Panel("Embeddings", [*facts, *size], notes=_harms(self.origin.warnings), histogram=chart)

    @cached_property
    def index(self) -> dict[str, int]:
        """Return the row of each token."""
        return {token: row for row, token in enumerate(self.tokens)}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of a model in row order, with their counts in the text if these are known."""

    tokens: tuple[str, ...]
    #: the number of occurrences of each token in the text; None if no text was given
    counts: Counts | None = None
    #: tokens such as `[CLS]` that most sources have no row for
    specials: frozenset[str] = frozenset()
    #: the name of the file, tokenizer or text that has the tokens
    origin: str = "a list"
    #: the tokenizer's split of one word into pieces; None for a vocabulary of words
    split: Callable[[str], list[str]] | None = None

    def __post_init__(self) -> None:
        if self.counts is not None and len(self.counts) != len(self.tokens):
            raise ValueError(f"{plural(len(self.counts), 'count')} for {plural(len(self.tokens), 'token')}")

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} tokens, {self.origin!r})"

    def __str__(self) -> str:
        return self.panel().text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary."""
        ordinary = [token for token in self.tokens if token not in self.specials]
        facts = [
            ("origin", self.origin),
            ("tokens", f"{len(self):,}, {len(self) - len(ordinary):,} of them special"),
            ("first tokens", _shown_tokens(ordinary)),
        ]
        if self.counts is not None:
            facts.append(("running tokens", f"{int(self.counts.sum()):,}"))
        facts.append(("words are split", "into the pieces of the tokenizer" if self.split else "no"))
        return Panel("Vocabulary", facts)

    @cached_property
    def index(self) -> dict[str, int]:
        """Return the id of each token."""
        return {token: row for row, token in enumerate(self.tokens)}


#: The way in which a token of the vocabulary got its row.
Kind = Literal["exact", "case", "marker", "composed", "special", "missing"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, eq=False)
class Aligned:
    """The vectors of a source in vocabulary order. Rows that were not found hold zeros, which mean nothing."""

    vocabulary: Vocabulary
    #: one row for each token of the vocabulary, float32 of shape (tokens, dim)
    vectors: Matrix
    #: a flag for each token: whether the source has a row for it
    found: Flags
    #: the kind of match of each token: `exact`, `case`, `marker`, `composed`, `special` or `missing`
    kinds: tuple[Kind, ...]
    origin: Origin
    #: messages about the alignment: rows that could be found if more were known
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the messages that a person should read first: about the source, then about the alignment."""
        return (*self.origin.warnings, *self.notes)

    @property
    def dim(self) -> int:
        """Return the number of dimensions."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __repr__(self) -> str:
        found = f"{int(self.found.sum()):,} found"
        return f"Aligned({len(self):,} x {self.dim}, {found}, {self.origin.format}, {self.origin.source!r})"

    def __str__(self) -> str:
        return self.panel(numbers=False).text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self, *, numbers: bool = True) -> Panel:
        """Return the summary, with or without the size of the found rows and their histogram."""
        types, running = self.coverage()
        shares = [f"{percent(types)} of types", *([] if running is None else [f"{percent(running)} of running tokens"])]
        facts = [
            ("source", f"{self.origin.source} ({self.origin.format})"),
            ("vocabulary", f"{plural(len(self), 'token')} ({self.vocabulary.origin})"),
            ("dimensions", str(self.dim)),
            ("found", listed(shares)),
            ("matches", ", ".join(f"{count:,} {kind}" for kind, count in self.matches().items() if count)),
        ]
        facts += [("reading", note) for note in reading_notes(self.origin.counts, self.origin.examples)]
        size, chart = _numbers_of(self.rows) if numbers else ([], None)
        return Panel("Aligned vectors", [*facts, *size], notes=_harms(self.warnings), histogram=chart)

    @cached_property
    def rows(self) -> Matrix:
        """Return only the found rows."""
        return np.ascontiguousarray(self.vectors[self.found])

    def matches(self) -> dict[Kind, int]:
        """Return the number of tokens that were matched in each way."""
        return {kind: self.kinds.count(kind) for kind in KINDS}

    def coverage(self) -> tuple[float, float | None]:
        """Return the share of types found, and of running tokens if counts are known, without special tokens."""
        ordinary = np.array([kind != "special" for kind in self.kinds], dtype=bool)
        types = float(self.found[ordinary].mean()) if ordinary.any() else 0.0
        if self.vocabulary.counts is None:
            return types, None
        weights = self.vocabulary.counts[ordinary]
        total = int(weights.sum())
        return types, float(weights[self.found[ordinary]].sum() / total) if total else None


def check_aligned(value: object, function: str) -> None:
    """Raise EmbinitError if a function that takes aligned vectors got something else."""
    if not isinstance(value, Aligned):
        raise EmbinitError(
            f"{function} takes aligned vectors, not {type(value).__name__}; "
            "call embinit.align(source, vocabulary) first"
        )


PositionKind = Literal["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]
NumberFormat = Literal["float32", "tf32", "bfloat16", "float16"]


@dataclass(frozen=True)
class Host:
    """The model that a matrix is made for: everything that acts on its embedding."""

    name: str
    #: the model multiplies rows by √D first
    scaled: bool
    #: the kind of position encoding
    positions: PositionKind
    #: root mean square of the positions that are added to a row; 0 if positions are not added
    position_rms: float
    #: `none`: the sum goes straight into attention; `sum`: it is normalized first (BERT); `pre`: each block reads a
    #: normalized copy, and the residual stream keeps the scale (GPT-2, Llama, T5)
    norm: Literal["none", "sum", "pre"]
    #: the output layer shares the embedding's weight; says nothing if the model is `headless`
    tied: bool
    #: the number format that the model is usually trained in
    numbers: NumberFormat
    #: the model's own initialization of embeddings: `xavier`, `inverse_sqrt_d` or a σ
    initial: str | float
    about: str = ""
    #: the input of a tied output layer is divided by √D first (T5)
    output_scaled: bool = False
    #: the dimension of a checkpoint; None for a model known by name
    dim: int | None = None
    #: `position_rms` is the usual start of such models, because there are no weights of positions to measure
    position_rms_assumed: bool = False
    #: the model has no output layer with an entry for each token
    headless: bool = False
    #: the model is a base model or a decoder, whose output layer is not part of it; `tied` is what its config says
    output_outside: bool = False

    def __repr__(self) -> str:
        output = "no output layer" if self.headless else "tied" if self.tied else "not tied"
        if self.output_outside:
            output += " outside"
        return f"Host({self.name!r}, {self.positions} positions, {output}, {self.numbers})"

    def __str__(self) -> str:
        return self.panel().text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary."""
        added = f", added to the rows with rms {number(self.position_rms)}" if self.adds_positions else ""
        norms = {
            "none": "none before the first attention",
            "sum": "of rows and positions together",
            "pre": "of a copy, in each block",
        }
        output = "none" if self.headless else "tied to the embedding" if self.tied else "has weights of its own"
        if self.output_outside:
            output = f"not part of this model; {'tied to the embedding' if self.tied else 'not tied'} by its config"
        start = f"σ = {number(self.initial)}" if isinstance(self.initial, float | int) else self.initial
        facts = [
            ("description", self.about),
            ("rows are", "multiplied by √D" if self.scaled else "not multiplied"),
            ("positions", f"{self.positions}{added}{' (assumed)' if self.position_rms_assumed else ''}"),
            ("normalization", norms[self.norm]),
            ("output layer", output),
            ("number format", self.numbers),
            ("own initialization", start),
        ]
        if self.dim is not None:
            facts.append(("dimensions", str(self.dim)))
        return Panel(f"Model {self.name}", facts)

    @property
    def adds_positions(self) -> bool:
        """Return whether the model adds positions to its rows, so that large rows can absorb them."""
        return self.position_rms > 0

    def multiplier(self, dim: int) -> float:
        """Return the factor that the model multiplies rows of this dimension by."""
        return math.sqrt(dim) if self.scaled else 1.0

    def initial_std(self, rows: int, dim: int) -> float:
        """Return the σ of the model's own initialization of an embedding with this number of rows and dimensions."""
        if self.initial == "xavier":
            return xavier_std(rows, dim)
        if self.initial == "inverse_sqrt_d":
            return 1 / math.sqrt(dim)
        return float(self.initial)


def xavier_std(rows: int, dim: int) -> float:
    """Return √(2/(N+D)), the σ of Xavier's uniform distribution (Sec. 3.1; PAPER.md 7)."""
    return math.sqrt(2 / (rows + dim))
