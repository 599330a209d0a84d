"""Detecting the format of a file from its first bytes, not from its name."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Literal

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import compression, open_archive, open_unpacked
from embinit.sources.fasttext import MAGIC as FASTTEXT_MAGIC
from embinit.sources.numbers import LARGEST_DIM, is_count, parse_number

Format = Literal["text", "word2vec", "fasttext", "npy", "npz", "safetensors"]

_HEAD = 1 << 16
#: First bytes of files that are not vectors -> the message about such a file.
_NOT_VECTORS = {
    b"version https://git-lfs": "a Git LFS pointer; run `git lfs pull` to download the file itself",
    b"\xff\xfe": "UTF-16 text; convert it to UTF-8",
    b"\xfe\xff": "UTF-16 text; convert it to UTF-8",
    b"\x89HDF": "an HDF5 file (ELMo and older Keras weights), which embinit does not read",
    b"\x89PNG": "a picture",
    b"%PDF": "a PDF document",
    b"\x7fELF": "a program",
    b"PAR1": "a Parquet file; write it as .npy with a token list",
    b"ARROW1": "an Arrow file; write it as .npy with a token list",
    b"\xca\xfe\xba\xbe": "a program",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
}
_PICKLE = (
    "a pickle, which can run any code and is not loaded; open it with the library that wrote it and pass the object to "
    "embinit.load, or save it with save_word2vec_format"
)


def detect_format(path: Path, member: str | None, source: str) -> Format:
    """Return the format of a file. If the file does not hold vectors, the error tells what it holds."""
    if path.stat().st_size == 0:
        raise EmbinitError(f"{source} is empty; expected vectors")
    if compression(path) == "zip" and member is None:
        array_format = _format_of_zip(path, source)
        if array_format is not None:
            return array_format
    with open_unpacked(path, member) as stream:
        head = stream.read(_HEAD)
    if len(head) >= 8:
        if struct.unpack_from("<i", head)[0] == FASTTEXT_MAGIC:
            return "fasttext"
        if head[8:9] == b"{" and 2 <= struct.unpack_from("<Q", head)[0] < 100 << 20:
            return "safetensors"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise EmbinitError(f"{source} is {_PICKLE}")
    for magic, message in _NOT_VECTORS.items():
        if head.startswith(magic):
            raise EmbinitError(f"{source} is {message}")
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise EmbinitError(f"{source} is a web page; perhaps a download failed")
    if _is_word2vec(head):
        return "word2vec"
    if b"\0" in head:
        raise EmbinitError(f"{source} is a binary file of an unknown format; expected vectors")
    return "text"


def _format_of_zip(path: Path, source: str) -> Format | None:
    """Return `npz` for an archive of arrays, None for other archives."""
    with open_archive(path) as archive:
        names = archive.namelist()
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    if any(name.endswith("data.pkl") for name in names):
        raise EmbinitError(f"{source} is a torch file; give the checkpoint's folder, or load the tensor and pass it")
    return None


def _is_word2vec(head: bytes) -> bool:
    """Return whether a header `rows dim` is followed by a token and binary numbers, not by text."""
    line, newline, rest = head.partition(b"\n")
    fields = line.split()
    if not newline or len(fields) != 2 or not all(is_count(field) for field in fields) or not rest:
        return False
    dim = int(fields[1])
    if not 1 <= dim <= LARGEST_DIM:
        return False
    row = rest.partition(b"\n")[0].rstrip(b" \t\r").replace(b"\t", b" ").rsplit(b" ", dim)
    if len(row) > 1 and all(not np.isnan(parse_number(field)) or field.lower().endswith(b"nan") for field in row[1:]):
        return False
    token, space, numbers = rest.partition(b" ")
    if not space or len(token) > 4096:
        return False
    values = np.frombuffer(numbers[: len(numbers) // 4 * 4][: 4 * dim], dtype="<f4")
    plausible = (np.abs(values) < 1e6) & ((values == 0) | (np.abs(values) > 1e-20))
    # Bytes of text that are read as float32 are mostly out of this range. Rows with NaN are rejected later.
    return len(values) == 0 or (bool(plausible.mean() > 0.8) and _has_unprintable(numbers[: 4 * dim]))


def _has_unprintable(raw: bytes) -> bool:
    return any(byte < 9 or byte > 126 for byte in raw)
