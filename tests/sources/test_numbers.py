"""Decimal text becomes the float32 that float() and one rounding give, bit for bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embinit.sources.numbers import parse_number, parse_numbers

SPELLINGS = ["%.5g", "%.6f", "%r", "%.8f", "%.1f", "%e", "%.17g", "%g", "%+.4f", "%.3E", "%.9f", "%.12f"]


def read(texts: list[bytes]) -> np.ndarray:
    """Read texts that stand side by side in one block, as fields of a line do."""
    block = b" ".join(texts)
    ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    return parse_numbers(block, ends - [len(text) for text in texts], ends)


def expected(texts: list[bytes]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([float(text) for text in texts]).astype(np.float32)


small = st.floats(-10, 10)
anything = st.floats(allow_nan=False, allow_infinity=False)
written = st.builds(lambda spelling, value: (spelling % value).encode(), st.sampled_from(SPELLINGS), small | anything)
digits = st.text("0123456789", min_size=1, max_size=25)
literal = st.builds(
    lambda sign, whole, dot, part, power: f"{sign}{whole}{dot}{part}{power}".encode(),
    st.sampled_from(["", "-", "+"]),
    digits,
    st.sampled_from(["", "."]),
    digits | st.just(""),
    st.sampled_from(["", "e5", "E-7", "e+12", "e-40", "e00", "e38"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(written | literal, min_size=1, max_size=40))
def test_the_bits_are_those_of_float(texts):
    assert read(texts).tobytes() == expected(texts).tobytes()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["", "-"]), st.integers(0, 9), st.text("0123456789", max_size=9)), min_size=1)
)
def test_the_common_spelling_at_every_length(parts):
    texts = [f"{sign}{whole}.{part}".encode() for sign, whole, part in parts]
    assert read(texts).tobytes() == expected(texts).tobytes()


def _is_number(text: bytes) -> bool:
    try:
        return not math.isnan(float(text)) and b"_" not in text and text == text.strip()
    except ValueError:
        return False


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("0123456789.-+eE_,x\x00é/:", max_size=12).map(str.encode), min_size=1, max_size=20))
def test_what_is_no_number_is_nan_and_harms_no_neighbour(texts):
    got = read([text for pair in zip(texts, [b"0.5"] * len(texts), strict=True) for text in pair])
    assert (got[1::2] == 0.5).all()
    for text, value in zip(texts, got[::2].tolist(), strict=True):
        if _is_number(text):
            assert value == expected([text])[0]
        else:
            assert math.isnan(value), text


@pytest.mark.parametrize(
    "text", [b"", b"-", b".", b"1_0", b"0.1 ", b"0,1", b"1.5.3", b"0x10", "٣".encode(), b"\xff", b"--1"]
)
def test_these_are_no_numbers(text):
    assert math.isnan(parse_number(text))


@pytest.mark.parametrize("place", range(10))
def test_any_byte_in_place_of_any_character(place):
    text = b"0.12345678"
    for byte in range(256):
        changed = text[:place] + bytes([byte]) + text[place + 1 :]
        value = expected([changed])[0] if _is_number(changed) else np.nan
        np.testing.assert_array_equal(read([b"1.5", changed, b"2.5"]), np.float32([1.5, value, 2.5]))


def test_no_fields_are_no_numbers():
    assert parse_numbers(b"", np.array([], dtype=np.int64), np.array([], dtype=np.int64)).shape == (0,)
