"""Arrays with a token list: .npy, .npz, a single .safetensors file, a Python object."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import open_archive
from embinit.format import plural
from embinit.hub import embedding_of, is_model, is_tokenizer
from embinit.sources.safetensors import LocalBytes, TensorFile
from embinit.text.token_files import read_tokens
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Embeddings, Flags, Matrix, Origin, finite_rows

#: Names of a token list beside `x.npy`, best first.
_TOKEN_LIST_NAMES = (
    "{name}.tokens.json",
    "{stem}.tokens.json",
    "{stem}.vocab.txt",
    "{stem}.txt",
    "vocab.txt",
    "tokenizer.json",
)
#: Numbers of real vectors shrink by a few times at most. Archives that grow more are not unpacked.
_LARGEST_GROWTH = 200


def read_npy(path: Path, tokens: str | None, wanted: Collection[str] | None, source: str) -> Embeddings:
    """Return the rows of an .npy matrix, memory-mapped, with the tokens of the named list or of the list beside it."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy's header parser raises SyntaxError, TokenError and others
        raise EmbinitError(f"{source} cannot be read as .npy: {error}") from None
    return from_arrays(_read_token_list(path, tokens), matrix, wanted, source, "npy")


def read_npz(path: Path, wanted: Collection[str] | None, source: str) -> Embeddings:
    """Return the rows of an .npz archive that holds one matrix and one array of tokens."""
    with open_archive(path) as packed:
        size = sum(member.file_size for member in packed.infolist())
    if size > _LARGEST_GROWTH * path.stat().st_size:
        raise EmbinitError(
            f"{source} would unpack to {size / 1e9:.1f} GB, more than {_LARGEST_GROWTH} times its size, as no vectors do"
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:
        raise EmbinitError(f"{source} cannot be read as .npz: {error}") from None
    damaged = [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]  # numpy returns bytes
    if damaged:
        raise EmbinitError(f"{source} cannot be read as .npz: {damaged[0]} is not an array")
    matrices = [array for array in arrays.values() if array.ndim == 2 and array.dtype.kind in "fiu"]
    token_arrays = [array for array in arrays.values() if array.ndim == 1 and array.dtype.kind in "US"]
    if len(matrices) != 1 or len(token_arrays) != 1:
        raise EmbinitError(
            f"{source} holds {', '.join(arrays) or 'nothing'}; expected one matrix of numbers and one array of tokens"
        )
    tokens = [
        token.decode("utf-8", "surrogateescape") if isinstance(token, bytes) else str(token)
        for token in token_arrays[0].tolist()
    ]
    return from_arrays(tokens, matrices[0], wanted, source, "npz")


def read_safetensors(path: Path, tensor: str | None, wanted: Collection[str] | None, source: str) -> Embeddings:
    """Return the rows of the only matrix in a safetensors file, or of the named one, with the tokens beside the file."""
    file = TensorFile(LocalBytes(path))
    matrices = [name for name in file.names() if len(file.shape(name)) == 2]
    if tensor is not None and tensor not in matrices:
        raise EmbinitError(f"{source} has no matrix {tensor!r}; it has {', '.join(matrices[:8]) or 'none'}")
    if tensor is None and len(matrices) != 1:
        raise EmbinitError(f"{source} holds {len(matrices)} matrices; choose one as {path}::TENSOR")
    name = tensor or matrices[0]
    file.check(name)  # before the tokens, because a truncated file is the more important error
    tokens = _read_token_list(path, None)
    rows = file.shape(name)[0]
    if len(tokens) != rows:
        raise EmbinitError(f"{source}: {plural(len(tokens), 'token')} for {plural(rows, 'row')}")
    ids = [token_id for token_id, token in enumerate(tokens) if wanted is None or token in wanted]
    return from_arrays([tokens[token_id] for token_id in ids], file.rows(name, ids), None, source, "safetensors")


def read_object(vectors: Any, tokens: Any, wanted: Collection[str] | None, *, compose: bool = True) -> Embeddings:
    """Return the rows of a gensim KeyedVectors, a model, an embedding layer, a tensor or an array, with its tokens."""
    kind = f"{type(vectors).__module__.partition('.')[0]}.{type(vectors).__name__}"
    if is_model(vectors):
        vectors = embedding_of(vectors)
    if hasattr(vectors, "wv"):
        vectors = vectors.wv
    if hasattr(vectors, "index_to_key"):
        return read_keyed_vectors(vectors, wanted, kind, compose=compose)
    matrix = getattr(vectors, "weight", vectors)
    if getattr(matrix, "is_meta", False):
        raise EmbinitError(f"{kind} has no numbers yet: it is on torch's device meta; load its weights first")
    if hasattr(matrix, "detach"):
        matrix = matrix.detach().cpu().float().numpy()
    if not isinstance(matrix, np.ndarray):
        raise EmbinitError(
            f"cannot load {kind}; expected a path, a hub id, KeyedVectors, a model, a tensor or an array"
        )
    if tokens is None:
        raise EmbinitError(f"{kind} of shape {tuple(matrix.shape)} has no tokens; give them: load(x, tokens=[...])")
    if is_tokenizer(tokens):  # models may have more rows than their tokenizer has tokens
        vocabulary = as_vocabulary(tokens)
        if len(vocabulary) > len(matrix):
            raise EmbinitError(
                f"the tokenizer has {plural(len(vocabulary), 'token')}, but {kind} has {plural(len(matrix), 'row')}; give "
                f"its own tokenizer, or a list of {plural(len(matrix), 'token')}"
            )
        rows = from_arrays(vocabulary.tokens, matrix[: len(vocabulary)], wanted, kind, "array")
        return replace(rows, specials=vocabulary.specials)
    return from_arrays(list(tokens), matrix, wanted, kind, "array")


def read_keyed_vectors(vectors: Any, wanted: Collection[str] | None, source: str, *, compose: bool) -> Embeddings:
    """Return the rows of gensim's KeyedVectors. Those of fastText compose words that they lack from their n-grams."""
    # gensim has None for a word that a file has twice
    words = {row: str(token) for row, token in enumerate(vectors.index_to_key) if token is not None}
    embeddings = from_arrays(
        list(words.values()), np.asarray(vectors.vectors)[list(words)], wanted, source, "KeyedVectors"
    )
    if not hasattr(vectors, "vectors_ngrams"):
        return embeddings

    def compose_words(texts: Sequence[str]) -> tuple[Matrix, Flags]:
        rows = np.zeros((len(texts), embeddings.dim), dtype=np.float32)
        for place, text in enumerate(texts):
            with suppress(KeyError, UnicodeEncodeError):  # the model has no n-grams; half a character has none
                rows[place] = vectors.get_vector(text)
        return rows, rows.any(axis=1) & finite_rows(rows)

    embeddings = replace(embeddings, compose=compose_words)
    missing = sorted(frozenset(wanted) - set(words.values())) if wanted is not None and compose else []
    rows, usable = compose_words(missing)
    composed = [word for word, is_usable in zip(missing, usable.tolist(), strict=True) if is_usable]
    if not composed:
        return embeddings
    counts = {**embeddings.origin.counts, "composed from n-grams": len(composed)}
    return replace(
        embeddings,
        tokens=[*embeddings.tokens, *composed],
        vectors=np.concatenate([embeddings.vectors, rows[usable]]),
        origin=replace(embeddings.origin, counts=counts),
        composed=frozenset(composed),
    )


def from_arrays(
    tokens: Sequence[str], matrix: np.ndarray, wanted: Collection[str] | None, source: str, file_format: str
) -> Embeddings:
    """Return embeddings from a matrix and its tokens. The first of equal tokens wins; rows with NaN are rejected."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or not matrix.shape[1]:
        raise EmbinitError(
            f"{source} has shape {matrix.shape} of {matrix.dtype}; expected (tokens, dimensions) of numbers"
        )
    if len(tokens) != len(matrix):
        raise EmbinitError(f"{source}: {plural(len(tokens), 'token')} for {plural(len(matrix), 'row')}")
    rows: dict[str, int] = {}
    read = 0
    for row, token in enumerate(tokens):
        if wanted is None or token in wanted:
            rows.setdefault(token, row)
            read += 1
    counts = {"rows": read}
    if len(rows) < read:
        counts["duplicates"] = read - len(rows)
    vectors = np.array(matrix[list(rows.values())], dtype=np.float32)
    finite = finite_rows(vectors)
    kept = [token for token, is_finite in zip(rows, finite.tolist(), strict=True) if is_finite]
    if len(kept) < len(rows):
        counts["rejected"] = counts["rejected: NaN or infinite"] = len(rows) - len(kept)
    if not kept and wanted is None:
        raise EmbinitError(f"{source} has no usable row")
    return Embeddings(kept, vectors if finite.all() else vectors[finite], Origin(source, file_format, counts))


def token_list_of(path: Path, file_name: str | None) -> Path:
    """Return the named token list of a matrix, or the list beside the matrix."""
    if file_name is not None:
        candidate = path.with_name(file_name)
        chosen = candidate if candidate.exists() else Path(file_name)
        if not chosen.exists():
            raise EmbinitError(f"no such token list: {file_name} (searched beside {path} and in the current folder)")
        return chosen
    names = [pattern.format(name=path.name, stem=path.stem) for pattern in _TOKEN_LIST_NAMES]
    existing = [path.with_name(name) for name in names if path.with_name(name).is_file()]
    if not existing:
        raise EmbinitError(f"{path} has no tokens; put {names[1]} beside it, or give {path}::TOKENS")
    return existing[0]


def _read_token_list(path: Path, file_name: str | None) -> list[str]:
    """Return the tokens of the named list, or of the list beside the matrix."""
    return ["" if token is None else token for token in read_tokens(token_list_of(path, file_name)).tokens]
