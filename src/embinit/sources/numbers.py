"""Parsing decimal numbers in whole blocks of text, with the same bits as float()."""

from __future__ import annotations

import importlib.util

import numpy as np
import numpy.typing as npt

from embinit.types import Matrix, as_matrix

#: A header that declares more dimensions is not a header of vectors.
LARGEST_DIM = 1 << 20

Positions = npt.NDArray[np.int64]

_ZERO, _DOT, _MINUS = ord("0"), ord("."), ord("-")
_POWERS = 10.0 ** np.arange(9)
# Masks that keep the last k of 8 bytes: in a little-endian word the last character is the highest byte.
_KEEP = np.array([((1 << 64) - 1) ^ ((1 << (8 * (8 - k))) - 1) for k in range(9)], dtype=np.uint64)
_DIGITS = np.uint64(0x3030303030303030)
_CARRY = np.uint64(0x7676767676767676)
_HIGH = np.uint64(0x8080808080808080)


def parse_numbers(block: bytes, starts: Positions, ends: Positions) -> Matrix:
    """Return the number at each block[start:end], equal to float(text); NaN if the text is not a number.

    Nearly all numbers of vector files look like `-0.123456`: one digit, a dot, at most eight digits. Such numbers are
    parsed eight characters at a time. Their digits and the power of ten are exact in float64, so the single division
    rounds as float() does. All other numbers are parsed by float().
    """
    padded = np.frombuffer(b"0" * 8 + block + b"0" * 8, dtype=np.uint8)
    first = starts + 8
    negative = padded[first] == _MINUS
    first = first + negative
    lead = padded[first] - np.uint8(_ZERO)  # wraps to a large value below "0"
    decimals = ends + 8 - first - 2
    common = (lead <= 9) & (padded[first + 1] == _DOT) & (decimals >= 1) & (decimals <= 8)
    length = np.where(common, decimals, 0)
    words = _words_ending_at(padded, ends + 8) ^ _DIGITS
    words &= _KEEP[length]
    common &= ((words + _CARRY) & _HIGH | words & _HIGH) == 0  # each byte is a digit
    scale = _POWERS[length]
    values = (lead * scale + _eight_digits(words)) / scale
    np.negative(values, out=values, where=negative)
    for i in np.flatnonzero(~common):
        values[i] = parse_number(block[starts[i] : ends[i]])
    with np.errstate(over="ignore"):  # 1e300 becomes infinite, and the reader rejects the row
        return as_matrix(values)


def has_arrow() -> bool:
    """Return whether pyarrow is installed, which parses regular lines twice as fast."""
    return importlib.util.find_spec("pyarrow") is not None


def parse_lines(block: bytes, dim: int) -> tuple[list[bytes], Matrix] | None:
    """Return the tokens and the numbers of complete lines by pyarrow; None unless every line is regular.

    A regular line is a token without spaces, `dim` finite numbers, and single spaces between them. pyarrow rounds to float64
    as float() does. It would trim tabs and end lines at `\\r`, so that blocks with these are not regular either.
    """
    import pyarrow
    from pyarrow import csv

    if b"\t" in block or b"\r" in block:
        return None
    names = list(map(str, range(dim + 1)))
    types = {name: pyarrow.float64() for name in names}
    types["0"] = pyarrow.binary()
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(block),
            csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
            csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
    except pyarrow.ArrowInvalid:
        return None
    vectors = np.empty((table.num_rows, dim), dtype=np.float32)
    with np.errstate(over="ignore"):
        for place in range(dim):
            column = table.column(place + 1)
            if column.null_count:
                return None
            vectors[:, place] = column.to_numpy()
    if not np.isfinite(vectors).all():
        return None
    return table.column(0).to_pylist(), vectors


def parse_number(text: bytes) -> float:
    """Return float(text), or NaN if it is not a number. `1_000` and white space, which Python allows, give NaN."""
    if b"_" in text or text != text.strip():
        return float("nan")
    try:
        return float(text)
    except ValueError:
        return float("nan")


def is_count(text: bytes) -> bool:
    """Return whether a field of a header is a whole number of plausible length."""
    return text.isdigit() and len(text) <= 12


def _words_ending_at(padded: npt.NDArray[np.uint8], ends: Positions) -> npt.NDArray[np.uint64]:
    """Return the eight bytes before each end as one little-endian word."""
    windows = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    return windows[ends - 8].astype(np.uint64, copy=False)


def _eight_digits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the value of eight digits, which are bytes from 0 to 9 with the first digit in the lowest byte.

    It adds pairs, then fours, then all eight: see Lemire, "Quickly parsing eight digits" (2022).
    """
    pairs = words * np.uint64(10) + (words >> np.uint64(8))
    mask = np.uint64(0x000000FF000000FF)
    low = (pairs & mask) * np.uint64(0x000F424000000064)
    high = ((pairs >> np.uint64(16)) & mask) * np.uint64(0x0000271000000001)
    return (low + high) >> np.uint64(32)
