"""Scores are the known ones, and the fast BLEU over tokens is sacreBLEU's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embinit.training.scoring import TokenBleu, bleu, chrf, confusion, macro_f1, matthews

VOCABULARY = ("<unk>", "<pad>", "<bos>", "<eos>", "a", "b", "c", "Straße", "\u00a0", ".")


def test_scores_are_the_known_ones() -> None:
    same = ["a b c d e f", "g h i j k"]
    assert bleu(same, same, "none").value == pytest.approx(100)
    assert "tok:none" in bleu(same, same, "none").signature
    assert chrf(same, same).value == pytest.approx(100)
    table = confusion(np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1]), 2)
    assert table.tolist() == [[1, 1], [1, 2]]
    assert macro_f1(table) == pytest.approx((0.5 + 2 / 3) / 2)
    assert matthews(table) == pytest.approx((1 * 2 - 1 * 1) / (2 * 3 * 2 * 3) ** 0.5)
    assert matthews(confusion(np.array([1, 1]), np.array([0, 1]), 2)) == 0
    assert matthews(np.array([[1, 1], [1, 2]]) * 1_000_000) == pytest.approx(matthews(table))


def both(found: list[list[int]], references: list[list[str]]) -> tuple[float, float]:
    """Return BLEU of token ids by ours and by sacreBLEU."""
    texts = [" ".join(VOCABULARY[i] for i in sentence) for sentence in found]
    return TokenBleu(references, VOCABULARY)(found), bleu(texts, [" ".join(one) for one in references], "none").value


ids = st.lists(st.integers(0, len(VOCABULARY) - 1), max_size=9)
words = st.lists(st.sampled_from([*VOCABULARY, "unheard", "of"]), max_size=9)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(ids, words), min_size=1, max_size=6))
def test_bleu_over_tokens_is_sacrebleus(pairs: list[tuple[list[int], list[str]]]) -> None:
    found, references = [list(one) for one in zip(*pairs, strict=True)]
    ours, theirs = both(found, references)
    assert ours == pytest.approx(theirs, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(words, st.integers(0, 8), st.integers(0, 9)), min_size=1, max_size=6))
def test_bleu_of_nearly_right_sentences_is_sacrebleus(pairs: list[tuple[list[str], int, int]]) -> None:
    references = [words for words, _, _ in pairs]
    numbers = {token: i for i, token in enumerate(VOCABULARY)}
    found = []
    for reference, at, token in pairs:
        own = [numbers.get(word, 0) for word in reference]
        found.append([*own[:at], token, *own[at + 1 :]])
    ours, theirs = both(found, references)
    assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("found", "references", "value"),
    [
        ([[4, 5, 6, 7]], [["a", "b", "c", "Straße"]], 100.0),
        ([[4, 5, 6, 7], []], [["a", "b", "c", "Straße"], []], 100.0),
        ([[]], [["a"]], 0.0),
        ([[]], [[]], 0.0),
        ([[4, 4, 4, 4]], [["b", "c", "b", "c"]], 0.0),
        ([[4, 5, 6]], [["a", "b", "c"]], 0.0),  # no four in a row
        ([[0, 0, 0, 0]], [["unheard", "of", "unheard", "of"]], 0.0),
        ([[4, 8, 5, 6, 7]], [["a", "b", "c", "Straße"]], 100.0),  # a blank token is none
        ([[4, 5, 6, 7]], [["a", "b", "c", "Straße"] * 2], 100 * np.exp(-1)),
        ([[4, 4, 4, 4]], [["a", "b", "c", "."]], 100 * (1 / 4 * 1 / 6 * 1 / 8 * 1 / 8) ** 0.25),
    ],
)
def test_bleu_at_its_edges(found: list[list[int]], references: list[list[str]], value: float) -> None:
    ours, theirs = both(found, references)
    assert ours == pytest.approx(value, abs=1e-9)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_bleu_is_not_moved_by_words_that_cross_from_one_sentence_to_the_next() -> None:
    references = [["a", "b"], ["c", "Straße", "a", "b", "c", "Straße"]]
    assert TokenBleu(references, VOCABULARY)([[4, 5, 6, 7], [4, 5, 6, 7]]) < 100


@pytest.mark.parametrize("found", [[], [[4]], [[4], [4], [4]]])
def test_one_sentence_too_many_or_too_few_is_an_error(found: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=f"{len(found)} sentences for 2 references"):
        TokenBleu([["a"], ["b"]], VOCABULARY)(found)
