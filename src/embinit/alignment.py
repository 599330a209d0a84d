"""Alignment: the rows of a source in the order of a vocabulary."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.format import plural
from embinit.seeds import stream
from embinit.sources.load import load
from embinit.text.markers import add_marker, all_markers, scheme_of, strip_marker
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Aligned, Embeddings, Flags, Kind, Matrix, Vocabulary, as_matrix

Projection = Literal["pca", "orthogonal", "pad"]

#: The vectors of sub-word pieces are composed from at most this many words, the most frequent of the source.
_WORDS_FOR_PIECES = 50_000


@dataclass(frozen=True)
class Matching:
    """The ways of matching that are allowed besides the exact one."""

    #: whether `the` matches `The` and `THE`
    case: bool = True
    #: whether `the` matches `▁the`, `Ġthe` and `the</w>`
    markers: bool = True
    #: whether missing tokens are composed from parts, or from the words that contain them
    compose: bool = True
    #: whether pieces that continue a word (`##ing`) are composed from the source's own such pieces
    continuations: bool = True
    #: whether special tokens match the same token of the source
    specials: bool = False


def align(
    source: Any,
    vocabulary: Any = None,
    *,
    matching: Matching | None = None,
    dim: int | None = None,
    project: Projection | None = None,
    seed: int = 0,
) -> Aligned:
    """Return the rows of a source in the order of a vocabulary.

    Parameters
    ----------
    source
        Anything that `load` takes. Only the rows of the vocabulary are read from files.
    vocabulary
        A tokenizer of transformers or tokenizers, a list of tokens, the path of a token list, of a tokenizer's file or of a
        checkpoint's folder, or a hub id. For a vocabulary of sub-words, give the tokenizer: it tells which words a piece
        occurs in, so more rows can be composed. Without a vocabulary the tokens of the source are the vocabulary.
    matching
        The ways of matching that are allowed besides the exact one. Special tokens (`<pad>`, `[CLS]`) get no row unless
        `matching.specials` is true, and then only by an exact match.
    dim
        The dimension of the model. If the source has another dimension, `project` is required.
    project
        The projection to `dim`: `pca`, `orthogonal` or `pad`.
    seed
        The seed of the orthogonal projection.

    Returns
    -------
    Aligned
        One row for each token, with a flag that tells whether the source has the token.

    Raises
    ------
    EmbinitError
        If the source or the vocabulary cannot be read, or the dimensions differ and `project` is not given.

    Examples
    --------
    >>> aligned = align("glove.6B.300d.txt", ["the", "cat", "sat"])     # doctest: +SKIP
    >>> aligned.found.tolist()                                           # doctest: +SKIP
    [True, True, True]
    """
    matching = matching or Matching()
    if vocabulary is None:
        return _project(_all_rows(load(source)), dim, project, seed)
    vocabulary = as_vocabulary(vocabulary)
    # All spellings are requested, because the scheme of the source is unknown until it is read.
    embeddings = load(source, wanted=spellings(vocabulary, matching), compose=False)
    aligned = _match(embeddings, vocabulary, matching)
    if matching.compose:
        aligned = _with_notes(_compose_missing(aligned, embeddings, source, matching), embeddings)
    return _project(aligned, dim, project, seed)


def _all_rows(embeddings: Embeddings) -> Aligned:
    vocabulary = Vocabulary(tuple(embeddings.tokens), None, embeddings.specials, embeddings.origin.source)
    count = len(embeddings)
    kinds: list[Kind] = ["exact"] * count
    return Aligned(vocabulary, embeddings.vectors, np.ones(count, dtype=bool), tuple(kinds), embeddings.origin)


# ---------------------------------------------------------------- spellings


def spellings(vocabulary: Vocabulary, matching: Matching) -> frozenset[str]:
    """Return all spellings that a source may use for the tokens of a vocabulary."""
    scheme = scheme_of(vocabulary.tokens)
    forms: set[str] = set()
    for token in vocabulary.tokens:
        forms.add(token)
        if token in vocabulary.specials:
            continue
        text, begins = strip_marker(token, scheme) if matching.markers else (token, True)
        for cased in set(_cases(text)) if matching.case else (text,):
            if matching.markers:
                forms.update(all_markers(cased, begins))
            else:
                forms.add(cased)
    return frozenset(forms)


def _cases(text: str) -> tuple[str, ...]:
    return (text, text.lower(), text.capitalize(), text.upper())


def _has_letter(text: str) -> bool:
    return any(unicodedata.category(char)[0] == "L" for char in text)


def _match(embeddings: Embeddings, vocabulary: Vocabulary, matching: Matching) -> Aligned:
    vectors = np.zeros((len(vocabulary), embeddings.dim), dtype=np.float32)
    source_rows: list[int] = []
    ids: list[int] = []
    kinds: list[Kind] = []
    matcher = _Matcher(embeddings, vocabulary, matching)
    for token_id, token in enumerate(vocabulary.tokens):
        row, kind = matcher.row_of(token)
        kinds.append(kind)
        if row is not None:
            source_rows.append(row)
            ids.append(token_id)
    vectors[ids] = embeddings.vectors[source_rows]
    found = np.zeros(len(vocabulary), dtype=bool)
    found[ids] = True
    return Aligned(vocabulary, vectors, found, tuple(kinds), embeddings.origin)


class _Matcher:
    """Finds the source's row of a token: by an exact match first, then by other marks, then by other cases."""

    def __init__(self, embeddings: Embeddings, vocabulary: Vocabulary, matching: Matching) -> None:
        self._embeddings, self._vocabulary, self._matching = embeddings, vocabulary, matching
        self._scheme = scheme_of(vocabulary.tokens)
        # All schemes were requested, so the marks of the rows that were read are the source's own.
        self._source_scheme = scheme_of(embeddings.tokens)
        self._same_scheme = self._scheme == self._source_scheme or not matching.markers

    def row_of(self, token: str) -> tuple[int | None, Kind]:
        """Return the source's row of a token, None if it has none, and the way in which the row was found."""
        if token in self._vocabulary.specials:
            row = self._embeddings.index.get(token) if self._matching.specials else None
            return row, "special" if row is None else "exact"
        text, begins = strip_marker(token, self._scheme) if self._matching.markers else (token, True)
        spelling = token if self._same_scheme else self._spelled(text, begins)
        row = self._source_row(spelling)
        if row is None and not self._same_scheme and not _has_letter(text):
            spelling = token
            row = self._source_row(spelling)
        if row is not None:
            composed = spelling in self._embeddings.composed
            return row, "composed" if composed else "exact" if spelling == token else "marker"
        if self._matching.case:
            for cased in _cases(text)[1:]:
                row = self._source_row(self._spelled(cased, begins))
                if row is not None:
                    return row, "case"
        return None, "missing"

    def _spelled(self, text: str, begins: bool) -> str | None:
        """Return the source's spelling of a text; None if the source's scheme cannot write it."""
        if self._same_scheme:
            return add_marker(text, begins, self._scheme) if self._matching.markers else text
        if self._source_scheme == "words" and not begins and _has_letter(text):
            return None  # `##ing` is not the word `ing`
        return add_marker(text, begins, self._source_scheme)

    def _source_row(self, spelling: str | None) -> int | None:
        if spelling is None or spelling in self._embeddings.specials:
            return None
        return self._embeddings.index.get(spelling)


