"""Arrays with a token list: .npy, .npz, a single .safetensors, a Python object."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embinit.errors import EmbinitError
from embinit.sources.tensors import LocalBytes, TensorFile
from embinit.text.token_files import read_tokens
from embinit.types import Embeddings, Origin, finite_rows

#: What a token list beside `x.npy` may be called.
SIDECARS = ("{name}.tokens.json", "{stem}.tokens.json", "{stem}.vocab.txt", "{stem}.txt", "vocab.txt", "tokenizer.json")


def read_npy(path: Path, tokens: str | None, wanted: Collection[str] | None, source: str) -> Embeddings:
    """Return the rows of an .npy matrix, memory-mapped, with the tokens of the list beside it or named."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy's header parser lets SyntaxError, TokenError and others through
        raise EmbinitError(f"{source} cannot be read as .npy: {error}") from None
    return from_arrays(_listed(path, tokens), matrix, wanted, source, "npy")


def read_npz(path: Path, wanted: Collection[str] | None, source: str) -> Embeddings:
    """Return the rows of an .npz archive that holds one matrix and one array of tokens."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:
        raise EmbinitError(f"{source} cannot be read as .npz: {error}") from None
    matrices = [array for array in arrays.values() if array.ndim == 2 and array.dtype.kind in "fiu"]
    lists = [array for array in arrays.values() if array.ndim == 1 and array.dtype.kind in "US"]
    if len(matrices) != 1 or len(lists) != 1:
        raise EmbinitError(
            f"{source} holds {', '.join(arrays) or 'nothing'}; expected one matrix of numbers and one array of tokens"
        )
    tokens = [t.decode("utf-8", "surrogateescape") if isinstance(t, bytes) else str(t) for t in lists[0].tolist()]
    return from_arrays(tokens, matrices[0], wanted, source, "npz")


def read_safetensors(path: Path, detail: str | None, wanted: Collection[str] | None, source: str) -> Embeddings:
    """Return the rows of a lone safetensors file: its only matrix or the one named, with the tokens beside it."""
    file = TensorFile(LocalBytes(path))
    matrices = [name for name in file.names() if len(file.shape(name)) == 2]
    if detail is not None and detail not in matrices:
        raise EmbinitError(f"{source}: no matrix {detail!r}; there is {', '.join(matrices[:8]) or 'none'}")
    if detail is None and len(matrices) != 1:
        raise EmbinitError(f"{source} holds {len(matrices)} matrices; name one as {path}::TENSOR")
    name = detail or matrices[0]
    file.check(name)  # first: a file that is cut short needs no tokens
    tokens = _listed(path, None)
    rows = file.shape(name)[0]
    if len(tokens) != rows:
        raise EmbinitError(f"{source}: {len(tokens)} tokens for {rows} rows")
    picked = [i for i, token in enumerate(tokens) if wanted is None or token in wanted]
    return from_arrays([tokens[i] for i in picked], file.rows(name, picked), None, source, "safetensors")


def read_object(thing: Any, tokens: Sequence[str] | None, wanted: Collection[str] | None) -> Embeddings:
    """Return the rows of a gensim KeyedVectors, a torch tensor or embedding layer, or an array, with its tokens."""
    kind = f"{type(thing).__module__.partition('.')[0]}.{type(thing).__name__}"
    if hasattr(thing, "wv"):
        thing = thing.wv
    if hasattr(thing, "index_to_key"):
        # gensim leaves None where a file had the same word twice
        pairs = [(i, token) for i, token in enumerate(thing.index_to_key) if token is not None]
        matrix = np.asarray(thing.vectors)[[i for i, _ in pairs]]
        return from_arrays([str(token) for _, token in pairs], matrix, wanted, kind, "KeyedVectors")
    matrix = getattr(thing, "weight", thing)
    if hasattr(matrix, "detach"):
        matrix = matrix.detach().cpu().float().numpy()
    if not isinstance(matrix, np.ndarray):
        raise EmbinitError(f"cannot load {kind}; expected a path, a hub id, KeyedVectors, a tensor or an array")
    if tokens is None:
        raise EmbinitError(f"{kind} of shape {tuple(matrix.shape)} comes without tokens: load(x, tokens=[...])")
    return from_arrays(list(tokens), matrix, wanted, kind, "array")


def from_arrays(
    tokens: Sequence[str], matrix: np.ndarray, wanted: Collection[str] | None, source: str, form: str
) -> Embeddings:
    """Return embeddings from a matrix and its tokens; the first of equal tokens wins, NaN rows are counted out."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise EmbinitError(
            f"{source}: shape {matrix.shape} of {matrix.dtype}; expected (tokens, dimensions) of numbers"
        )
    if len(tokens) != len(matrix):
        raise EmbinitError(f"{source}: {len(tokens)} tokens for {len(matrix)} rows")
    rows: dict[str, int] = {}
    for i, token in enumerate(tokens):
        if wanted is None or token in wanted:
            rows.setdefault(token, i)
    counts = {"rows": len(matrix) if wanted is None else len(rows)}
    if wanted is None and len(rows) < len(tokens):
        counts["duplicates"] = len(tokens) - len(rows)
    vectors = np.array(matrix[list(rows.values())], dtype=np.float32)
    good = finite_rows(vectors)
    kept = [token for token, ok in zip(rows, good.tolist(), strict=True) if ok]
    if len(kept) < len(rows):
        counts["rejected"] = counts["rejected: NaN or infinite"] = len(rows) - len(kept)
    if not kept and wanted is None:
        raise EmbinitError(f"{source} has no usable row")
    return Embeddings(kept, vectors if good.all() else vectors[good], Origin(source, form, counts))


def _listed(path: Path, tokens: str | None) -> list[str]:
    if tokens is not None:
        beside = path.with_name(tokens)
        chosen = beside if beside.exists() else Path(tokens)
        if not chosen.exists():
            raise EmbinitError(f"no such token list: {tokens} (looked beside {path} and here)")
    else:
        names = [pattern.format(name=path.name, stem=path.stem) for pattern in SIDECARS]
        found = [path.with_name(name) for name in names if path.with_name(name).is_file()]
        if not found:
            raise EmbinitError(f"{path} comes without tokens: put {names[1]} beside it, or give {path}::TOKENS")
        chosen = found[0]
    return ["" if token is None else token for token in read_tokens(chosen).tokens]
