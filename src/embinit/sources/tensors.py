"""Rows of one tensor out of safetensors files, near or far; nothing else of the file is read."""

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
#: Two runs of wanted rows closer than this are read as one: a request costs more than the bytes between them.
_GAP = 1 << 16
#: No more than this is held beside the result.
_MOST = 1 << 22


class Bytes(Protocol):
    """A file that can be read in parts."""

    name: str
    #: bytes in all, where that is known
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
        """Return the bytes from start to end; a memory map would count every page around them."""
        with self._path.open("rb", buffering=0) as file:
            file.seek(start)
            return _whole(file, end - start)


def _whole(file: IO[bytes], size: int) -> bytes:
    """Return so many bytes, or what is left; one unbuffered read may give less than is there."""
    parts = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class TensorFile:
    """One safetensors file: the names, shapes and types of its tensors, and rows on demand."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        prefix = data.read(0, 8)
        size = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
        if not 0 < size <= _LONGEST_HEADER:
            raise EmbinitError(f"{data.name} is no safetensors file, or is cut short")
        try:
            header: dict[str, Any] = json.loads(data.read(8, 8 + size))
        except (ValueError, RecursionError):
            raise EmbinitError(f"{data.name} is no safetensors file, or is cut short") from None
        if not isinstance(header, dict):
            raise EmbinitError(f"{data.name} is no safetensors file: its header is no map")
        self.metadata: dict[str, str] = header.pop("__metadata__", {})
        odd = next((name for name, entry in header.items() if not _is_entry(entry)), None)
        if odd is not None:
            raise EmbinitError(f"{data.name} is a damaged safetensors file: its header does not say where {odd!r} lies")
        self._entries = header
        self._begin = 8 + size

    def names(self) -> list[str]:
        """Return the names of all tensors."""
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape."""
        return tuple(self._entries[name]["shape"])

    def check(self, name: str) -> None:
        """Raise where a tensor holds no rows that can be read, or the file ends before it does."""
        self._place(name)

    def _place(self, name: str) -> tuple[int, int, int]:
        """Return where a tensor begins, how many rows it has, and how many bytes each."""
        entry = self._entries[name]
        shape, kind = entry["shape"], entry["dtype"]
        if kind not in _WIDTH:
            raise EmbinitError(f"{self._data.name}: {name} holds {kind} numbers; one of {', '.join(_WIDTH)} is needed")
        if len(shape) not in (1, 2):
            raise EmbinitError(f"{self._data.name}: {name} has shape {tuple(shape)}; rows are needed")
        count, columns = (*shape, 1)[:2]
        width = _WIDTH[kind] * columns
        begin, end = (self._begin + offset for offset in entry["data_offsets"])
        if width == 0 or count * width != end - begin:
            raise EmbinitError(f"{self._data.name}: {name} has shape {tuple(shape)} but {end - begin} bytes of {kind}")
        if self._data.size is not None and end > self._data.size:
            raise EmbinitError(f"{self._data.name} is cut short: {name} ends at byte {end} of {self._data.size}")
        return begin, count, width

    def rows(self, name: str, wanted: Sequence[int] | None = None) -> Matrix:
        """Return rows of a tensor as float32: all, or the wanted ones in the order given."""
        begin, count, width = self._place(name)
        kind = self._entries[name]["dtype"]
        ids = np.arange(count) if wanted is None else np.asarray(wanted, dtype=np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < count:
            raise EmbinitError(
                f"{self._data.name}: row {ids.min()} or {ids.max()} is asked of {name}, which has {count}"
            )
        order = np.unique(ids)
        result = np.empty((len(order), width // _WIDTH[kind]), dtype=np.float32)
        for first, last in _runs(order, max(1, _GAP // width), max(1, _MOST // width)):
            low, high = int(order[first]), int(order[last - 1]) + 1
            raw = self._data.read(begin + low * width, begin + high * width)
            if len(raw) < (high - low) * width:
                raise EmbinitError(f"{self._data.name} is cut short: {name} ends before row {high - 1}")
            picked = np.frombuffer(raw, dtype=np.uint8).reshape(-1, width)[order[first:last] - low]
            result[first:last] = decoded(picked, kind)
        return result if len(order) == len(ids) and (order == ids).all() else result[np.searchsorted(order, ids)]


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(entry.get("dtype"), str) or not isinstance(shape, list) or not isinstance(offsets, list):
        return False
    return len(offsets) == 2 and all(type(i) is int and 0 <= i < 1 << 62 for i in (*shape, *offsets))


def decoded(raw: npt.NDArray[np.uint8], kind: str) -> Matrix:
    """Return rows of little-endian bytes as float32, exactly."""
    raw = np.ascontiguousarray(raw)
    if kind == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    if kind.startswith("F8"):
        return _float8(kind)[raw]
    views = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
    with np.errstate(over="ignore"):
        return raw.view(views[kind]).astype(np.float32)


def _float8(kind: str) -> Matrix:
    """Return the 256 values of an eight-bit format (OCP: E4M3 without infinities, E5M2 with)."""
    exponent_bits, bias = (4, 7) if kind == "F8_E4M3" else (5, 15)
    fraction_bits = 7 - exponent_bits
    code = np.arange(256)
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = (code & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if kind == "F8_E4M3":
        value[(code & 0x7F) == 0x7F] = np.nan
    else:
        top = exponent == (1 << exponent_bits) - 1
        value[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    return np.where(code < 128, value, -value).astype(np.float32)


def _runs(order: npt.NDArray[np.int64], gap: int, most: int) -> list[tuple[int, int]]:
    """Return slices of sorted ids whose neighbours are at most `gap` apart, each over at most `most` rows of the file."""
    runs, first = [], 0
    breaks = np.flatnonzero(np.diff(order) > gap) + 1
    for last in [*breaks.tolist(), len(order)]:
        while first < last:
            end = min(last, int(np.searchsorted(order, order[first] + most)))
            runs.append((first, end))
            first = end
    return runs
