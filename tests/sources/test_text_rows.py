"""Rows that are written oddly are read, and rows that are wrong are counted with their line."""

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.sources.load import load
from embinit.sources.row_collector import decode_tokens

EXPECTED = {"a": [1.5, 2.5, 3.5], "b": [-1.0, 0.0, 4.0], "c": [7.0, 8.0, 9.0]}

SPELLINGS = {
    "tabs": b"a\t1.5\t2.5\t3.5\nb\t-1\t0\t4\nc\t7\t8\t9\n",
    "a tab after the token": b"a\t1.5 2.5 3.5\nb\t-1 0 4\nc\t7 8 9\n",
    "double spaces": b"a 1.5  2.5  3.5\nb -1  0  4\nc 7  8   9\n",
    "two spaces after the token": b"a  1.5 2.5 3.5\nb  -1 0 4\nc  7 8 9\n",
    "aligned columns": b"a   1.5  2.5 3.5\nb    -1    0   4\nc     7    8   9\n",
    "some lines with tabs": b"a 1.5 2.5 3.5\nb -1 0 4\nc\t7\t8\t9\n",
    "some lines without tabs": b"a\t1.5\t2.5\t3.5\nb\t-1\t0\t4\nc 7 8 9\n",
    "carriage returns": b"a 1.5 2.5 3.5\r\nb -1 0 4\r\nc 7 8 9\r\n",
    "carriage returns after spaces": b"3 3\r\na 1.5 2.5 3.5 \r\nb -1 0 4 \r\nc 7 8 9 \r\n",
    "byte order mark": b"\xef\xbb\xbfa 1.5 2.5 3.5\nb -1 0 4\nc 7 8 9\n",
    "byte order mark and header": b"\xef\xbb\xbf3 3\na 1.5 2.5 3.5\nb -1 0 4\nc 7 8 9\n",
    "no newline at the end": b"a 1.5 2.5 3.5\nb -1 0 4\nc 7 8 9",
    "trailing tabs": b"a 1.5 2.5 3.5\t\nb -1 0 4\t\nc 7 8 9\t\n",
    "blank lines": b"a 1.5 2.5 3.5\n\nb -1 0 4\n  \nc 7 8 9\n\n",
    "form feeds between lines": b"a 1.5 2.5 3.5\n\x0c\nb -1 0 4\n\x0b \x0c\nc 7 8 9\n",
}


