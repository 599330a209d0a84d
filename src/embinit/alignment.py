"""A source's vectors in a vocabulary's order: which token gets which row, and how it came by it."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.seeds import stream
from embinit.sources.load import load
from embinit.text.markers import Scheme, marked, plain, scheme_of
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Aligned, Embeddings, Flags, Kind, Matrix, Vocabulary, as_matrix

Projection = Literal["pca", "orthogonal", "pad"]

_SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
#: How many of a word source's commonest words teach the pieces of a sub-word vocabulary.
_TEACHERS = 50_000


@dataclass(frozen=True)
class Matching:
    """Which ways of matching are allowed, beside the exact one."""

    case: bool = True
    markers: bool = True
    compose: bool = True
    specials: bool = False


def align(
    source: Any,
    vocabulary: Vocabulary | Sequence[str] | Path | None = None,
    *,
    matching: Matching | None = None,
    dim: int | None = None,
    project: Projection | None = None,
    seed: int = 0,
) -> Aligned:
    """Return a row for each token of the vocabulary that the source knows, exactly or by a way that `matching` allows.

    `source` is whatever `load` takes; of files only the rows in question are read. The vocabulary is a list of tokens, or
    the path of a token list, a tokenizer's file or a checkpoint's folder; without one, all rows of the source are read.
    Special tokens (`<pad>`, `[CLS]`) get no row unless `matching.specials`, and then only an exact one. With `dim`,
    another dimension is an error unless `project` says how to get there.
    """
    matching = matching or Matching()
    if vocabulary is None:
        return _project(_whole(load(source)), dim, project, seed)
    vocabulary = as_vocabulary(vocabulary)
    # Other spellings are asked for too: the source's own scheme is not known before it is read.
    embeddings = load(source, wanted=spellings(vocabulary, matching), compose=False)
    aligned = _match(embeddings, vocabulary, matching)
    if matching.compose:
        aligned = _composed(aligned, embeddings, source)
    return _project(aligned, dim, project, seed)


def _whole(embeddings: Embeddings) -> Aligned:
    vocabulary = Vocabulary(tuple(embeddings.tokens), None, embeddings.specials, embeddings.origin.source)
    count = len(embeddings)
    kinds: list[Kind] = ["exact"] * count
    return Aligned(vocabulary, embeddings.vectors, np.ones(count, dtype=bool), tuple(kinds), embeddings.origin)


# ---------------------------------------------------------------- spellings


def spellings(vocabulary: Vocabulary, matching: Matching) -> frozenset[str]:
    """Return every spelling under which a source may know the vocabulary's tokens."""
    scheme = scheme_of(vocabulary.tokens)
    forms: set[str] = set()
    for token in vocabulary.tokens:
        forms.add(token)
        if token in vocabulary.specials:
            continue
        text, begins = plain(token, scheme) if matching.markers else (token, True)
        for cased in _cases(text) if matching.case else (text,):
            forms.add(cased)
            if matching.markers:
                forms.update(marked(cased, begins, other) for other in _SCHEMES)
    return frozenset(forms)


def _cases(text: str) -> tuple[str, ...]:
    return (text, text.lower(), text.capitalize(), text.upper())


def _has_letter(text: str) -> bool:
    return any(unicodedata.category(char)[0] == "L" for char in text)


def _match(embeddings: Embeddings, vocabulary: Vocabulary, matching: Matching) -> Aligned:
    vectors = np.zeros((len(vocabulary), embeddings.dim), dtype=np.float32)
    rows: list[int] = []
    places: list[int] = []
    kinds: list[Kind] = []
    own = scheme_of(vocabulary.tokens)
    # Every spelling was asked for, so the marks among the rows that came are the source's own.
    theirs = scheme_of(embeddings.tokens)
    for place, token in enumerate(vocabulary.tokens):
        row, kind = _row_of(token, vocabulary, embeddings, own, theirs, matching)
        kinds.append(kind)
        if row is not None:
            rows.append(row)
            places.append(place)
    vectors[places] = embeddings.vectors[rows]
    found = np.zeros(len(vocabulary), dtype=bool)
    found[places] = True
    return Aligned(vocabulary, vectors, found, tuple(kinds), embeddings.origin)


def _row_of(
    token: str,
    vocabulary: Vocabulary,
    embeddings: Embeddings,
    own: Scheme,
    theirs: Scheme,
    matching: Matching,
) -> tuple[int | None, Kind]:
    index = embeddings.index
    if token in vocabulary.specials:
        row = index.get(token) if matching.specials else None
        return row, "special" if row is None else "exact"
    text, begins = plain(token, own) if matching.markers else (token, True)
    same = own == theirs or not matching.markers

    def spelled(cased: str) -> str | None:
        if same:
            return marked(cased, begins, own) if matching.markers else cased
        if theirs == "words" and not begins and _has_letter(cased):
            return None  # `##ing` is not the word `ing`
        return marked(cased, begins, theirs)

    def known(spelling: str | None) -> int | None:
        return None if spelling is None or spelling in embeddings.specials else index.get(spelling)

    target = token if same else spelled(text)
    row = known(target)
    if row is None and not same and not _has_letter(text):
        target = token
        row = known(target)
    if row is not None:
        composed = target in embeddings.composed
        return row, "composed" if composed else "exact" if target == token else "marker"
    if matching.case:
        for cased in _cases(text)[1:]:
            row = known(spelled(cased))
            if row is not None:
                return row, "case"
    return None, "missing"


