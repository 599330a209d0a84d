"""Analogies: known answers, gensim's answers, and the file format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from embinit.diagnosis.analogy import Question, Score, answer, answerable, evaluate, read_questions, total_score
from tests.refusal import refused


def test_a_parallelogram_is_solved() -> None:
    rows = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [5, 5, 5]], dtype=np.float32)
    index = {word: i for i, word in enumerate(["man", "king", "woman", "queen", "noise"])}
    asked = [Question("royal", ("man", "king", "woman", "queen")), Question("royal", ("man", "king", "x", "queen"))]
    assert evaluate(rows, index, asked) == {"royal": Score(1, 1)}
    assert evaluate(rows, index, asked, "3cosmul") == {"royal": Score(1, 1)}


def test_question_words_are_never_the_answer() -> None:
    rows = np.eye(4, dtype=np.float32)
    for method in ("3cosadd", "3cosmul"):
        assert answer(rows, np.array([[0, 1, 2]]), method)[0] == 3  # type: ignore[arg-type]


def test_candidates_can_be_restricted() -> None:
    rows = np.array([[1, 0], [0, 1], [1, 1], [1, 0.9], [0.9, 1]], dtype=np.float32)
    assert answer(rows, np.array([[4, 3, 2]]))[0] in (0, 1)
    assert answer(rows, np.array([[4, 3, 2]]), candidates=2)[0] == 0


@pytest.mark.parametrize(("method", "function"), [("3cosadd", "most_similar"), ("3cosmul", "most_similar_cosmul")])
def test_answers_are_gensims(method: str, function: str) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, 20)).astype(np.float32)
    words = [f"w{i}" for i in range(300)]
    peer = KeyedVectors(20)
    peer.add_vectors(words, rows)
    triples = rng.permuted(np.tile(np.arange(300), (100, 1)), axis=1)[:, :3]
    ours = answer(rows, triples, method)  # type: ignore[arg-type]
    for (a, b, c), row in zip(triples.tolist(), ours.tolist(), strict=True):
        similar = getattr(peer, function)(positive=[words[b], words[c]], negative=[words[a]], topn=1)
        assert similar[0][0] == words[row]


def test_scaling_changes_no_answer() -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((200, 10)).astype(np.float32)
    triples = rng.integers(0, 200, (50, 3))
    assert (answer(rows, triples) == answer(rows * 17, triples)).all()


def test_reading_questions(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(": capitals\nAthens Greece Bern Switzerland\n\n: verbs\nwalk walking talk talking\n")
    read = read_questions(path, lower=True)
    assert [question.section for question in read] == ["capitals", "verbs"]
    assert read[0].words == ("athens", "greece", "bern", "switzerland")
    assert len(answerable(read, {"walk": 0, "walking": 1, "talk": 2, "talking": 3})) == 1
    assert total_score({"a": Score(1, 2), "b": Score(3, 4)}) == Score(4, 6)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("a b c\n", "line 1: 3 words"), (": only\n", "has no questions"), ("", "has no questions")],
)
def test_wrong_question_files(content: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_text(content)
    with refused(path, sentence):
        read_questions(path)