# ---------------------------------------------------------------- composition


def _compose_missing(aligned: Aligned, embeddings: Embeddings, source: Any, matching: Matching) -> Aligned:
    """Return the alignment with more rows found: composed from the source's sub-words, or from words with the piece."""
    tokens, scheme = aligned.vocabulary.tokens, scheme_of(aligned.vocabulary.tokens)
    missing = [token_id for token_id, kind in enumerate(aligned.kinds) if kind == "missing"]
    texts = {token_id: strip_marker(tokens[token_id], scheme) for token_id in missing}
    words = [token_id for token_id in missing if texts[token_id][1] and texts[token_id][0]]
    if embeddings.compose is not None and words:
        vectors, composed = embeddings.compose([texts[token_id][0] for token_id in words])
        aligned = _with_composed(aligned, words, vectors, composed)
    inside = [token_id for token_id in missing if not texts[token_id][1] and texts[token_id][0]]
    if matching.continuations and embeddings.compose_inside is not None and inside:
        vectors, composed = embeddings.compose_inside([texts[token_id][0] for token_id in inside])
        aligned = _with_composed(aligned, inside, vectors, composed)
    missing = [token_id for token_id in missing if not aligned.found[token_id]]
    if missing and aligned.vocabulary.split is not None:
        word_vectors = embeddings if isinstance(source, Embeddings) else load(source, most=_WORDS_FOR_PIECES)
        if scheme_of(word_vectors.tokens) != "words":
            return aligned
        pieces = [tokens[token_id] for token_id in missing]
        vectors, composed = _piece_vectors(pieces, aligned.vocabulary.split, word_vectors)
        aligned = _with_composed(aligned, missing, vectors, composed)
    return aligned


