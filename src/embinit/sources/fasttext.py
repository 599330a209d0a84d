"""fastText's binary model: words, and hashed character n-grams that compose the words it lacks.

The layout follows fastText's own sources (dictionary.cc, densematrix.cc, version 12). Only the needed rows of the input
matrix are read.
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import compression
from embinit.sources.numbers import LARGEST_DIM
from embinit.sources.row_collector import Request, RowCollector, decode_tokens, encode_tokens
from embinit.text.markers import encode_token
from embinit.types import Embeddings, Flags, Matrix, as_matrix, finite_rows

MAGIC = 793_712_314
_VERSION = 12
_ARGUMENTS = "<12id"
_END_OF_SENTENCE = b"</s>"
#: Limits that only damaged files exceed: characters of an n-gram, and bytes of a word.
_LONGEST_NGRAM, _LONGEST_WORD = 100, 1 << 16
#: Number of words whose rows are read together: they share n-grams, and the memory stays small.
_BATCH = 512


@dataclass(frozen=True)
class _MatrixOnDisk:
    """A matrix whose rows are read one by one.

    A memory map would read sixteen pages around each row, which is a gigabyte for a few thousand words.
    """

    path: Path
    offset: int
    dim: int

    def means(self, file: IO[bytes], groups: Sequence[Sequence[int]]) -> Matrix:
        """Return the mean of each group of rows. A row that is in several groups is read once."""
        sizes = np.array([len(group) for group in groups])
        wanted, places = np.unique(np.concatenate([np.asarray(group) for group in groups]), return_inverse=True)
        width = 4 * self.dim
        rows = np.empty((len(wanted), self.dim), dtype="<f4")
        buffer = memoryview(rows.data).cast("B")
        for place, row in enumerate(wanted.tolist()):
            _read_into(file, buffer[place * width : (place + 1) * width], self.offset + row * width)
        ends = sizes.cumsum().tolist()
        with np.errstate(over="ignore", invalid="ignore"):  # the reader rejects rows that are NaN or infinite
            return as_matrix(
                [rows[places[end - size : end]].sum(axis=0) / size for size, end in zip(sizes, ends, strict=True)]
            )


def _read_into(file: IO[bytes], buffer: memoryview, offset: int) -> None:
    if hasattr(os, "preadv"):
        os.preadv(file.fileno(), [buffer], offset)
    else:
        file.seek(offset)
        file.readinto(buffer)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Model:
    words: dict[bytes, int]
    #: number of word rows, which come before the rows of n-grams; larger than `words` if a word occurs twice
    word_rows: int
    matrix: _MatrixOnDisk  # (words + buckets, dim)
    buckets: int
    shortest: int
    longest: int
    pruned: dict[int, int] | None

    def rows_of(self, word: bytes, hashes: Sequence[int]) -> list[int]:
        """Return the rows whose mean is the vector of a word: its own row, if it has one, and those of its n-grams."""
        own = self.words.get(word)
        rows = [] if own is None else [own]
        if word == _END_OF_SENTENCE or self.longest == 0 or self.buckets == 0:
            return rows
        buckets = [ngram_hash % self.buckets for ngram_hash in hashes]
        if self.pruned is not None:
            buckets = [self.pruned[bucket] for bucket in buckets if bucket in self.pruned]
        return rows + [self.word_rows + bucket for bucket in buckets]

    def vectors(self, words: Sequence[bytes]) -> tuple[Matrix, Flags]:
        """Return the vector of each word, and whether the word has a finite vector."""
        vectors = np.zeros((len(words), self.matrix.dim), dtype=np.float32)
        # A word that no dictionary can hold has no n-grams either: their number grows with its length.
        marked = [b"<" + word + b">" if len(word) <= _LONGEST_WORD else b"" for word in words]
        hashes = many_ngram_hashes(marked, self.shortest, self.longest)
        rows = [self.rows_of(word, word_hashes) for word, word_hashes in zip(words, hashes, strict=True)]
        has_rows = np.array([bool(word_rows) for word_rows in rows], dtype=bool)
        with self.matrix.path.open("rb", buffering=0) as file:
            for start in range(0, len(words), _BATCH):
                part = [i for i in range(start, min(start + _BATCH, len(words))) if has_rows[i]]
                if part:
                    vectors[part] = self.matrix.means(file, [rows[i] for i in part])
        return vectors, has_rows & finite_rows(vectors)


def read_fasttext(path: Path, request: Request, source: str) -> Embeddings:
    """Return the words of a fastText model. Wanted words that it lacks are composed from their n-grams."""
    if compression(path) != "none":
        raise EmbinitError(f"{source} is a compressed fastText model; unpack it first (its rows are read in any order)")
    try:
        model = _read_model(path, source)
    except (struct.error, IndexError):
        raise EmbinitError(f"{source} is a fastText model that ends inside its dictionary; download it again") from None
    wanted = None if request.wanted is None else encode_tokens(request.wanted)
    stored = [word for word in model.words if wanted is None or word in wanted][: request.most]
    rows = RowCollector(model.matrix.dim, len(stored))
    for start in range(0, len(stored), 4096):
        part = stored[start : start + 4096]
        vectors, usable = model.vectors(part)
        for i in np.flatnonzero(~usable).tolist():
            word = part[i].decode("utf-8", "replace")
            rows.reject("NaN or infinite", f"the row of {word!r} is NaN or infinite")
        rows.add([word for word, is_usable in zip(part, usable.tolist(), strict=True) if is_usable], vectors[usable])
    missing = sorted(wanted - model.words.keys()) if wanted is not None and request.compose else []
    vectors, usable = model.vectors(missing)
    composed = [word for word, is_usable in zip(missing, usable.tolist(), strict=True) if is_usable]
    if composed:
        rows.counts["composed from n-grams"] = len(composed)
        rows.add(composed, vectors[usable])

    def compose(tokens: Sequence[str]) -> tuple[Matrix, Flags]:
        return model.vectors([encode_token(token) for token in tokens])

    embeddings = rows.embeddings(source, "fastText binary", request)
    return replace(embeddings, composed=frozenset(decode_tokens(composed)[0]), compose=compose)


def many_ngram_hashes(words: Sequence[bytes], shortest: int, longest: int) -> list[list[int]]:
    """Return the hashes of each word's n-grams. ASCII words of equal length are hashed together."""
    result: list[list[int]] = [[] for _ in words]
    groups: dict[int, list[int]] = defaultdict(list)
    for i, word in enumerate(words):
        if not word:
            continue
        if word.isascii():
            groups[len(word)].append(i)
        else:
            result[i] = ngram_hashes(word, shortest, longest)
    for size, members in groups.items():
        text = np.frombuffer(b"".join(words[i] for i in members), dtype=np.uint8).reshape(-1, size).astype(np.uint32)
        value = np.full(text.shape, 2166136261, dtype=np.uint32)  # (words, starts)
        hashes = []
        for length in range(1, min(longest, size) + 1):
            starts = size - length + 1
            value = (value[:, :starts] ^ text[:, length - 1 :]) * np.uint32(16777619)
            if length >= shortest:
                # The marks < and > alone are not n-grams.
                hashes.append(value[:, 1:-1] if length == 1 else value)
        if hashes:
            for i, word_hashes in zip(members, np.concatenate(hashes, axis=1).tolist(), strict=True):
                result[i] = word_hashes
    return result