# ---------------------------------------------------------------- composition


def _composed(aligned: Aligned, embeddings: Embeddings, source: Any) -> Aligned:
    """Return the alignment with missing rows made from the source's sub-words, or from words that hold a piece."""
    own = scheme_of(aligned.vocabulary.tokens)
    missing = [i for i, kind in enumerate(aligned.kinds) if kind == "missing"]
    texts = {i: plain(aligned.vocabulary.tokens[i], own) for i in missing}
    whole = [i for i in missing if texts[i][1] and texts[i][0]]
    if embeddings.compose is not None and whole:
        vectors, made = embeddings.compose([texts[i][0] for i in whole])
        aligned = _with_rows(aligned, whole, vectors, made)
        missing = [i for i in missing if not aligned.found[i]]
    if missing and aligned.vocabulary.split is not None:
        teachers = load(source, most=_TEACHERS) if not isinstance(source, Embeddings) else embeddings
        if scheme_of(teachers.tokens) != "words":
            return aligned
        vectors, made = _taught([aligned.vocabulary.tokens[i] for i in missing], aligned.vocabulary.split, teachers)
        aligned = _with_rows(aligned, missing, vectors, made)
    return aligned


def _taught(pieces: Collection[str], split: Any, teachers: Embeddings) -> tuple[Matrix, Flags]:
    """Return for each piece the mean vector of the source's words that the vocabulary's tokenizer splits into it."""
    place = {piece: i for i, piece in enumerate(pieces)}
    holders: dict[int, list[int]] = defaultdict(list)
    for row, word in enumerate(teachers.tokens[:_TEACHERS]):
        if not word or not word.isprintable():
            continue
        for piece in set(split(word)):
            if piece in place:
                holders[place[piece]].append(row)
    vectors = np.zeros((len(place), teachers.dim), dtype=np.float32)
    made = np.zeros(len(place), dtype=bool)
    for i, rows in holders.items():
        vectors[i] = teachers.vectors[rows].mean(axis=0)
        made[i] = True
    return vectors, made


def _with_rows(aligned: Aligned, places: Sequence[int], vectors: Matrix, made: Flags) -> Aligned:
    chosen = np.asarray(places)[made]
    merged, found, kinds = aligned.vectors.copy(), aligned.found.copy(), list(aligned.kinds)
    merged[chosen] = vectors[made]
    found[chosen] = True
    for i in chosen.tolist():
        kinds[i] = "composed"
    return replace(aligned, vectors=merged, found=found, kinds=tuple(kinds))


# ---------------------------------------------------------------- dimensions


def _project(aligned: Aligned, dim: int | None, project: Projection | None, seed: int) -> Aligned:
    if project is not None and project not in get_args(Projection):
        raise EmbinitError(f"unknown projection {project!r}{closest(project, get_args(Projection))}")
    if project is not None and dim is None:
        raise EmbinitError("a projection needs the dimension to go to: dim=300, on the command line --dim 300")
    if dim is None or dim == aligned.dim:
        return aligned
    if dim < 1:
        raise EmbinitError(f"{dim} dimensions; at least one is needed")
    if project is None:
        raise EmbinitError(
            f"{aligned.origin.source} has {aligned.dim} dimensions, the model {dim}; "
            "say how to get there: project=pca, on the command line --project pca (or orthogonal, pad)"
        )
    rows = _reshaped(aligned.rows, dim, project, seed)
    vectors = np.zeros((len(aligned), dim), dtype=np.float32)
    vectors[aligned.found] = rows
    return replace(aligned, vectors=vectors)


def _reshaped(rows: Matrix, dim: int, project: Projection, seed: int) -> Matrix:
    have = rows.shape[1]
    if project == "pad":
        if dim < have:
            raise EmbinitError(f"padding cannot take {have} dimensions to {dim}; project by pca or orthogonal")
        return np.pad(rows, ((0, 0), (0, dim - have)))
    if project == "orthogonal":
        # Orthonormal rows or columns: growing keeps lengths and angles, shrinking keeps σ and, roughly, angles.
        square = stream(seed, "orthogonal projection").standard_normal((max(have, dim), min(have, dim)))
        basis = np.linalg.qr(square)[0]
        return as_matrix(rows.astype(np.float64) @ (basis.T if dim > have else basis))
    if dim > have or dim > len(rows):
        raise EmbinitError(f"PCA cannot take {len(rows)} rows of {have} dimensions to {dim}; project by orthogonal")
    centered = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centered.T @ centered)
    return as_matrix(rows.astype(np.float64) @ directions[:, ::-1][:, :dim])
