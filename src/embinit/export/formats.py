"""Files of a matrix and its vocabulary that other tools read."""

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
from embinit.export.card import card_path
from embinit.export.static import write_model2vec, write_sentence_transformers
from embinit.files import replacing
from embinit.format import listed, plural
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Matrix, Vocabulary, check_matrix

_BREAKS = frozenset(" \t\n\r\x0b\x0c\0")
#: Halves of surrogate pairs, except those that stand for an undecodable byte; no text file can hold them.
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")


@dataclass(frozen=True)
class Written:
    """The files that were written."""

    path: Path
    format: str
    files: tuple[Path, ...]
    #: tokens that the format cannot hold
    left_out: tuple[str, ...] = ()
    #: tokens that the format needs, added to the matrix
    added: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Written({listed([str(file) for file in self.files])}: {self.format})"


@dataclass(frozen=True)
class Format:
    """A format that a matrix can be written in."""

    name: str
    ending: str
    about: str
    write: Callable[[Matrix, Vocabulary, Path], Written]
    #: whether the tokens are in a file beside the matrix
    tokens: bool = False


def format_of(path: Path, name: str | None = None) -> Format:
    """Return the format of a name, or of a path's ending."""
    if name is not None:
        if name not in FORMATS:
            raise EmbinitError(f"unknown format {name!r}{closest(name, FORMATS)}")
        return FORMATS[name]
    for form in FORMATS.values():
        if form.ending and path.name.endswith(form.ending):
            return form
    endings = ", ".join(form.ending for form in FORMATS.values() if form.ending)
    raise EmbinitError(
        f"{path}: which format? End the name in one of {endings}, or set --format ({', '.join(FORMATS)})"
    )


def files_of(path: Path, format: str | None = None) -> tuple[Path, ...]:
    """Return the files that `write` makes for this path and a card; for a format that is a folder, the folder."""
    form = format_of(path, format)
    if not form.ending:
        return (path,)
    return (path, *([_tokens_beside(path)] if form.tokens else []), card_path(path))


def _tokens_beside(path: Path) -> Path:
    return path.with_name(path.name + ".tokens.json")


def write(
    matrix: Matrix | Sequence[Sequence[float]],
    vocabulary: Vocabulary | Sequence[str] | Path,
    path: str | Path,
    *,
    format: str | None = None,
    card: dict[str, Any] | None = None,
) -> Written:
    """Write a matrix with its vocabulary, and return the files; a failed write leaves the old files.

    Parameters
    ----------
    matrix
        One row for each token: an array or a tensor.
    vocabulary
        The tokens: a `Vocabulary`, a list, or the path of a token file or tokenizer.
    path
        The file, or the folder for model2vec and sentence-transformers.
    format
        A name of `embinit make --format`; by default the path's ending decides.
    card
        Plain data that is written beside the matrix as JSON.

    Returns
    -------
    Written
        The files, and the tokens that the format could not hold or needed in addition.

    Raises
    ------
    EmbinitError
        If the numbers of rows and tokens differ, or a number is NaN or infinite.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> write([[0.5, 1.0], [0.0, 2.0]], ["the", "cat"], f"{folder}/rows.txt").format
    'glove'
    """
    matrix, vocabulary, path = check_matrix(matrix), as_vocabulary(vocabulary), Path(path)
    if len(matrix) != len(vocabulary):
        raise EmbinitError(f"{plural(len(matrix), 'row')} for {plural(len(vocabulary), 'token')}")
    if not np.isfinite(matrix).all():
        raise EmbinitError("the matrix has NaN or infinite numbers; nothing was written")
    form = format_of(path, format)
    if card is None:
        return form.write(matrix, vocabulary, path)
    if not form.ending:
        written = form.write(matrix, vocabulary, path)
        beside = card_path(path)
        with replacing(beside) as out:
            out.write(_card_text(card, written))
    else:
        beside = card_path(path)
        with replacing(beside) as out:  # opened first, so that nothing is written if the card cannot be
            written = form.write(matrix, vocabulary, path)
            out.write(_card_text(card, written))
    return replace(written, files=(*written.files, beside))


def _card_text(card: dict[str, Any], written: Written) -> bytes:
    content = {**card, "format": written.format, "left out": written.left_out, "added": written.added}
    return json.dumps(content, indent=2, allow_nan=False).encode()


@contextmanager
def _with_tokens(path: Path, vocabulary: Vocabulary) -> Iterator[tuple[IO[bytes], tuple[Path, ...]]]:
    """Yield the file of the matrix and the names of both files; the tokens and their counts are written beside it.

    The tokens are JSON, which holds any token. One line for each token would break at a newline.
    """
    token_file = _tokens_beside(path)
    counts = None if vocabulary.counts is None else vocabulary.counts.tolist()
    content = {"tokens": list(vocabulary.tokens), "counts": counts, "specials": sorted(vocabulary.specials)}
    with replacing(token_file) as tokens, replacing(path) as out:
        tokens.write(json.dumps(content, indent=2).encode())
        yield out, (path, token_file)


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
    line = " ".join(["%.9g"] * matrix.shape[1])  # nine digits are enough to restore every float32
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
    """Return the rows of tokens that can stand between spaces, and the other tokens: empty, with white space or NUL."""
    fits = [bool(token) and not _BREAKS & set(token) and _HALF.search(token) is None for token in tokens]
    if not any(fits):
        raise EmbinitError(f"{path}: no token can be written as text, because all are empty or hold white space")
    left_out = tuple(token for token, fit in zip(tokens, fits, strict=True) if not fit)
    return [row for row, fit in enumerate(fits) if fit], left_out


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