def ngram_hashes(word: bytes, shortest: int, longest: int) -> list[int]:
    """Return fastText's hash (FNV-1a over signed bytes) of each character n-gram, without the marks < and > alone."""
    hashes = []
    size = len(word)
    for start in range(size):
        if word[start] & 0xC0 == 0x80:
            continue
        value, at, length = 2166136261, start, 1
        while at < size and length <= longest:
            while True:
                byte = word[at]
                value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
                at += 1
                if at >= size or word[at] & 0xC0 != 0x80:
                    break
            if length >= shortest and not (length == 1 and (start == 0 or at == size)):
                hashes.append(value)
            length += 1
    return hashes


def _read_model(path: Path, source: str) -> _Model:
    """Return the dictionary of a model and the place of its matrix; the matrix itself is not read."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    version = struct.unpack_from("<i", data.data, 4)[0]
    if version != _VERSION:
        raise EmbinitError(f"{source} is a fastText model of version {version}; embinit reads version {_VERSION}")
    at = 8
    dim, _, _, _, _, _, _, _, buckets, shortest, longest, _, _ = struct.unpack_from(_ARGUMENTS, data.data, at)
    at += struct.calcsize(_ARGUMENTS)
    size, count, _, _, pruned_size = struct.unpack_from("<3i2q", data.data, at)
    at += struct.calcsize("<3i2q")
    if not 0 < dim <= LARGEST_DIM or buckets < 0 or not 0 <= count <= size:
        raise EmbinitError(
            f"{source} is a damaged fastText model: it declares {count:,} of {size:,} words and {dim} dimensions"
        )
    if not 0 <= shortest <= _LONGEST_NGRAM or not 0 <= longest <= _LONGEST_NGRAM:
        raise EmbinitError(
            f"{source} is a damaged fastText model: it declares n-grams of {shortest} to {longest} characters; "
            f"at most {_LONGEST_NGRAM} are read"
        )
    words, at = _read_dictionary(path, at, size)
    pruned = None
    if pruned_size >= 0:
        if at + 8 * pruned_size > len(data):
            raise IndexError
        pairs = np.frombuffer(data[at : at + 8 * pruned_size].tobytes(), dtype="<i4").reshape(-1, 2)
        pruned = dict(pairs.tolist())
        at += 8 * pruned_size
    if data[at]:
        raise EmbinitError(f"{source} is a quantized fastText model (.ftz); embinit reads the full .bin")
    rows, columns = struct.unpack_from("<2q", data.data, at + 1)
    at += 17
    used = count + (buckets if pruned is None else max(pruned.values(), default=-1) + 1) if longest > 0 else count
    if pruned is not None and min(pruned.values(), default=0) < 0:
        raise EmbinitError(f"{source} is a damaged fastText model: its pruning table has a negative row")
    if columns != dim or rows < used or at + 4 * rows * columns > len(data):
        raise EmbinitError(
            f"{source} is truncated or damaged: it declares {rows} x {columns} numbers and has {(len(data) - at) // 4}"
        )
    matrix = _MatrixOnDisk(path, at, columns)
    index: dict[bytes, int] = {}
    for row, word in enumerate(words[:count]):
        index.setdefault(word, row)
    return _Model(index, count, matrix, buckets, shortest, longest, pruned)


def _read_dictionary(path: Path, at: int, size: int) -> tuple[list[bytes], int]:
    """Return the entries, words before labels, and the position of their end.

    An entry is a text, NUL, an int64 count and an int8 type.
    """
    words: list[bytes] = []
    with path.open("rb") as file:
        file.seek(at)
        buffer, offset, last = b"", 0, -1  # an entry whose NUL is after `last` may be incomplete
        while len(words) < size:
            end = buffer.find(b"\0", offset)
            if end < 0 or end > last:
                more = file.read(1 << 20)
                if not more:
                    raise IndexError
                if len(buffer) - offset > _LONGEST_WORD:
                    raise EmbinitError(
                        f"{path} is a damaged fastText model: a word is longer than {_LONGEST_WORD:,} bytes"
                    )
                at += offset
                buffer, offset = buffer[offset:] + more, 0
                last = len(buffer) - 10
                continue
            words.append(buffer[offset:end])
            offset = end + 10
    return words, at + offset
