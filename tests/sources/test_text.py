"""The ten vector files on which other readers fail, and the rows that are wanted of them."""

import bz2
import gzip
import lzma
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from embinit.sources.load import load
from tests.refusal import refused

Rows = dict[bytes, list[float]]
ROWS: Rows = {b"the": [0.25, -1.5, 3.0], b"cat": [0.1, 0.2, 0.3], b"at": [-0.5, 0.0625, 1e-05]}
SPACED: Rows = {b". . .": [9.0, 8.0, 7.0], b"at name@domain.com": [4.0, 5.0, 6.0], **ROWS}
ODD_SPACES: Rows = {"new\u00a0york".encode(): [1, 2, 3], "a\u0085b".encode(): [4, 5, 6], "a\u2028b".encode(): [7, 8, 9]}


def lines(rows: Rows, end: bytes = b"\n") -> bytes:
    return b"".join(b" ".join([token, *(b"%r" % value for value in row)]) + end for token, row in rows.items())


def without_header(path: Path) -> Rows:
    path.write_bytes(lines(ROWS))
    return ROWS


def with_header(path: Path) -> Rows:
    path.write_bytes(b"3 3\n" + lines(ROWS))
    return ROWS


def spaced_tokens(path: Path) -> Rows:
    path.write_bytes(lines(SPACED))
    return SPACED


def odd_space_characters(path: Path) -> Rows:
    path.write_bytes(lines(ODD_SPACES))
    return ODD_SPACES


def trailing_spaces(path: Path) -> Rows:
    path.write_bytes(b"3 3 \n" + lines(ROWS, b" \n"))
    return ROWS


def empty_token(path: Path) -> Rows:
    rows = {**ROWS, b"": [5.0, 6.0, 7.0]}
    path.write_bytes(lines(rows))
    return rows


def invalid_utf8(path: Path) -> Rows:
    rows = {**ROWS, b"caf\xe9": [5.0, 6.0, 7.0]}
    path.write_bytes(lines(rows))
    return rows


def duplicates(path: Path) -> Rows:
    path.write_bytes(lines(ROWS) + lines({b"cat": [9.0, 9.0, 9.0], b"the": [9.0, 9.0, 9.0]}))
    return ROWS


def gzipped(path: Path) -> Rows:
    path.write_bytes(gzip.compress(lines(ROWS)))
    return ROWS


def word2vec_binary(path: Path) -> Rows:
    body = b"".join(token + b" " + struct.pack("<3f", *row) + b"\n" for token, row in ROWS.items())
    path.write_bytes(b"3 3\n" + body)
    return ROWS


TEN: list[Callable[[Path], Rows]] = [
    without_header,
    with_header,
    spaced_tokens,
    odd_space_characters,
    trailing_spaces,
    empty_token,
    invalid_utf8,
    duplicates,
    gzipped,
    word2vec_binary,
]


@pytest.mark.parametrize("write", TEN, ids=lambda write: write.__name__)
def test_every_row_comes_out_as_it_went_in(write, tmp_path):
    rows = write(tmp_path / "vectors")
    embeddings = load(tmp_path / "vectors")
    assert [token.encode("utf-8", "surrogateescape") for token in embeddings.tokens] == list(rows)
    np.testing.assert_array_equal(embeddings.vectors, np.array(list(rows.values()), dtype=np.float32))
    assert embeddings.vectors.dtype == np.float32
    assert "rejected" not in embeddings.origin.counts


@pytest.mark.parametrize("write", TEN, ids=lambda write: write.__name__)
def test_wanted_gives_the_rows_that_the_whole_gives(write, tmp_path):
    rows = write(tmp_path / "vectors")
    whole = load(tmp_path / "vectors")
    for token in whole.tokens:
        embeddings = load(tmp_path / "vectors", wanted={token, "not there"})
        assert list(embeddings.tokens) == [token]
        np.testing.assert_array_equal(embeddings.vectors, whole.vectors[[whole.index[token]]])
    every = load(tmp_path / "vectors", wanted=set(whole.tokens))
    assert list(every.tokens) == list(whole.tokens)
    assert len(every) == len(rows)


