"""Missing tokens: their order, the likely reasons, and the forms in which they are shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embinit.alignment import Matching, align
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.missing import MissingTokens, missing_tokens
from embinit.text.vocabulary import from_text, from_tokens
from embinit.types import Aligned, Embeddings, Origin, Vocabulary
from tests.refusal import refused

WORDS = ("the", "dog", "sat", "on", "mat", *(f"w{i}" for i in range(60)))
SOURCE = Embeddings(
    WORDS, np.random.default_rng(0).standard_normal((len(WORDS), 8)).astype(np.float32), Origin("made", "array")
)


def missing_of(tokens: list[str], matching: Matching | None = None) -> MissingTokens:
    return missing_tokens(align(SOURCE, from_tokens(tokens), matching=matching))


def test_the_most_frequent_come_first_and_special_tokens_are_none_of_them() -> None:
    words = (line.split() for line in ["zebra the gnu", "gnu the dog", "<unk> yak gnu yak"])
    aligned = align(SOURCE, from_text([""], lambda _: words))
    found = missing_tokens(aligned)
    assert (found.tokens, found.counts) == (("gnu", "yak", "zebra"), (3, 2, 1))
    assert found.first(2) == "gnu (3), yak (2) and 1 more"
    assert found.as_dict()["most frequent"][0] == {"token": "gnu", "count": 3}
    assert missing_of(["the", "zebra", "gnu"]).tokens == ("zebra", "gnu")
    assert missing_of(["the", "zebra"]).counts is None
    assert missing_of(["the", "dog"]).facts() == []


@pytest.mark.parametrize(
    ("tokens", "kinds"),
    [
        (["the 912", "dog\t40"], ["word count"]),
        (["912 the", "40 dog"], ["word count"]),
        (["Two men are cooking.", "A girl reads a book", "the"], ["lines"]),
        (["the", "dog,", "mat.", "“sat", "zebra"], ["tokenization"]),
        (["the", "dog's", "don't"], ["tokenization"]),
        (["the", "&apos;s", "&quot;", "@-@"], ["escapes"]),
        (["the", "##s", "##ing", "##ed"], ["pieces"]),
        (["the", "zebra", "gnu", "Yak", "3.5", "U.S", "well-known", "C++"], []),
        (["the", *(f"unknown{i}" for i in range(20)), "dog,"], []),
    ],
)
def test_reasons_are_guessed_from_the_tokens(tokens: list[str], kinds: list[str]) -> None:
    found = missing_of(tokens)
    assert found.tokens
    assert [reason.kind for reason in found.reasons] == kinds


def test_case_is_a_reason_only_if_it_may_not_be_matched() -> None:
    tokens = ["the", "dog", "The", "DOG", "Zebra"]
    (reason,) = missing_of(tokens, Matching(case=False)).reasons
    assert (reason.kind, reason.tokens) == ("case", 2)
    assert missing_of(tokens).reasons == ()


def test_pieces_with_their_tokenizer_have_no_reason() -> None:
    tokens = ("the", "##s", "##ing", "##ed")
    aligned = align(SOURCE, Vocabulary(tokens, split=lambda word: [word]))
    assert len(missing_tokens(aligned)) == 3
    assert missing_tokens(aligned).reasons == ()


def test_many_missing_tokens_are_shown_in_one_short_line() -> None:
    lacking = missing_of([f"word{i}" for i in range(3_000)])
    assert len(lacking) == 3_000
    assert repr(lacking).startswith("MissingTokens(word0, word1")
    assert repr(lacking).endswith("and 2,990 more)")


def test_the_file_has_every_token_in_one_line(tmp_path: Path) -> None:
    tokens = [f"zebra{i}" for i in range(300)] + ["line\nbreak", "\udcff"]
    missing_of(["the", *tokens]).write(tmp_path / "missing.txt")
    lines = (tmp_path / "missing.txt").read_bytes().split(b"\n")
    assert lines[:1] + lines[-3:] == [b"zebra0", b"line\\nbreak", b"\xff", b""]
    assert len(lines) == 303
    counted = align(SOURCE, from_text([""], lambda _: iter([["gnu", "gnu", "yak", "the"]])))
    missing_tokens(counted).write(tmp_path / "counted.txt")
    assert (tmp_path / "counted.txt").read_text() == "gnu\t2\nyak\t1\n"


def test_a_token_cannot_control_the_terminal() -> None:
    found = missing_of(["the", "\x1b[2Jclear", "a" * 5000])
    assert found.first() == "\ufffd[2Jclear, " + "a" * 40 + "…"


def test_a_diagnosis_lists_them_and_an_empty_alignment_names_the_reason(aligned: Aligned) -> None:
    diagnosis = diagnose(aligned)
    assert len(diagnosis.missing_tokens) == 22
    assert diagnosis.as_dict()["missing"]["tokens"] == 22
    assert "missing0, missing1" in dict(diagnosis.panel().facts)["missing"]
    with refused("the 912", "a word and its count"):
        diagnose(align(SOURCE, ["the 912", "dog 40"]))


def test_half_a_character_is_a_missing_token_as_any_other(tmp_path: Path) -> None:
    odd = ["\ud800", "Ġ\ud801", "\udc80x"]
    found = missing_of(["the", *odd])
    assert found.tokens == tuple(odd)
    found.write(tmp_path / "missing.txt")
    assert len((tmp_path / "missing.txt").read_bytes().splitlines()) == 3
