"""word2vec files as gensim and as the original C program write them."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from embinit.sources.load import load
from tests.refusal import refused

WORDS = ["the", "naïve", "東京", "a_b", "</s>", "x" * 300]


@pytest.fixture
def keyed() -> KeyedVectors:
    vectors = KeyedVectors(vector_size=7)
    vectors.add_vectors(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), 7)).astype(np.float32))
    return vectors


def c_style(path: Path, rows: dict[bytes, list[float]], promised: int | None = None, end: bytes = b"\n") -> Path:
    """Write as word2vec.c does: `%lld %lld\\n`, then token, space, numbers, newline."""
    dim = len(next(iter(rows.values())))
    body = b"".join(token + b" " + struct.pack(f"<{dim}f", *row) + end for token, row in rows.items())
    path.write_bytes(b"%d %d\n" % (promised or len(rows), dim) + body)
    return path


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "text"])
@pytest.mark.parametrize("ending", ["", ".gz", ".bz2"])
def test_what_gensim_saves_is_what_gensim_reads(binary, ending, keyed, tmp_path):
    path = tmp_path / f"vectors{ending}"
    keyed.save_word2vec_format(str(path), binary=binary)
    gensim = KeyedVectors.load_word2vec_format(str(path), binary=binary)
    embeddings = load(path)
    assert list(embeddings.tokens) == gensim.index_to_key == WORDS
    np.testing.assert_array_equal(embeddings.vectors, gensim.vectors)
    assert embeddings.origin.format == f"word2vec {'binary' if binary else 'text'}"
    assert embeddings.origin.counts == {"rows": len(WORDS)}


def test_keyed_vectors_load_as_an_object(keyed):
    embeddings = load(keyed, wanted={"東京", "absent"})
    assert list(embeddings.tokens) == ["東京"]
    np.testing.assert_array_equal(embeddings.vectors[0], keyed["東京"])


@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline after each row", "no newline"])
def test_rows_of_the_original_program(end, tmp_path):
    # 10 is a newline and 32 a space: bytes of numbers must not be taken for either.
    spaces = struct.unpack("<f", b"  \n ")[0]
    rows = {b"a": [1.0, spaces], b"b": [spaces, 0.5], b"c\xff": [3.0, 4.0]}
    embeddings = load(c_style(tmp_path / "v.bin", rows, end=end))
    assert list(embeddings.tokens) == ["a", "b", "c\udcff"]
    np.testing.assert_array_equal(embeddings.vectors, np.array(list(rows.values()), dtype=np.float32))
    assert embeddings.origin.counts["undecodable"] == 1


def test_a_file_that_is_cut_keeps_whole_rows_and_counts_the_others(tmp_path):
    path = c_style(tmp_path / "v.bin", {b"a": [0.5, 1.5], b"b": [2.5, 3.5], b"c": [4.5, 5.5]})
    path.write_bytes(path.read_bytes()[:-5])
    embeddings = load(path)
    assert list(embeddings.tokens) == ["a", "b"]
    assert embeddings.origin.counts == {"rows": 2, "rejected": 1, "rejected: cut short": 1}
    assert embeddings.origin.examples == ("row 3: the file ends here, but its header declares 3 rows",)


def test_nan_rows_are_counted_also_where_the_file_is_cut(tmp_path):
    rows = {b"a": [0.5, 1.5], b"b": [float("nan"), 3.5], b"c": [4.5, float("inf")]}
    embeddings = load(c_style(tmp_path / "v.bin", rows, promised=5))
    assert list(embeddings.tokens) == ["a"]
    assert embeddings.origin.counts["rejected: NaN or infinite"] == 2
    assert embeddings.origin.counts["rejected: cut short"] == 2
    assert embeddings.origin.counts["rejected"] == 4
    assert embeddings.origin.examples[0] == "the row of 'b' is NaN or infinite"


def test_the_first_of_equal_tokens_wins(tmp_path):
    path = tmp_path / "v.bin"
    row = struct.pack("<2f", 0.5, 1.5)
    path.write_bytes(b"2 2\na " + row + b"\na " + struct.pack("<2f", 9, 9) + b"\n")
    embeddings = load(path)
    assert embeddings.vectors.tolist() == [[0.5, 1.5]]
    assert embeddings.origin.counts["duplicates"] == 1


def test_a_row_longer_than_a_reading_block(tmp_path):
    """Some 10 MB: the reader's blocks are 4 MB."""
    matrix = np.random.default_rng(0).normal(size=(20, 1 << 17)).astype(np.float32)
    path = tmp_path / "v.bin"
    path.write_bytes(b"20 131072\n" + b"".join(b"w%d " % i + row.tobytes() for i, row in enumerate(matrix)))
    np.testing.assert_array_equal(load(path).vectors, matrix)
    np.testing.assert_array_equal(load(path, wanted={"w3", "w19"}).vectors, matrix[[3, 19]])


def test_absurd_headers_are_refused_and_take_no_memory(tmp_path):
    path = tmp_path / "v.bin"
    row = struct.pack("<2f", 0.5, 1.5)
    path.write_bytes(b"999999999999 2\na " + row)
    assert load(path).origin.counts["rejected: cut short"] == 999999999998
    path.write_bytes(b"1 999999999999\na " + row)
    with refused("v.bin"):
        load(path)
