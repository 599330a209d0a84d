"""A matrix and its vocabulary as files that other tools read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.export.static import write_model2vec, write_sentence_transformers
from embinit.files import replacing
from embinit.types import Matrix, Vocabulary

_SPACES = frozenset(" \t\n\r\x0b\x0c")


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


def write(
    matrix: Matrix, vocabulary: Vocabulary, path: Path, *, format: str | None = None, card: dict[str, Any] | None = None
) -> Written:
    """Write the matrix with its vocabulary and card; a failed write leaves what was there."""
    if len(matrix) != len(vocabulary):
        raise EmbinitError(f"{len(matrix)} rows for {len(vocabulary)} tokens")
    if not np.isfinite(matrix).all():
        raise EmbinitError("the matrix has NaN or infinite numbers; nothing was written")
    form = format_of(path, format)
    written = form.write(matrix, vocabulary, path)
    if card is None:
        return written
    beside = path / "embinit.json" if path.is_dir() else path.with_name(path.name + ".card.json")
    content = {**card, "format": form.name, "left out": list(written.left_out), "added": list(written.added)}
    _write_json(beside, content)
    return Written(path, form.name, (*written.files, beside), written.left_out, written.added)


def _write_json(path: Path, content: Any) -> None:
    with replacing(path) as out:
        out.write(json.dumps(content, indent=2).encode())


def _tokens_beside(path: Path, vocabulary: Vocabulary) -> Path:
    """Write the tokens as JSON, which holds any token (a line each would break at `\\n`), with counts where known."""
    beside = path.with_name(path.name + ".tokens.json")
    counts = None if vocabulary.counts is None else vocabulary.counts.tolist()
    _write_json(beside, {"tokens": list(vocabulary.tokens), "counts": counts, "specials": sorted(vocabulary.specials)})
    return beside


def _safetensors(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    from safetensors.numpy import save

    with replacing(path) as out:
        out.write(save({"embedding.weight": np.ascontiguousarray(matrix)}, metadata={"format": "pt"}))
    return Written(path, "safetensors", (path, _tokens_beside(path, vocabulary)))


def _npy(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    with replacing(path) as out:
        np.save(out, matrix, allow_pickle=False)
    return Written(path, "npy", (path, _tokens_beside(path, vocabulary)))


def _glove(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    return _text(matrix, vocabulary, path, "glove", header=False)


def _word2vec(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    return _text(matrix, vocabulary, path, "word2vec", header=True)


def _text(matrix: Matrix, vocabulary: Vocabulary, path: Path, name: str, header: bool) -> Written:
    kept, left_out = _writable(vocabulary.tokens)
    line = " ".join(["%.9g"] * matrix.shape[1])  # nine digits bring every float32 back
    with replacing(path) as out:
        if header:
            out.write(f"{len(kept)} {matrix.shape[1]}\n".encode())
        for row in kept:
            out.write(_bytes(vocabulary.tokens[row]) + f" {line % tuple(matrix[row].tolist())}\n".encode())
    return Written(path, name, (path,), left_out)


def _word2vec_binary(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    kept, left_out = _writable(vocabulary.tokens)
    with replacing(path) as out:
        out.write(f"{len(kept)} {matrix.shape[1]}\n".encode())
        for row in kept:
            _binary_row(out, vocabulary.tokens[row], matrix[row])
    return Written(path, "word2vec-bin", (path,), left_out)


def _binary_row(out: IO[bytes], token: str, row: Matrix) -> None:
    out.write(_bytes(token) + b" " + row.astype("<f4").tobytes() + b"\n")


def _bytes(token: str) -> bytes:
    return token.encode("utf-8", "surrogateescape")


def _writable(tokens: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return the rows whose tokens can stand between spaces, and the tokens that cannot: empty or with white space."""
    kept = [row for row, token in enumerate(tokens) if token and not _SPACES & set(token)]
    inside = set(kept)
    return kept, tuple(token for row, token in enumerate(tokens) if row not in inside)


def _model2vec(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    files, added = write_model2vec(matrix, vocabulary, path)
    return Written(path, "model2vec", files, added=added)


def _sentence_transformers(matrix: Matrix, vocabulary: Vocabulary, path: Path) -> Written:
    files, added = write_sentence_transformers(matrix, vocabulary, path)
    return Written(path, "sentence-transformers", files, added=added)


FORMATS = {
    form.name: form
    for form in (
        Format("safetensors", ".safetensors", "embedding.weight, with FILE.tokens.json", _safetensors),
        Format("npy", ".npy", "a numpy array, with FILE.tokens.json", _npy),
        Format("glove", ".txt", "GloVe text: a token and its numbers on each line", _glove),
        Format("word2vec", ".vec", "headed text: fairseq, JoeyNMT, OpenNMT-py, eole, Marian, gensim", _word2vec),
        Format("word2vec-bin", ".bin", "word2vec's binary format: gensim", _word2vec_binary),
        Format("model2vec", "", "a folder for model2vec's StaticModel", _model2vec),
        Format(
            "sentence-transformers", "", "a folder for SentenceTransformer (StaticEmbedding)", _sentence_transformers
        ),
    )
}