@pytest.mark.parametrize("data", SPELLINGS.values(), ids=SPELLINGS)
def test_one_table_in_many_spellings(data, tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes(data)
    embeddings = load(path)
    assert dict(zip(embeddings.tokens, embeddings.vectors.tolist(), strict=True)) == EXPECTED
    assert "rejected" not in embeddings.origin.counts
    for token in EXPECTED:
        assert load(path, wanted={token}).vectors.tolist() == [EXPECTED[token]]


def test_blank_lines_are_counted(tmp_path):
    (tmp_path / "v.txt").write_bytes(SPELLINGS["blank lines"])
    assert load(tmp_path / "v.txt").origin.counts["blank lines"] == 3


GOOD = b"a 1 2 3\nb 4 5 6\nc 7 8 9\n"
REJECTED = {
    "shorter": (b"x 1 2\n", "another width", "line 4: 2 numbers, expected 3"),
    "longer": (b"x 1 2 3 4\n", "another width", "line 4: 4 numbers, expected 3"),
    "cut in the middle": (b"x 1 2", "another width", "line 4: 2 numbers, expected 3"),
    "only a token": (b"x\n", "another width", "line 4: 0 numbers, expected 3"),
    "nan": (b"x 1 nan 3\n", "NaN or infinite", "line 4: 'nan' is NaN or infinite"),
    "minus nan": (b"x 1 2 -nan\n", "NaN or infinite", "line 4: '-nan' is NaN or infinite"),
    "inf": (b"x 1 -inf 3\n", "NaN or infinite", "line 4: '-inf' is NaN or infinite"),
    "beyond float32": (b"x 1 1e300 3\n", "NaN or infinite", "line 4: a number beyond float32's range"),
    "beyond float64": (b"x 1 1e999 3\n", "NaN or infinite", "line 4: '1e999' is NaN or infinite"),
    "decimal comma": (b"x 1 0,1 3\n", "not a number", "line 4: '0,1' is not a number"),
    "underscore": (b"x 1 1_000 3\n", "not a number", "line 4: '1_000' is not a number"),
    "two dots": (b"x 1 1.5.3 3\n", "not a number", "line 4: '1.5.3' is not a number"),
    "word": (b"x 1 two 3\n", "not a number", "line 4: 'two' is not a number"),
}


@pytest.mark.parametrize(("line", "reason", "example"), REJECTED.values(), ids=REJECTED)
def test_a_wrong_row_is_counted_with_its_line(line, reason, example, tmp_path):
    (tmp_path / "v.txt").write_bytes(GOOD + line)
    embeddings = load(tmp_path / "v.txt")
    assert list(embeddings.tokens) == ["a", "b", "c"]
    assert embeddings.origin.counts == {"rows": 3, "rejected": 1, f"rejected: {reason}": 1}
    assert embeddings.origin.examples == (example,)


def test_the_line_is_right_after_a_header_and_blank_lines(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"4 3\n" + GOOD + b"\n\nx 1 2\n")
    assert load(tmp_path / "v.txt").origin.examples[0].startswith("line 7: 2 numbers")
    assert load(tmp_path / "v.txt", wanted={"x"}).origin.examples == ("line 7: 2 numbers, expected 3",)


def test_a_nan_row_does_not_hide_a_good_one_of_the_same_token(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"x nan 2 3\n" + GOOD + b"x 1 2 3\n")
    assert load(tmp_path / "v.txt", wanted={"x"}).vectors.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("text", ["1e-5", "12.5", "-.5", "+3", "1E+3", "0.1234567890123456789", "-0", "5.", "1e-300"])
def test_numbers_are_read_as_float_reads_them(text, tmp_path):
    (tmp_path / "v.txt").write_text(f"a {text} {text}\nb 1 2\n")
    assert load(tmp_path / "v.txt").vectors[0].tobytes() == np.float32([float(text)] * 2).tobytes()


# ---------------------------------------------------------------- headers and small files


def test_a_header_that_promises_more_rows_is_told(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"5 3\n" + GOOD)
    embeddings = load(tmp_path / "v.txt")
    assert len(embeddings) == 3
    assert embeddings.origin.counts["rows promised by the header"] == 5
    assert embeddings.origin.examples == ("the header declares 5 rows, but the file has 3",)


def test_an_absurd_header_takes_no_memory(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"99999999999 3\n" + GOOD)
    assert len(load(tmp_path / "v.txt")) == 3


ERRORS = {
    "empty": (b"", " is empty; expected vectors"),
    "only newlines": (b"\n\n\n", " is empty; expected a token and its numbers on each line"),
    "only a header": (b"400000 50\n", " has a header (400000 50) but no rows"),
    "rows narrower than the header": (b"3 4\n" + GOOD, ", line 2 has 3 numbers, but the header declares 4 (3 4)"),
    "rows wider than the header": (
        b"3 2\n" + GOOD,
        " has no usable row (3 rejected: line 2: 3 numbers, expected 2)",
    ),
    "a header without dimensions": (b"3 0\n" + GOOD, ", line 2 has 3 numbers, but the header declares 0 (3 0)"),
    "every row is NaN": (
        b"a nan nan\nb nan nan\n",
        " has no usable row (2 rejected: line 1: 'nan' is NaN or infinite)",
    ),
    "a page that shows one vector": (
        b"On vectors\n\nwritten in 2014\nand said in prose:\n\ncat 0.1 0.2 0.3\n",
        ": only 1 of the first 4 lines are a token and its numbers; expected a file of vectors",
    ),
    "decimal commas": (
        b"a 0,1 0,2\nb 0,3 0,4\n",
        ", line 1: 'a 0,1 0,2' is not a vector; expected a token and its numbers",
    ),
}


@pytest.mark.parametrize(("data", "message"), ERRORS.values(), ids=ERRORS)
def test_a_file_without_usable_rows_is_an_error_that_names_it(data, message, tmp_path):
    (tmp_path / "v.txt").write_bytes(data)
    with pytest.raises(EmbinitError) as caught:
        load(tmp_path / "v.txt")
    assert str(caught.value) == f"{tmp_path / 'v.txt'}{message}"


@pytest.mark.parametrize("data", [b"a 1\nb 2\nc 3\n", b"3 1\na 1\nb 2\nc 3\n"], ids=["without header", "with header"])
def test_one_dimension(data, tmp_path):
    (tmp_path / "v.txt").write_bytes(data)
    embeddings = load(tmp_path / "v.txt")
    assert list(embeddings.tokens) == ["a", "b", "c"]
    assert embeddings.vectors.tolist() == [[1], [2], [3]]


def test_tokens_that_are_numbers_are_no_header(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"1999 5\n2000 6\n2001 7\n")
    assert list(load(tmp_path / "v.txt").tokens) == ["1999", "2000", "2001"]


@pytest.mark.parametrize("data", [b"a 1 2 3\n", b"a 1 2 3", b"1 3\na 1 2 3"])
def test_a_single_row(data, tmp_path):
    (tmp_path / "v.txt").write_bytes(data)
    embeddings = load(tmp_path / "v.txt")
    assert (list(embeddings.tokens), embeddings.vectors.tolist()) == (["a"], [[1, 2, 3]])


def test_rows_that_span_reading_blocks(tmp_path):
    """Some 5 MB: the reader's blocks are 2 MB, so rows are cut by two block ends."""
    matrix = np.random.default_rng(0).normal(size=(9000, 50)).astype(np.float32)
    with (tmp_path / "v.txt").open("w") as file:
        for i, row in enumerate(matrix):
            file.write(f"w{i} " + " ".join(f"{value:.8e}" for value in row) + "\n")
    embeddings = load(tmp_path / "v.txt")
    assert list(embeddings.tokens) == [f"w{i}" for i in range(9000)]
    np.testing.assert_array_equal(embeddings.vectors, matrix)
    picked = load(tmp_path / "v.txt", wanted={f"w{i}" for i in range(0, 9000, 7)})
    np.testing.assert_array_equal(picked.vectors, matrix[::7])


def test_the_first_of_equal_tokens_wins_however_it_is_spaced(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"a 1 2 3\nx 4  5 6\nx 7 8 9\n. . 1 1 1\nb 1 2 3\n")
    embeddings = load(tmp_path / "v.txt")
    assert list(embeddings.tokens) == ["a", "x", ". .", "b"]
    assert embeddings.vectors[1].tolist() == [4, 5, 6]


@pytest.mark.parametrize("tokens", [[], [b"a"], [b"a", b"", b"\xc3\xa4"], [b"a\nb", b"c"], [b"\n"], [b"\xff", b"a"]])
def test_tokens_are_decoded_as_one_by_one(tokens: list[bytes]) -> None:
    texts = [token.decode("utf-8", "surrogateescape") for token in tokens]
    assert decode_tokens(tokens) == (texts, tokens.count(b"\xff"))
