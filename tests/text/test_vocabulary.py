"""Vocabularies from text, files and lists."""

import gzip
import json

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from embinit.text.tokenizers import tokenizer
from embinit.text.vocabulary import from_file, from_text, from_tokens, read_lines
from tests.refusal import refused

LINES = ["the cat sat on the mat", "The dog sat on <unk>", "a a a a"]
words = tokenizer("whitespace")


def test_specials_come_first_then_the_commonest_then_the_alphabet():
    vocabulary = from_text(LINES, words)
    assert vocabulary.tokens == (
        "<unk>",
        "<pad>",
        "<bos>",
        "<eos>",
        "a",
        "on",
        "sat",
        "the",
        "The",
        "cat",
        "dog",
        "mat",
    )
    assert vocabulary.counts is not None
    assert vocabulary.counts.tolist() == [0, 0, 0, 0, 4, 2, 2, 2, 1, 1, 1, 1]
    assert vocabulary.specials == {"<unk>", "<pad>", "<bos>", "<eos>"}
    assert vocabulary.index["sat"] == 6


def test_min_count_and_lower():
    assert from_text(LINES, words, min_count=2).tokens[4:] == ("a", "on", "sat", "the")
    assert from_text(LINES, words, min_count=3, lower=True).tokens[4:] == ("a", "the")


def test_other_specials():
    vocabulary = from_text(LINES, words, min_count=4, specials=["[PAD]"])
    assert vocabulary.tokens == ("[PAD]", "a")
    assert vocabulary.specials == {"[PAD]"}


def test_text_without_frequent_tokens_is_an_error():
    with refused("corpus", 9):
        from_text(LINES, words, min_count=9, origin="corpus")
    with pytest.raises(ValueError, match=r"^empty.txt has no token$"):
        from_text([], words, origin="empty.txt")


# ---------------------------------------------------------------- lists and files


def test_a_list_keeps_its_order():
    vocabulary = from_tokens(["b", "[CLS]", "a"], specials=["b"])
    assert vocabulary.tokens == ("b", "[CLS]", "a")
    assert vocabulary.specials == {"b", "[CLS]"}
    assert vocabulary.counts is None


def test_repeated_or_no_tokens_are_an_error():
    with refused("the vocabulary (a list) has a repeated token: 'a'"):
        from_tokens(["a", "b", "a"])
    with refused("the vocabulary (a list) has no tokens"):
        from_tokens([])


def test_holes_keep_the_rows_in_place(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 3}))
    vocabulary = from_file(tmp_path / "vocab.json")
    assert vocabulary.tokens == ("a", "<unused-1>", "<unused-2>", "b")
    assert vocabulary.specials == {"<unused-1>", "<unused-2>"}


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_tokenizer_splits_words_where_it_has_pieces(what, tmp_path):
    vocabulary = {token: i for i, token in enumerate(["[UNK]", "cat", "##s", "##er", "walk"])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    found = from_file(tmp_path / "tokenizer.json" if what == "file" else tmp_path)
    assert found.tokens == tuple(vocabulary)
    assert found.split is not None
    assert found.split("walkers") == ["walk", "##er", "##s"]


def test_a_word_list_does_not_split(tmp_path):
    (tmp_path / "words.txt").write_text("a\nb\n")
    assert from_file(tmp_path / "words.txt").split is None


def test_a_missing_vocabulary_is_an_error(tmp_path):
    with refused("no such vocabulary"):
        from_file(tmp_path / "absent")


# ---------------------------------------------------------------- text files


def test_lines_of_plain_and_compressed_files(tmp_path):
    (tmp_path / "a.txt").write_bytes("one\u2028line\r\ntwo\n".encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"three"))
    assert list(read_lines([tmp_path / "a.txt", tmp_path / "b.txt.gz"])) == ["one\u2028line", "two", "three"]


def test_a_line_that_is_no_utf8_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"fine\ncaf\xe9\n")
    with refused("a.txt, line 2", "UTF-8"):
        list(read_lines([tmp_path / "a.txt"]))
    with refused("no such text file"):
        list(read_lines([tmp_path / "absent"]))
    with refused("is a folder; give the text files in it"):
        list(read_lines([tmp_path]))
