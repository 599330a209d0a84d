"""Files that would fill the memory are refused with one sentence. No honest file meets these limits."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest

from embinit import files
from embinit.sources import text
from embinit.sources.load import load
from embinit.text import vocabulary
from embinit.text.vocabulary import read_lines
from tests.refusal import refused

from .folders import matrix


@pytest.mark.parametrize("wanted", [None, {"w3"}], ids=["all rows", "wanted rows"])
def test_a_line_that_no_row_fills_is_refused(wanted, tmp_path):
    path = tmp_path / "long.txt"
    rows = [b"w%d 1 2 3" % row for row in range(50_000)]
    path.write_bytes(b"\n".join([*rows, b"x" * (3 << 20), b"after 1 2 3"]))
    with refused(path, "line 50001", "1,048,768 bytes"):
        load(path, wanted)


def test_a_wide_row_is_read(tmp_path):
    numbers = matrix(3, 200_000)
    path = tmp_path / "wide.txt"
    path.write_bytes(b"".join(b"w%d %s\n" % (i, b" ".join(b"%.9g" % x for x in row)) for i, row in enumerate(numbers)))
    assert path.stat().st_size > 3 << 20
    np.testing.assert_array_equal(load(path).vectors, numbers)


def test_an_archive_that_grows_without_measure_is_not_unpacked(tmp_path):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, tokens=np.array(["a", "b"]), vectors=np.zeros((2, 2_000_000), dtype=np.float32))
    with refused(path, "would unpack to 0.0 GB, more than 200 times its size"):
        load(path)


def fasttext(path: Path, word: bytes, longest: int) -> Path:
    arguments = struct.pack("<12id", 2, 5, 5, 1, 5, 1, 1, 1, 10, 3, longest, 100, 1e-4)
    dictionary = struct.pack("<3i2q", 1, 1, 0, 5, -1) + word + b"\0" + struct.pack("<qb", 5, 0)
    rows = struct.pack("<2q", 11, 2) + np.ones((11, 2), dtype="<f4").tobytes()
    path.write_bytes(struct.pack("<2i", 793_712_314, 12) + arguments + dictionary + b"\0" + rows)
    return path


def test_limits_of_fasttext_models(tmp_path):
    assert load(fasttext(tmp_path / "model.bin", b"word", 6)).tokens == ["word"]
    with refused("n-grams of 3 to 2147483647 characters"):
        load(fasttext(tmp_path / "model.bin", b"word", 2**31 - 1), {"another"})
    with refused("a word is longer than 65,536 bytes"):
        load(fasttext(tmp_path / "model.bin", b"x" * (3 << 20), 6))


def test_a_word_longer_than_any_dictionary_holds_is_not_composed(tmp_path):
    path = fasttext(tmp_path / "model.bin", b"word", 100)
    assert load(path, {"word", "x" * (1 << 20)}).tokens == ["word"]


def test_millions_of_blank_lines_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_parse_line", lambda *_: pytest.fail("a blank line was parsed on its own"))
    path = tmp_path / "blank.txt"
    path.write_bytes(b"the 1 2 3\n" + b"\n" * 500_000 + b" \r\n" * 10 + b"cat 4 5 6\n")
    embeddings = load(path)
    assert embeddings.tokens == ["the", "cat"]
    assert embeddings.origin.counts["blank lines"] == 500_010


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress], ids=["gzip", "bzip2", "xz"])
def test_a_text_that_unpacks_without_measure_is_refused(packed, tmp_path, monkeypatch):
    path = tmp_path / "packed"
    path.write_bytes(packed(b"the 0 0 0\n" * 300_000))
    assert load(path).tokens == ["the"]
    monkeypatch.setattr(files, "_ANY_GROWTH", 1 << 20)
    with refused(path, "more than 200 times its size"):
        load(path)
    with refused(path, "more than 200 times its size"):
        list(read_lines([path]))


def test_a_text_without_line_breaks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "text.txt"
    path.write_bytes(b"a sentence\n" + b"word " * (1 << 18))
    lines = read_lines([path])
    assert next(lines) == "a sentence"
    with refused(path, "line 2", "1 MB"):
        next(lines)