@pytest.mark.parametrize("write", TEN, ids=lambda write: write.__name__)
def test_most_keeps_the_first_rows(write, tmp_path):
    write(tmp_path / "vectors")
    whole, first = load(tmp_path / "vectors"), load(tmp_path / "vectors", most=2)
    assert list(first.tokens) == list(whole.tokens[:2])
    np.testing.assert_array_equal(first.vectors, whole.vectors[:2])


def test_at_is_not_taken_from_the_row_of_a_longer_token(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(lines({token: row for token, row in SPACED.items() if token != b"at"}))
    assert list(load(path, wanted={"at"}).tokens) == []
    spaced_tokens(path)
    assert load(path, wanted={"at"}).vectors.tolist() == [[-0.5, 0.0625, float(np.float32(1e-05))]]


def test_nothing_wanted_is_nothing_found_and_no_error(tmp_path):
    with_header(tmp_path / "v.txt")
    embeddings = load(tmp_path / "v.txt", wanted={"absent"})
    assert len(embeddings) == 0
    assert embeddings.vectors.shape == (0, 3)


def test_invalid_utf8_is_counted_and_reversible(tmp_path):
    invalid_utf8(tmp_path / "v.txt")
    embeddings = load(tmp_path / "v.txt")
    assert embeddings.origin.counts["undecodable"] == 1
    assert embeddings.tokens[-1] == "caf\udce9"


def test_duplicates_are_counted(tmp_path):
    duplicates(tmp_path / "v.txt")
    assert load(tmp_path / "v.txt").origin.counts == {"rows": 5, "duplicates": 2}


def test_the_format_is_told_by_content(tmp_path):
    formats = {}
    for write in (without_header, with_header, word2vec_binary):
        write(tmp_path / "vectors.png")
        formats[write.__name__] = load(tmp_path / "vectors.png").origin.format
    assert formats == {
        "without_header": "GloVe text",
        "with_header": "word2vec text",
        "word2vec_binary": "word2vec binary",
    }


# ---------------------------------------------------------------- compressed


def zipped(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.txt", data)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed_files_are_seen_through(pack, tmp_path):
    (tmp_path / "v.txt").write_bytes(pack(lines(ROWS)))
    assert list(load(tmp_path / "v.txt").tokens) == ["the", "cat", "at"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_a_compressed_file_that_is_cut_is_an_error(pack, tmp_path):
    whole = pack(np.random.default_rng(0).bytes(5000).hex().encode())
    (tmp_path / "v.txt").write_bytes(whole[: len(whole) // 2])
    with refused("v.txt"):
        load(tmp_path / "v.txt")


def test_a_zip_of_one_member_needs_no_name(tmp_path):
    zipped(tmp_path / "v.zip", **{"glove": lines(ROWS), "__MACOSX/._glove": b"resource fork"})
    assert load(tmp_path / "v.zip").vectors[1].tolist() == pytest.approx([0.1, 0.2, 0.3])


def test_a_zip_of_several_members_lists_them(tmp_path):
    zipped(tmp_path / "v.zip", small=lines(ROWS), large=lines(SPACED))
    with refused("2 members", "small.txt", "large.txt"):
        load(tmp_path / "v.zip")
    assert len(load(f"{tmp_path / 'v.zip'}::large.txt")) == 5
    assert len(load(f"{tmp_path / 'v.zip'}::small.txt", wanted={"cat"})) == 1
    with refused("'large.txt'"):
        load(f"{tmp_path / 'v.zip'}::larger.txt")


def test_a_plain_file_has_no_member(tmp_path):
    without_header(tmp_path / "v.txt")
    with refused("v.txt", "member"):
        load(f"{tmp_path / 'v.txt'}::member")
