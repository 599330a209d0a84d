"""`load`: any source by one name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest
from embinit.files import compression
from embinit.hub import is_id
from embinit.sources.arrays import read_npy, read_npz, read_object, read_safetensors
from embinit.sources.catalogue import fetched_path, is_name
from embinit.sources.checkpoint import read_checkpoint
from embinit.sources.fasttext import read_fasttext
from embinit.sources.gatherer import Ask
from embinit.sources.repositories import Folder, Hub
from embinit.sources.sniff import sniff
from embinit.sources.text import read_text
from embinit.sources.word2vec import read_word2vec
from embinit.types import Embeddings


def load(
    source: Any,
    wanted: Collection[str] | None = None,
    *,
    tokens: Sequence[str] | None = None,
    most: int | None = None,
    compose: bool = True,
) -> Embeddings:
    """Return the tokens and vectors of a source; with `wanted`, only those, at the memory of those.

    `source` is a file (GloVe, word2vec or fastText text or binary, .npy, .npz, .safetensors, plain or compressed), a
    member of a zip archive (`glove.6B.zip::glove.6B.50d.txt`), a Hugging Face or model2vec folder or hub id, one of its
    tensors (`FOLDER::tensor.name`), a name that `embinit fetch` has fetched (`glove:6B.300d`), a gensim KeyedVectors,
    or a tensor or array together with `tokens`. The format is told by content, not by name. `most` stops after that many
    rows (vector files begin with their commonest words); `compose=False` keeps a fastText model from making the wanted
    words that it lacks.

    >>> load("glove.6B.50d.txt", wanted={"cat", "dog"})      # doctest: +SKIP
    Embeddings(2 x 50, GloVe text, 'glove.6B.50d.txt')
    """
    wanted = None if wanted is None else frozenset(wanted)
    if isinstance(source, Embeddings):
        return source
    if not isinstance(source, str | Path):
        return _first(read_object(source, tokens, wanted), most)
    spec = str(source)
    if not spec.strip():
        raise EmbinitError("the source is empty; give a file, a folder or a hub id")
    name, _, detail = spec.partition("::")
    ask = Ask(wanted, most, compose)
    if is_name(name) and not Path(name).exists():
        path, member = fetched_path(name)
        return _load_file(path, detail or member, ask, spec)
    try:
        path = Path(name).expanduser()
        if path.is_dir():
            return _load_folder(path, detail or None, ask)
        if path.is_file():
            return _load_file(path, detail or None, ask, spec)
        if path.exists():
            raise EmbinitError(f"{name} is no regular file")
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot read {name}: {error.strerror or error}") from None
    except RuntimeError as error:  # `~nobody`
        raise EmbinitError(f"cannot read {name}: {error}") from None
    if isinstance(source, str) and is_id(name, owned=False):
        return read_checkpoint(Hub(name, _beside(path)), detail or None, ask)
    raise EmbinitError(f"no such file: {name}{_beside(path)}")


def _beside(path: Path) -> str:
    """Return `; did you mean 'x'?` where a file or folder of a close name lies there."""
    try:
        near = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    hint = closest(path.name, near) if len(near) < 5000 else ""
    return hint if "did you mean" in hint else ""


def _load_folder(path: Path, tensor: str | None, ask: Ask) -> Embeddings:
    inner = path / "0_StaticEmbedding"
    return read_checkpoint(Folder(inner if inner.is_dir() else path), tensor, ask)


def _load_file(path: Path, detail: str | None, ask: Ask, source: str) -> Embeddings:
    array_file = detail is not None and path.suffix in (".npy", ".safetensors")
    kind = sniff(path, None if array_file else detail, source)
    if kind == "text":
        return read_text(path, detail, ask, source)
    if kind == "word2vec":
        return read_word2vec(path, detail, ask, source)
    if kind == "fasttext":
        return read_fasttext(path, ask, source)
    if kind == "npz":
        return _first(read_npz(path, ask.wanted, source), ask.most)
    if compression(path) != "none":
        raise EmbinitError(f"{source} is a compressed .{kind} file, whose rows are read at random: unpack it first")
    if kind == "npy":
        return _first(read_npy(path, detail, ask.wanted, source), ask.most)
    return _first(read_safetensors(path, detail, ask.wanted, source), ask.most)


def _first(found: Embeddings, most: int | None) -> Embeddings:
    if most is None or len(found) <= most:
        return found
    return replace(found, tokens=found.tokens[:most], vectors=found.vectors[:most])
