"""`load`: the vectors of any source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest
from embinit.files import compression
from embinit.hub import is_id
from embinit.sources.arrays import read_npy, read_npz, read_object, read_safetensors, token_list_of
from embinit.sources.catalogue import fetched_path, is_name
from embinit.sources.checkpoint import read_checkpoint
from embinit.sources.fasttext import read_fasttext
from embinit.sources.format_detection import detect_format
from embinit.sources.repositories import Folder, Hub
from embinit.sources.row_collector import Request
from embinit.sources.text import read_text
from embinit.sources.word2vec import read_word2vec
from embinit.types import Embeddings

#: The folder of a sentence-transformers model that holds its embedding.
_STATIC_EMBEDDING = "0_StaticEmbedding"


def load(
    source: Any,
    wanted: Collection[str] | None = None,
    *,
    tokens: Any = None,
    most: int | None = None,
    compose: bool = True,
) -> Embeddings:
    """Return the tokens and vectors of a source.

    Parameters
    ----------
    source
        One of these. The format is detected from the content, not from the name.

        - a file: GloVe, word2vec or fastText text or binary, .npy, .npz or .safetensors, plain or compressed;
        - a member of a zip archive: `glove.6B.zip::glove.6B.50d.txt`;
        - a Hugging Face or model2vec folder or hub id, or one of its tensors: `FOLDER::tensor.name`;
        - a name that `embinit fetch` has downloaded: `glove:6B.300d`;
        - a gensim KeyedVectors, an embedding layer, a model of transformers, a tensor or an array. All but KeyedVectors need
          `tokens`, or are given as a pair: `(model, tokenizer)`.
    wanted
        The tokens to read. The memory is that of their rows. Without it all rows are read.
    tokens
        The tokens of a model, a layer, a tensor or an array in row order, or the tokenizer that has them.
    most
        Stop after this many rows. Vector files begin with the most frequent words.
    compose
        Whether a fastText model (a binary file, or gensim's object) composes the wanted words that it lacks from their
        n-grams.

    Returns
    -------
    Embeddings
        Tokens, vectors, and the counts of rows that were left out.

    Raises
    ------
    EmbinitError
        If there is no such source, or it does not hold vectors.

    Examples
    --------
    >>> load("glove.6B.50d.txt", wanted={"cat", "dog"})      # doctest: +SKIP
    Embeddings(2 x 50, GloVe text, 'glove.6B.50d.txt')
    """
    if isinstance(wanted, str):
        raise EmbinitError(f"wanted is a collection of tokens, not a text; give wanted=[{wanted!r}]")
    wanted = None if wanted is None else frozenset(wanted)
    if isinstance(source, Embeddings):
        return source
    if isinstance(source, tuple) and len(source) == 2 and tokens is None:
        source, tokens = source
    if not isinstance(source, str | Path):
        return _truncated(read_object(source, tokens, wanted, compose=compose), most)
    spec = str(source)
    if not spec.strip():
        raise EmbinitError("the source is empty; give a file, a folder or a hub id")
    name, _, detail = spec.partition("::")
    request = Request(wanted, most, compose)
    if is_name(name) and not Path(name).exists():
        path, member = fetched_path(name)
        return _load_file(path, detail or member, request, spec)
    try:
        path = Path(name).expanduser()
        if path.is_dir():
            return _load_folder(path, detail or None, request)
        if path.is_file():
            return _load_file(path, detail or None, request, spec)
        if path.exists():
            raise EmbinitError(f"{name} is not a regular file")
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot read {name}: {error.strerror or error}") from None
    except RuntimeError as error:  # `~nobody`
        raise EmbinitError(f"cannot read {name}: {error}") from None
    if isinstance(source, str) and is_id(name, owned=False):
        return read_checkpoint(Hub(name, _close_name(path)), detail or None, request)
    raise EmbinitError(f"no such file: {name}{_close_name(path)}")


def input_files(source: str | Path) -> list[Path]:
    """Return the files and folders on this machine that `load` reads for a source; nothing for a hub id."""
    name, _, detail = str(source).partition("::")
    try:
        path = fetched_path(name)[0] if is_name(name) and not Path(name).exists() else Path(name).expanduser()
        if path.is_dir():
            return [path, path / _STATIC_EMBEDDING]
        if path.suffix not in (".npy", ".safetensors"):
            return [path]
        return [path, token_list_of(path, (detail or None) if path.suffix == ".npy" else None)]
    except (EmbinitError, OSError, RuntimeError, ValueError):  # `load` says why the source cannot be read
        return []


def _close_name(path: Path) -> str:
    """Return `; did you mean 'x'?` if the folder has a file of a close name, and an empty text otherwise."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    hint = closest(path.name, names) if len(names) < 5000 else ""
    return hint if "did you mean" in hint else ""


def _load_folder(path: Path, tensor: str | None, request: Request) -> Embeddings:
    inner = path / _STATIC_EMBEDDING
    return read_checkpoint(Folder(inner if inner.is_dir() else path), tensor, request)


def _load_file(path: Path, detail: str | None, request: Request, source: str) -> Embeddings:
    array_file = detail is not None and path.suffix in (".npy", ".safetensors")
    file_format = detect_format(path, None if array_file else detail, source)
    if file_format == "text":
        return read_text(path, detail, request, source)
    if file_format == "word2vec":
        return read_word2vec(path, detail, request, source)
    if file_format == "fasttext":
        return read_fasttext(path, request, source)
    if file_format == "npz":
        return _truncated(read_npz(path, request.wanted, source), request.most)
    if compression(path) != "none":
        raise EmbinitError(
            f"{source} is a compressed .{file_format} file; unpack it first (its rows are read in any order)"
        )
    if file_format == "npy":
        return _truncated(read_npy(path, detail, request.wanted, source), request.most)
    return _truncated(read_safetensors(path, detail, request.wanted, source), request.most)


def _truncated(embeddings: Embeddings, most: int | None) -> Embeddings:
    if most is None or len(embeddings) <= most:
        return embeddings
    return replace(embeddings, tokens=embeddings.tokens[:most], vectors=embeddings.vectors[:most])
