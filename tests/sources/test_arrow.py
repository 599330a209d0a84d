"""Large text files are parsed by pyarrow, if it is installed, to the same rows, bit for bit, and with the same counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embinit.sources import text
from embinit.sources.load import load
from embinit.sources.numbers import parse_lines, parse_number
from embinit.types import Embeddings

pytest.importorskip("pyarrow")


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Embeddings, Embeddings, int]:
    """Load a file without and with pyarrow, and return the number of blocks that pyarrow parsed."""
    monkeypatch.setattr(text, "has_arrow", lambda: False)
    without = load(path)
    parsed = []

    def counted(block: bytes, dim: int) -> object:
        rows = parse_lines(block, dim)
        parsed.append(rows is not None)
        return rows

    monkeypatch.setattr(text, "has_arrow", lambda: True)
    monkeypatch.setattr(text, "parse_lines", counted)
    monkeypatch.setattr(text, "_ARROW_BLOCK", 256)
    return without, load(path), sum(parsed)


def regular(count: int, dim: int = 4) -> list[bytes]:
    rows = np.random.default_rng(0).normal(size=(count, dim))
    return [b"w%d " % i + " ".join(f"{x:.7g}" for x in row).encode() for i, row in enumerate(rows)]


ODD = {
    "regular": [],
    "token with spaces": [b". . . 1 2 3 4"],
    "fewer numbers": [b"short 1 2 3"],
    "no number": [b"word 1 x 3 4", b"word2 1 1_0 3 4", b"word3 0x1p3 1 1 1"],
    "not finite": [b"word 1 nan 3 4", b"word2 1 inf 3 4", b"word3 1 1e999 3 4", b"word4 1e39 0 0 0"],
    "blank lines": [b"", b"   ", b""],
    "two spaces": [b"word  1 2 3 4", b"word2 1  2 3"],
    "tabs": [b"word\t1\t2\t3\t4", b"word2 1 2 \t3 4"],
    "carriage returns": [b"word 1 2 3 4\r", b"a\rb 1 2 3 4", b"word3 1 2\r 3 4"],
    "trailing space": [b"word 1 2 3 4 "],
    "twice": [b"w3 9 9 9 9", b"w3 8 8 8 8"],
    "quotes": [b'" 1 2 3 4', b'"" 1 2 3 4', b"'a 1 2 3 4", b'a"b 1 2 "3" 4'],
    "null": [b"null 1 2 3 4", b"NA 1 2 3 4", b"nan 1 2 3 4", b"x null 2 3 4", b"y NA 2 3 4"],
    "not UTF-8": [b"\xff\xfe 1 2 3 4"],
    "other spellings": [b"word +1 .5 1. 1E-3", b"word2 1e-400 -0 00012 1e22", b"word3 0.1234567890123456789 1 1 1"],
    "empty token": [b" 1 2 3 4"],
}


@pytest.mark.parametrize("lines", ODD.values(), ids=ODD)
@pytest.mark.parametrize("header", [False, True], ids=["GloVe", "word2vec"])
def test_the_rows_and_the_counts_are_the_same(lines, header, tmp_path, monkeypatch):
    path = tmp_path / "v.txt"
    content = [*regular(60), *lines, *(b"x" + line for line in regular(60))]
    head = [b"%d 4" % len(content)] if header else []
    path.write_bytes(b"\n".join([*head, *content]) + b"\n")
    without, by_arrow, parsed = both(path, monkeypatch)
    assert parsed > 5, "pyarrow parses most blocks"
    assert list(by_arrow.tokens) == list(without.tokens)
    assert by_arrow.vectors.tobytes() == without.vectors.tobytes()
    assert by_arrow.origin == replace(without.origin)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(width=64, allow_nan=False, allow_infinity=False) | st.decimals(-9, 9, places=7), min_size=1))
def test_numbers_are_rounded_as_float_does(values):
    fields = [str(value).encode() for value in values]
    parsed = parse_lines(b"word " + b" ".join(fields) + b"\n", len(fields))
    with np.errstate(over="ignore"):
        expected = np.array([parse_number(field) for field in fields]).astype(np.float32)
    if np.isfinite(expected).all():
        assert parsed is not None
        assert parsed[0] == [b"word"]
        assert parsed[1].tobytes() == expected.tobytes()
    else:
        assert parsed is None


def test_small_files_and_wanted_rows_do_without(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "parse_lines", lambda *_: pytest.fail("pyarrow was used"))
    path = tmp_path / "v.txt"
    path.write_bytes(b"\n".join(regular(100)))
    assert len(load(path)) == 100
    monkeypatch.setattr(text, "_ARROW_BLOCK", 16)
    assert load(path, {"w3"}).tokens == ["w3"]
    assert len(load(path, most=3)) == 3
