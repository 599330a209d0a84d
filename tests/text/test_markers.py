"""Marks of sub-word schemes: taken off and put back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from embinit.text.markers import (
    add_marker,
    all_markers,
    from_byte_level,
    looks_special,
    scheme_of,
    strip_marker,
    to_byte_level,
)

SCHEMES = ["sentencepiece", "byte-level", "wordpiece", "end-of-word"]
# What a piece may hold: no spaces and no marks of its own.
word = st.text(
    st.characters(exclude_categories=["Cs", "Z", "Cc"], exclude_characters="▁#@</>"), min_size=1, max_size=12
)


@pytest.mark.parametrize("scheme", [*SCHEMES, "subword-nmt"])
@settings(max_examples=100, deadline=None)
@given(text=word, begins=st.booleans())
def test_strip_marker_is_the_inverse_of_add_marker(scheme, text, begins):
    assert strip_marker(add_marker(text, begins, scheme), scheme) == (text, begins)


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])), begins=st.booleans())
def test_all_markers_are_those_of_each_scheme_once(text, begins):
    expected = {add_marker(text, begins, scheme) for scheme in [*SCHEMES, "subword-nmt", "words"]}
    assert set(all_markers(text, begins)) == expected


@settings(max_examples=100, deadline=None)
@given(word)
def test_whole_words_have_no_marks(text):
    assert add_marker(text, True, "words") == text
    assert strip_marker(text, "words") == (text, True)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_byte_level_is_reversible(text):
    spelled = to_byte_level(text)
    assert from_byte_level(spelled) == text
    assert not any(char.isspace() for char in spelled)


def test_byte_level_is_that_of_the_tokenizers_library():
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    text = "".join(map(chr, range(1, 0x250))) + " für 東京 🙂"
    assert to_byte_level(text) == split.pre_tokenize_str(text)[0][0]


def test_half_a_character_keeps_its_spelling():
    half = to_byte_level("é")[:1]
    assert from_byte_level(half) == half
    assert from_byte_level("東") == "東"  # never written by a byte-level scheme


@pytest.mark.parametrize(
    ("token", "scheme", "expected"),
    [
        ("▁the", "sentencepiece", ("the", True)),
        ("ing", "sentencepiece", ("ing", False)),
        ("▁", "sentencepiece", ("", True)),
        ("Ġthe", "byte-level", ("the", True)),
        ("ĠfÃ¼r", "byte-level", ("für", True)),
        ("##ing", "wordpiece", ("ing", False)),
        ("##", "wordpiece", ("##", True)),
        ("the</w>", "end-of-word", ("the", True)),
        ("th@@", "subword-nmt", ("th", False)),
    ],
)
def test_strip_marker(token, scheme, expected):
    assert strip_marker(token, scheme) == expected


@pytest.mark.parametrize("scheme", [*SCHEMES, "subword-nmt", "words"])
def test_the_scheme_is_told_from_a_list(scheme):
    words = ["the", "cat", "sat", "on", "mat", "a", "dog"]
    tokens = [add_marker(text, i % 2 == 0, scheme) for i, text in enumerate(words)]
    assert scheme_of(["<unk>", *tokens]) == scheme


def test_a_single_mark_in_many_words_is_no_scheme():
    assert scheme_of([*(f"w{i}" for i in range(1000)), "##a", "##b"]) == "words"
    assert scheme_of([]) == "words"


@pytest.mark.parametrize(
    "token", ["<pad>", "</s>", "[CLS]", "<|endoftext|>", "<0x0A>", "<extra_id_12>", "[unused7]", "<PAD>", "<mask>"]
)
def test_looks_special(token):
    assert looks_special(token)


@pytest.mark.parametrize("token", ["pad", "<b>", "[1]", "<|", "<", "[]", "a<pad>", "<0xZZ>", ""])
def test_looks_ordinary(token):
    assert not looks_special(token)
