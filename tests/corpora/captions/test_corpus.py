"""Splits, determinism, labels, work and the size of the vocabulary."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from itertools import islice
from math import log
from types import FrameType

import pytest

from embinit.corpora.captions import LABELS, labelled, pairs, stream
from embinit.errors import EmbinitError

PINNED = "8c3865af3270ac5e66f81314be11de196fcf93edab053eb6eeb1db52472d7ea0"


def words(sentence: str) -> list[str]:
    return sentence.lower().replace(",", "").removesuffix(".").split()


def test_the_first_thousand_are_pinned() -> None:
    text = "\n".join(f"{german}\t{english}" for german, english in pairs(1000, 1, "train"))
    assert hashlib.sha256(text.encode()).hexdigest() == PINNED


def test_the_order_of_sets_does_not_matter() -> None:
    code = "from embinit.corpora.captions import pairs; print(hash('a'), pairs(300, 1, 'train')[-1][1])"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.partition(" ")
        for seed in ("1", "2")
    ]
    assert outputs[0][0] != outputs[1][0]
    assert outputs[0][2] == outputs[1][2] == pairs(300, 1, "train")[-1][1] + "\n"


def test_the_first_are_the_same_whatever_the_count_and_seeds_differ() -> None:
    assert pairs(500, 3, "train")[:70] == pairs(70, 3, "train")
    assert pairs(50, 3, "test") == pairs(60, 3, "test")[:50]
    assert pairs(50, 3, "train") != pairs(50, 4, "train")
    assert list(islice(stream("de", 3), 20)) == list(islice(stream("de", 3), 30))[:20]
    assert pairs(0, 3, "train") == []


def test_no_sentence_of_valid_or_test_is_in_train_on_either_side() -> None:
    held = [pair for split in ("valid", "test") for seed in (1, 2) for pair in pairs(1500, seed, split)]  # type: ignore[arg-type]
    german, english = {pair[0] for pair in held}, {pair[1] for pair in held}
    assert len(german) > 5000
    for seed, count in ((1, 50_000), (7, 15_000), (123, 15_000)):
        train = pairs(count, seed, "train")
        assert not german & {pair[0] for pair in train}
        assert not english & {pair[1] for pair in train}
    assert not english & set(islice(stream("en", 1), 20_000))
    assert not german & set(islice(stream("de", 1), 20_000))
    assert not english & {sentence for sentence, _ in labelled(20_000, 1, "train")}
    valid, test = pairs(2000, 1, "valid"), pairs(2000, 2, "test")
    assert not {pair[0] for pair in valid} & {pair[0] for pair in test}
    assert not {pair[1] for pair in valid} & {pair[1] for pair in test}


def test_sentences_are_many_and_of_many_lengths() -> None:
    corpus = pairs(30_000, 5, "train")
    assert len(set(corpus)) > 29_000
    for side, least, most in ((0, 900, 1500), (1, 700, 1200)):
        tokens = [words(pair[side]) for pair in corpus]
        assert least <= len({word for sentence in tokens for word in sentence}) <= most
        # Marks count as tokens: the full stop, and about half a comma.
        lengths = [len(sentence) + 1 + pair[side].count(",") for sentence, pair in zip(tokens, corpus, strict=True)]
        assert 12 <= sum(lengths) / len(lengths) <= 14
        assert max(lengths) >= 25


def test_labels_are_balanced_and_no_keyword_list_decides_them() -> None:
    train, test = labelled(15_000, 1, "train"), labelled(2000, 1, "test")
    for number in range(len(LABELS)):
        assert 0.15 < sum(label == number for _, label in test) / len(test) < 0.35
    counts = [
        Counter(word for sentence, label in train if label == n for word in set(words(sentence))) for n in range(4)
    ]
    sizes = [sum(label == n for _, label in train) for n in range(4)]

    def votes(sentence: str) -> list[int]:
        """Return, for each word that mostly goes with one label, that label."""
        found = []
        for word in words(sentence):
            seen = [count[word] for count in counts]
            if sum(seen) >= 5 and max(seen) > 0.6 * sum(seen):
                found.append(seen.index(max(seen)))
        return found

    def bayes(sentence: str) -> int:
        known = [word for word in set(words(sentence)) if sum(count[word] for count in counts)]
        scores = [sum(log((counts[n][word] + 0.5) / sizes[n]) for word in known) for n in range(4)]
        return scores.index(max(scores))

    listed = sum(Counter([*votes(s), 0]).most_common(1)[0][0] == label for s, label in test) / len(test)
    weighed = sum(bayes(s) == label for s, label in test) / len(test)
    assert 0.5 < listed < 0.9
    assert 0.7 < weighed < 0.92


def test_a_pair_takes_few_calls_because_the_lexicon_is_read_once() -> None:
    pairs(100, 1, "train")
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        pairs(1000, 0, "train")
    finally:
        sys.setprofile(None)
    assert 50 < calls / 1000 < 400


def test_an_unknown_split_or_language_is_an_error() -> None:
    with pytest.raises(EmbinitError, match="did you mean 'train'"):
        pairs(1, 1, "trian")  # type: ignore[arg-type]
    with pytest.raises(EmbinitError, match="one of de, en"):
        stream("fr", 1)  # type: ignore[arg-type]
