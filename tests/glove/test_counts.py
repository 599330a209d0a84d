"""Counts of pairs equal a plain reference, however the text is cut into blocks."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embinit.errors import EmbinitError
from embinit.glove.corpus import BREAK, OUTSIDE, EncodedCorpus, encode, text_lines
from embinit.glove.counts import checksum, cooccurrences
from embinit.text.tokenizers import tokenizer


def silent(what: str, done: int, total: int | None) -> None:
    pass


def corpus_of(lines: list[str], min_count: int = 1) -> EncodedCorpus:
    return encode(lines, tokenizer("whitespace"), min_count=min_count, origin="a text", progress=silent)


def reference(lines: list[str], min_count: int, window: int, symmetric: bool) -> dict[tuple[str, str], float]:
    seen = Counter(word for line in lines for word in line.split())
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for line in lines:
        words = [word for word in line.split() if seen[word] >= min_count]
        for place, word in enumerate(words):
            for before in range(max(0, place - window), place):
                sums[word, words[before]] += 1 / (place - before)
                if symmetric:
                    sums[words[before], word] += 1 / (place - before)
    return sums


texts = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12).map(" ".join), min_size=1, max_size=12)


@given(texts, st.integers(1, 3), st.integers(1, 6), st.booleans(), st.integers(1, 60))
@settings(max_examples=300, deadline=None)
def test_counts_equal_the_reference(
    lines: list[str], min_count: int, window: int, symmetric: bool, at_once: int
) -> None:
    expected = reference(lines, min_count, window, symmetric)
    try:
        corpus = corpus_of(lines, min_count)
    except EmbinitError:
        assert not expected
        return
    tokens = corpus.vocabulary.tokens
    pairs = cooccurrences(
        corpus.ids, len(tokens), window=window, symmetric=symmetric, progress=silent, pairs_at_once=at_once
    ).tocoo()
    found = {
        (tokens[i], tokens[j]): float(x)
        for i, j, x in zip(*(part.tolist() for part in (pairs.row, pairs.col, pairs.data)), strict=True)
    }
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_text_is_numbered_commonest_first() -> None:
    corpus = corpus_of(["b a b", "", "c b a"], min_count=2)
    assert corpus.vocabulary.tokens == ("b", "a")
    assert corpus.vocabulary.counts is not None
    assert corpus.vocabulary.counts.tolist() == [3, 2]
    assert corpus.ids.tolist() == [0, 1, 0, BREAK, BREAK, OUTSIDE, 0, 1, BREAK]
    assert (corpus.tokens, corpus.rare, corpus.left_out) == (6, 1, ())


def test_tokens_that_a_line_cannot_hold_are_left_out_and_named() -> None:
    cut = [["New York", "is", "is"], ["is", "", "a\0b", "\ud800", "\u00a0", "here"]]
    corpus = encode(["", ""], lambda lines: iter(cut), min_count=1, origin="a text", progress=silent)
    assert corpus.vocabulary.tokens == ("is", "here")
    assert corpus.left_out == ("New York", "", "a\0b", "\ud800", "\u00a0")
    assert corpus.tokens == 9


def test_the_checksum_tells_counts_and_words_apart() -> None:
    def of(lines: list[str], window: int = 2) -> str:
        corpus = corpus_of(lines)
        size = len(corpus.vocabulary)
        pairs = cooccurrences(corpus.ids, size, window=window, symmetric=True, progress=silent)
        return checksum(pairs, corpus.vocabulary.tokens)

    made = [of(["a b c a b"]), of(["a b c a b"], 1), of(["a b d a b"]), of(["a b c b a"])]
    assert len(set(made)) == 4
    assert of(["a b c a b"]) == made[0]


def test_files_of_all_kinds_and_stdin_give_their_lines(tmp_path, monkeypatch) -> None:
    content = "größer ist\r\nbesser\n".encode()
    packed = {"a.txt": content, "a.gz": gzip.compress(content), "a.bz2": bz2.compress(content)}
    packed["a.xz"] = lzma.compress(content)
    for name, raw in packed.items():
        (tmp_path / name).write_bytes(raw)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    lines = list(text_lines([*(str(tmp_path / name) for name in packed), "-"]))
    assert lines == ["größer ist", "besser"] * 5


def test_a_long_line_is_counted_across_blocks() -> None:
    rng = np.random.default_rng(1)
    line = " ".join(f"w{i}" for i in rng.integers(0, 50, 5000))
    corpus = corpus_of([line])
    size = len(corpus.vocabulary)
    whole = cooccurrences(corpus.ids, size, window=10, symmetric=True, progress=silent)
    cut = cooccurrences(corpus.ids, size, window=10, symmetric=True, progress=silent, pairs_at_once=700)
    np.testing.assert_allclose(whole.toarray(), cut.toarray(), rtol=1e-12)
    # Each of n - d places has a pair at distance d, seen from both sides.
    assert whole.sum() == pytest.approx(2 * sum((5000 - d) / d for d in range(1, 11)))
