"""Reading the rows of one tensor from a safetensors file, on disk or on a server, without the rest of the file."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError
from embinit.types import Matrix

_LONGEST_HEADER = 100 << 20
_WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4}
#: Wanted rows with less than this many bytes between them are read at once, because a request costs more than the bytes.
_LARGEST_GAP = 1 << 16
#: At most this many bytes are read at once.
_LARGEST_READ = 1 << 22


class ByteSource(Protocol):
    """A file that can be read in parts."""

    name: str
    #: the size of the file in bytes, None if unknown
    size: int | None

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from start to end."""
        ...


class LocalBytes:
    """A file on disk."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self.size: int | None = path.stat().st_size

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from start to end. A memory map would also read the pages around them."""
        with self._path.open("rb", buffering=0) as file:
            file.seek(start)
            return _read_all(file, end - start)


def _read_all(file: IO[bytes], size: int) -> bytes:
    """Return `size` bytes, or the rest of the file. A single unbuffered read may return fewer bytes."""
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class TensorFile:
    """One safetensors file: the names, shapes and types of its tensors, and rows on demand."""

    def __init__(self, data: ByteSource) -> None:
        self._data = data
        prefix = data.read(0, 8)
        size = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
        if not 0 < size <= _LONGEST_HEADER:
            raise EmbinitError(f"{data.name} is not a safetensors file, or it is truncated")
        try:
            header: dict[str, Any] = json.loads(data.read(8, 8 + size))
        except (ValueError, RecursionError):
            raise EmbinitError(f"{data.name} is not a safetensors file, or it is truncated") from None
        if not isinstance(header, dict):
            raise EmbinitError(f"{data.name} is not a safetensors file: its header is not a JSON object")
        self.metadata: dict[str, str] = header.pop("__metadata__", {})
        bad = next((name for name, entry in header.items() if not _is_entry(entry)), None)
        if bad is not None:
            raise EmbinitError(
                f"{data.name} is a damaged safetensors file: its header does not locate the tensor {bad!r}"
            )
        self._entries = header
        self._begin = 8 + size

    def names(self) -> list[str]:
        """Return the names of all tensors."""
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return tuple(self._entries[name]["shape"])

    def check(self, name: str) -> None:
        """Raise EmbinitError if a tensor has no rows that can be read, or the file ends inside it."""
        self._locate(name)

    def _locate(self, name: str) -> tuple[int, int, int]:
        """Return the first byte of a tensor, its number of rows, and the bytes of a row."""
        entry = self._entries[name]
        shape, dtype = entry["shape"], entry["dtype"]
        if dtype not in _WIDTH:
            raise EmbinitError(f"{self._data.name}: {name} holds {dtype} numbers; expected one of {', '.join(_WIDTH)}")
        if len(shape) not in (1, 2):
            raise EmbinitError(f"{self._data.name}: {name} has shape {tuple(shape)}; expected a matrix or a vector")
        count, columns = (*shape, 1)[:2]
        width = _WIDTH[dtype] * columns
        begin, end = (self._begin + offset for offset in entry["data_offsets"])
        if width == 0 or count * width != end - begin:
            raise EmbinitError(f"{self._data.name}: {name} has shape {tuple(shape)} but {end - begin} bytes of {dtype}")
        if self._data.size is not None and end > self._data.size:
            raise EmbinitError(
                f"{self._data.name} is truncated: {name} ends at byte {end}, but the file has {self._data.size} bytes"
            )
        return begin, count, width

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> Matrix:
        """Return rows of a tensor as float32: all rows, or the wanted rows in the given order."""
        begin, count, width = self._locate(name)
        dtype = self._entries[name]["dtype"]
        ids = np.arange(count) if wanted is None else np.asarray(wanted, dtype=np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < count:
            raise EmbinitError(
                f"{self._data.name}: rows {ids.min():,} to {ids.max():,} are wanted from {name}, which has {count:,} rows"
            )
        order = np.unique(ids)
        result = np.empty((len(order), width // _WIDTH[dtype]), dtype=np.float32)
        for first, last in _runs(order, max(1, _LARGEST_GAP // width), max(1, _LARGEST_READ // width)):
            low, high = int(order[first]), int(order[last - 1]) + 1
            raw = self._data.read(begin + low * width, begin + high * width)
            if len(raw) < (high - low) * width:
                raise EmbinitError(f"{self._data.name} is truncated: {name} ends before row {high - 1}")
            picked = np.frombuffer(raw, dtype=np.uint8).reshape(-1, width)[order[first:last] - low]
            result[first:last] = decode_numbers(picked, dtype)
        return result if len(order) == len(ids) and (order == ids).all() else result[np.searchsorted(order, ids)]


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(entry.get("dtype"), str) or not isinstance(shape, list) or not isinstance(offsets, list):
        return False
    return len(offsets) == 2 and all(type(i) is int and 0 <= i < 1 << 62 for i in (*shape, *offsets))


def decode_numbers(raw: npt.NDArray[np.uint8], dtype: str) -> Matrix:
    """Return rows of little-endian bytes as float32."""
    raw = np.ascontiguousarray(raw)
    if dtype == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype.startswith("F8"):
        return _float8_values(dtype)[raw]
    views = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
    with np.errstate(over="ignore"):
        return raw.view(views[dtype]).astype(np.float32)


def _float8_values(dtype: str) -> Matrix:
    """Return the 256 values of an eight-bit format (OCP: E4M3 without infinities, E5M2 with)."""
    exponent_bits, bias = (4, 7) if dtype == "F8_E4M3" else (5, 15)
    fraction_bits = 7 - exponent_bits
    code = np.arange(256)
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = (code & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if dtype == "F8_E4M3":
        value[(code & 0x7F) == 0x7F] = np.nan
    else:
        top = exponent == (1 << exponent_bits) - 1
        value[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    return np.where(code < 128, value, -value).astype(np.float32)


def _runs(order: npt.NDArray[np.int64], gap: int, most: int) -> list[tuple[int, int]]:
    """Return slices of sorted ids. Neighbours in a slice are at most `gap` apart; a slice spans at most `most` rows."""
    runs, first = [], 0
    breaks = np.flatnonzero(np.diff(order) > gap) + 1
    for last in [*breaks.tolist(), len(order)]:
        while first < last:
            end = min(last, int(np.searchsorted(order, order[first] + most)))
            runs.append((first, end))
            first = end
    return runs
