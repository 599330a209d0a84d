"""A matrix and its vocabulary as files that other tools read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.export.static import write_model2vec, write_sentence_transformers
from embinit.files import replacing
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Matrix, Vocabulary, check_matrix

_BREAKS = frozenset(" \t\n\r\x0b\x0c\0")
#: Halves of surrogate pairs that do not stand for an undecodable byte: no file can hold them as text.
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")


@dataclass(frozen=True)
class Written:
    """What was written."""

    path: Path
    format: str
    files: tuple[Path, ...]
    #: tokens that the format cannot hold, and so are not in the file
    left_out: tuple[str, ...] = ()
    #: tokens that the format needs and that were added
    added: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A format that a matrix can be written in."""

    name: str
    ending: str
    about: str
    write: Callable[[Matrix, Vocabulary, Path], Written]
    #: whether the tokens are a file beside it
    tokens: bool = False


def format_of(path: Path, name: str | None = None) -> Format:
    """Return the format of that name, or the one that the path's ending means."""
    if name is not None:
        if name not in FORMATS:
            raise EmbinitError(f"unknown format {name!r}{closest(name, FORMATS)}")
        return FORMATS[name]
    for form in FORMATS.values():
        if form.ending and path.name.endswith(form.ending):
            return form
    endings = ", ".join(form.ending for form in FORMATS.values() if form.ending)
    raise EmbinitError(
        f"{path}: which format? End the name in one of {endings}, or say --format ({', '.join(FORMATS)})"
    )


def files_of(path: Path, format: str | None = None) -> tuple[Path, ...]:
    """Return every file that `write` puts at this path and beside it, with a card; for a folder, the folder."""
    form = format_of(path, format)
    if not form.ending:
        return (path,)
    return (path, *([_tokens_beside(path)] if form.tokens else []), _card_beside(path))


def _tokens_beside(path: Path) -> Path:
    return path.with_name(path.name + ".tokens.json")


def _card_beside(path: Path) -> Path:
    return path.with_name(path.name + ".card.json")


def write(
    matrix: Matrix,
    vocabulary: Vocabulary | Sequence[str] | Path,
    path: str | Path,
    *,
    format: str | None = None,
    card: dict[str, Any] | None = None,
) -> Written:
    """Write the matrix with its vocabulary and card; a failed write leaves what was there."""
    matrix, vocabulary, path = check_matrix(matrix), as_vocabulary(vocabulary), Path(path)
    if len(matrix) != len(vocabulary):
        raise EmbinitError(f"{len(matrix)} rows for {len(vocabulary)} tokens")
    if not np.isfinite(matrix).all():
        raise EmbinitError("the matrix has NaN or infinite numbers; nothing was written")
    form = format_of(path, format)
    if card is None:
        return form.write(matrix, vocabulary, path)
    if not form.ending:
        written = form.write(matrix, vocabulary, path)
        beside = path / "embinit.json"
        with replacing(beside) as out:
            out.write(_card_text(card, written))
    else:
        beside = _card_beside(path)
        with replacing(beside) as out:  # opened first: where it cannot be written, nothing is
            written = form.write(matrix, vocabulary, path)
            out.write(_card_text(card, written))
    return replace(written, files=(*written.files, beside))


def _card_text(card: dict[str, Any], written: Written) -> bytes:
    content = {**card, "format": written.format, "left out": written.left_out, "added": written.added}
    return json.dumps(content, indent=2, allow_nan=False).encode()


@contextmanager
def _with_tokens(path: Path, vocabulary: Vocabulary) -> Iterator[tuple[IO[bytes], tuple[Path, ...]]]:
    """Yield the file to write and the names of all: the tokens, with counts where known, go beside it together with it.

    They are JSON, which holds any token; a line each would break at `\\n`.
    """
    beside = _tokens_beside(path)
    counts = None if vocabulary.counts is None else vocabulary.counts.tolist()
    content = {"tokens": list(vocabulary.tokens), "counts": counts, "specials": sorted(vocabulary.specials)}
    with replacing(beside) as tokens, replacing(path) as out:
        tokens.write(json.dumps(content, indent=2).encode())
        yield out, (path, beside)


def _safetensors(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    from safetensors.numpy import save

    with _with_tokens(path, vocabulary) as (out, files):
        out.write(save({"embedding.weight": np.ascontiguousarray(matrix)}, metadata={"format": "pt"}))
    return Written(path, "safetensors", files)


def _npy(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    with _with_tokens(path, vocabulary) as (out, files):
        np.save(out, matrix, allow_pickle=False)
    return Written(path, "npy", files)


def _glove(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    return _text(matrix, vocabulary, path, "glove", header=False)


def _word2vec(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    return _text(matrix, vocabulary, path, "word2vec", header=True)


def _text(matrix: Matrix, vocabulary: Vocabulary, path: Path, name: str, header: bool) -> Written:
    kept, left_out = _writable(vocabulary.tokens, path)
    line = " ".join(["%.9g"] * matrix.shape[1])  # nine digits bring every float32 back
    with replacing(path) as out:
        if header:
            out.write(f"{len(kept)} {matrix.shape[1]}\n".encode())
        for row in kept:
            out.write(_bytes(vocabulary.tokens[row]) + f" {line % tuple(matrix[row].tolist())}\n".encode())
    return Written(path, name, (path,), left_out)


def _word2vec_binary(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    kept, left_out = _writable(vocabulary.tokens, path)
    with replacing(path) as out:
        out.write(f"{len(kept)} {matrix.shape[1]}\n".encode())
        for row in kept:
            _binary_row(out, vocabulary.tokens[row], matrix[row])
    return Written(path, "word2vec-bin", (path,), left_out)


def _binary_row(out: IO[bytes], token: str, row: Matrix) -> None:
    out.write(_bytes(token) + b" " + row.astype("<f4").tobytes() + b"\n")


def _bytes(token: str) -> bytes:
    return token.encode("utf-8", "surrogateescape")


def _writable(tokens: Sequence[str], path: Path) -> tuple[list[int], tuple[str, ...]]:
    """Return the rows whose tokens can stand between spaces, and the tokens that cannot: empty, with white space or NUL."""
    fits = [bool(token) and not _BREAKS & set(token) and _HALF.search(token) is None for token in tokens]
    if not any(fits):
        raise EmbinitError(f"{path}: no token can be written as text, all are empty or hold white space")
    return [row for row, ok in enumerate(fits) if ok], tuple(
        token for token, ok in zip(tokens, fits, strict=True) if not ok
    )


def _model2vec(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    return Written(path, "model2vec", *write_model2vec(matrix, vocabulary, path))


def _sentence_transformers(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    return Written(path, "sentence-transformers", *write_sentence_transformers(matrix, vocabulary, path))


FORMATS = {
    form.name: form
    for form in (
        Format("safetensors", ".safetensors", "embedding.weight, with FILE.tokens.json", _safetensors, tokens=True),
        Format("npy", ".npy", "a numpy array, with FILE.tokens.json", _npy, tokens=True),
        Format("glove", ".txt", "GloVe text: a token and its numbers on each line", _glove),
        Format("word2vec", ".vec", "headed text: fairseq, JoeyNMT, OpenNMT-py, eole, Marian, gensim", _word2vec),
        Format("word2vec-bin", ".bin", "word2vec's binary format: gensim", _word2vec_binary),
        Format("model2vec", "", "a folder for model2vec's StaticModel", _model2vec),
        Format(
            "sentence-transformers", "", "a folder for SentenceTransformer (StaticEmbedding)", _sentence_transformers
        ),
    )
}
