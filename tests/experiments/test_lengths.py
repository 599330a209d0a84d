"""Scores by length: every sentence is in one bucket, none has too few, and runs keep them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embinit.corpora.examples import Corpus, Reading, split_of
from embinit.experiments.execution.scoring import Scores, score_labels, score_translations
from embinit.experiments.runs import length_buckets
from embinit.experiments.runs.length_buckets import LengthBucket, by_length
from embinit.experiments.runs.result import read_result
from embinit.prepared.prepare import Settings, prepare
from tests.reports import made


def mean_place(places: list[int]) -> float:
    return sum(places) / len(places)


def test_the_sentences_of_a_bucket_are_scored_together() -> None:
    tokens = [5] * 60 + [9] * 70 + [100] * 50
    scores = {(0, 7, 60): 29.5, (8, 47, 70): 94.5, (48, None, 50): 154.5}
    assert by_length(tokens, mean_place) == scores


def test_few_sentences_join_their_shorter_neighbour_and_the_shortest_their_longer_one() -> None:
    found = by_length([3] * 10 + [9] * 60 + [13] * 60 + [60] * 49, mean_place)
    assert list(found) == [(0, 11, 70), (12, None, 109)]


def test_small_buckets_join_from_the_long_end() -> None:
    found = by_length([3] * 60 + [9] * 30 + [13] * 30 + [20] * 60, mean_place)
    assert list(found) == [(0, 7, 60), (8, 15, 60), (16, None, 60)]


@pytest.mark.parametrize("tokens", [[], [5] * 1000, [5] * 40 + [50] * 40])
def test_one_bucket_tells_nothing_of_length(tokens: list[int]) -> None:
    assert by_length(tokens, mean_place) == {}


@given(st.lists(st.integers(0, 80), max_size=900))
def test_every_sentence_is_in_one_bucket_and_buckets_follow_each_other(tokens: list[int]) -> None:
    seen: list[list[int]] = []

    def score(places: list[int]) -> float:
        seen.append(places)
        return 0.0

    found = by_length(tokens, score)
    if not found:
        return
    assert sorted(place for places in seen for place in places) == list(range(len(tokens)))
    buckets = list(found)
    assert buckets[0].low == 0 and buckets[-1].high is None
    assert all(bucket.high is not None and bucket.high + 1 == longer.low for bucket, longer in pairwise(buckets))
    for bucket, places in zip(buckets, seen, strict=True):
        assert bucket.sentences == len(places) >= 50
        assert all(
            bucket.low <= tokens[place] and (bucket.high is None or tokens[place] <= bucket.high) for place in places
        )


def test_a_run_keeps_them_and_one_without_has_none(tmp_path: Path) -> None:
    plain = made.result(made.spec(), 37.0)
    known = {"test": {"bleu": {LengthBucket(0, 7, 375): 57.5, LengthBucket(8, None, 1249): 49.25}}}
    assert read_result(plain.write(tmp_path / "old")).lengths == {}
    assert read_result(replace(plain, lengths=known).write(tmp_path / "new")).lengths == known
    assert length_buckets.from_json(length_buckets.as_json(known)) == known


SHORT, LONG = "a b c d", "a b c d e f g h i j k l m n o p q r"


def test_translations_that_fail_on_long_sentences_are_seen_by_length(tmp_path: Path) -> None:
    texts = [SHORT] * 60 + [LONG] * 60
    splits = {name: split_of([texts, texts], None, Reading([name])) for name in ("train", "test")}
    corpus = Corpus("copy", "translation", splits, languages=("xx", "xx"))
    prepared, _ = prepare(corpus, Settings("copy", ("whitespace",) * 2, False, 1, ("xx", "xx")), tmp_path)
    scores = Scores()
    score_translations(scores, "test", [SHORT.split()] * 60 + [list(reversed(LONG.split()))] * 60, prepared)
    (shortest, short), (_, long) = scores.lengths["test"]["bleu"].items()
    assert shortest == (0, 15, 60)
    assert short == pytest.approx(100) and long < 10
    assert 0 < scores.scores["test"]["bleu"] < 100


def test_labels_that_are_wrong_on_long_texts_are_seen_by_length(tmp_path: Path) -> None:
    texts = [SHORT] * 60 + [LONG] * 60
    splits = {name: split_of([texts], [1] * 120, Reading([name])) for name in ("train", "valid")}
    corpus = Corpus("all", "classification", splits, ("no", "yes"), ("xx",))
    prepared, _ = prepare(corpus, Settings("all", ("whitespace",), False, 1, ("xx",)), tmp_path)
    scores = Scores()
    score_labels(scores, "valid", [1] * 60 + [1, 0] * 30, prepared)
    assert list(scores.lengths["valid"]["accuracy"].values()) == [1.0, 0.5]