def _with_notes(aligned: Aligned, words: Embeddings) -> Aligned:
    """Return the alignment with a note if rows of sub-words are missing because their tokenizer is not known."""
    vocabulary, missing = aligned.vocabulary, aligned.kinds.count("missing")
    is_pieces = scheme_of(vocabulary.tokens) != "words" and scheme_of(words.tokens) == "words"
    if vocabulary.split is not None or not missing or not is_pieces:
        return aligned
    note = (
        f"{plural(missing, 'missing token')}: the vocabulary holds parts of words, and a list of tokens does not tell which "
        "words they occur in, so no rows were composed for them; give the tokenizer (in Python the object, on the command "
        "line its folder)"
    )
    return replace(aligned, notes=(*aligned.notes, note))


def _piece_vectors(pieces: Sequence[str], split: Callable[[str], list[str]], words: Embeddings) -> tuple[Matrix, Flags]:
    """Return for each piece the mean vector of the words that the tokenizer splits into it, and whether there are any."""
    place_of = {piece: place for place, piece in enumerate(pieces)}
    word_rows: dict[int, list[int]] = defaultdict(list)
    for row, word in enumerate(words.tokens[:_WORDS_FOR_PIECES]):
        if not word or not word.isprintable():
            continue
        for piece in set(split(word)):
            if piece in place_of:
                word_rows[place_of[piece]].append(row)
    vectors = np.zeros((len(pieces), words.dim), dtype=np.float32)
    composed = np.zeros(len(pieces), dtype=bool)
    for place, rows in word_rows.items():
        vectors[place] = words.vectors[rows].mean(axis=0)
        composed[place] = True
    return vectors, composed


def _with_composed(aligned: Aligned, ids: Sequence[int], vectors: Matrix, composed: Flags) -> Aligned:
    """Return the alignment with the composed vectors at these ids."""
    new_ids = np.asarray(ids)[composed]
    merged, found, kinds = aligned.vectors.copy(), aligned.found.copy(), list(aligned.kinds)
    merged[new_ids] = vectors[composed]
    found[new_ids] = True
    for token_id in new_ids.tolist():
        kinds[token_id] = "composed"
    return replace(aligned, vectors=merged, found=found, kinds=tuple(kinds))


# ---------------------------------------------------------------- dimensions


def _project(aligned: Aligned, dim: int | None, project: Projection | None, seed: int) -> Aligned:
    if project is not None and project not in get_args(Projection):
        raise EmbinitError(f"unknown projection {project!r}{closest(project, get_args(Projection))}")
    if project is not None and dim is None:
        raise EmbinitError(
            f"the projection {project} needs the dimension of your model; give it, for example dim=768, or --dim 768 on the "
            "command line"
        )
    if dim is None or dim == aligned.dim:
        return aligned
    if dim < 1:
        raise EmbinitError(f"dim is {dim}; give 1 or a larger number")
    if project is None:
        other = "pad" if dim > aligned.dim else "pca"
        raise EmbinitError(
            f"{aligned.origin.source} has {aligned.dim} dimensions, but the model has {dim}; choose a projection: "
            f"project='orthogonal' or '{other}', or --project orthogonal on the command line"
        )
    rows = _projected_rows(aligned.rows, dim, project, seed)
    vectors = np.zeros((len(aligned), dim), dtype=np.float32)
    vectors[aligned.found] = rows
    return replace(aligned, vectors=vectors)


def _projected_rows(rows: Matrix, dim: int, project: Projection, seed: int) -> Matrix:
    source_dim = rows.shape[1]
    if project == "pad":
        if dim < source_dim:
            raise EmbinitError(
                f"padding cannot reduce {source_dim} dimensions to {dim}; choose the projection pca or orthogonal"
            )
        return np.pad(rows, ((0, 0), (0, dim - source_dim)))
    if project == "orthogonal":
        # To more dimensions, orthonormal rows keep lengths and angles. To fewer dimensions, orthonormal columns keep σ and
        # angles approximately.
        square = stream(seed, "orthogonal projection").standard_normal((max(source_dim, dim), min(source_dim, dim)))
        basis = np.linalg.qr(square)[0]
        return as_matrix(rows.astype(np.float64) @ (basis.T if dim > source_dim else basis))
    if dim > source_dim or dim > len(rows):
        raise EmbinitError(
            f"PCA cannot take {plural(len(rows), 'row')} of {source_dim:,} dimensions to {dim:,}; choose the projection "
            "orthogonal"
        )
    centered = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centered.T @ centered)
    return as_matrix(rows.astype(np.float64) @ directions[:, ::-1][:, :dim])
