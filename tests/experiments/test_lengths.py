"""Scores by length: every sentence is in one stretch, none has too few, and runs keep them."""

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
from embinit.experiments.runs.length_buckets import Stretch, by_length
from embinit.experiments.runs.result import read_result
from embinit.prepared.prepare import Settings, prepare
from tests.reports import made


def mean_place(places: list[int]) -> float:
    return sum(places) / len(places)


def test_sentences_are_scored_by_their_stretch_of_lengths() -> None:
    tokens = [5] * 60 + [9] * 70 + [100] * 50
    assert by_length(tokens, mean_place) == [
        Stretch(0, 7, 60, 29.5), Stretch(8, 47, 70, 94.5), Stretch(48, None, 50, 154.5)
    ]  # fmt: skip


def test_few_sentences_join_their_shorter_neighbour_and_the_shortest_their_longer_one() -> None:
    found = by_length([3] * 10 + [9] * 60 + [13] * 60 + [60] * 49, mean_place)
    assert [(one.low, one.high, one.sentences) for one in found] == [(0, 11, 70), (12, None, 109)]


def test_small_stretches_join_from_the_long_end() -> None:
    found = by_length([3] * 60 + [9] * 30 + [13] * 30 + [20] * 60, mean_place)
    assert [(one.low, one.high, one.sentences) for one in found] == [(0, 7, 60), (8, 15, 60), (16, None, 60)]


@pytest.mark.parametrize("tokens", [[], [5] * 1000, [5] * 40 + [50] * 40])
def test_one_stretch_tells_nothing_of_length(tokens: list[int]) -> None:
    assert by_length(tokens, mean_place) == []


@given(st.lists(st.integers(0, 80), max_size=900))
def test_every_sentence_is_in_one_stretch_and_stretches_follow_each_other(tokens: list[int]) -> None:
    seen: list[list[int]] = []

    def score(places: list[int]) -> float:
        seen.append(places)
        return 0.0

    found = by_length(tokens, score)
    if not found:
        return
    assert sorted(place for places in seen for place in places) == list(range(len(tokens)))
    assert found[0].low == 0 and found[-1].high is None
    assert all(one.high is not None and one.high + 1 == after.low for one, after in pairwise(found))
    for one, places in zip(found, seen, strict=True):
        assert one.sentences == len(places) >= 50
        assert all(one.low <= tokens[place] and (one.high is None or tokens[place] <= one.high) for place in places)


def test_a_run_keeps_them_and_one_without_has_none(tmp_path: Path) -> None:
    plain = made.result(made.spec(), 37.0)
    known = {"test": {"bleu": [Stretch(0, 7, 375, 57.5), Stretch(8, None, 1249, 49.25)]}}
    assert read_result(plain.write(tmp_path / "old")).lengths == {}
    assert read_result(replace(plain, lengths=known).write(tmp_path / "new")).lengths == known
    assert length_buckets.from_json(length_buckets.as_json(known)) == known


SHORT, LONG = "a b c d", "a b c d e f g h i j k l m n o p q r"


def test_translations_that_fail_on_long_sentences_are_seen_by_length(tmp_path: Path) -> None:
    texts = [SHORT] * 60 + [LONG] * 60
    splits = {name: split_of([texts, texts], None, Reading([name])) for name in ("train", "test")}
    corpus = Corpus("copy", "translation", splits, languages=("xx", "xx"))
    prepared, _ = prepare(corpus, Settings("copy", ("whitespace",) * 2, False, 1, ("xx", "xx")), tmp_path)
    said = Scores()
    score_translations(said, "test", [SHORT.split()] * 60 + [list(reversed(LONG.split()))] * 60, prepared)
    short, long = said.lengths["test"]["bleu"]
    assert (short.low, short.high, short.sentences) == (0, 15, 60)
    assert short.score == pytest.approx(100) and long.score < 10
    assert 0 < said.scores["test"]["bleu"] < 100


def test_labels_that_are_wrong_on_long_texts_are_seen_by_length(tmp_path: Path) -> None:
    texts = [SHORT] * 60 + [LONG] * 60
    splits = {name: split_of([texts], [1] * 120, Reading([name])) for name in ("train", "valid")}
    corpus = Corpus("all", "classification", splits, ("no", "yes"), ("xx",))
    prepared, _ = prepare(corpus, Settings("all", ("whitespace",), False, 1, ("xx",)), tmp_path)
    said = Scores()
    score_labels(said, "valid", [1] * 60 + [1, 0] * 30, prepared)
    assert [one.score for one in said.lengths["valid"]["accuracy"]] == [1.0, 0.5]
