"""Word analogies: files like `questions-words.txt`, and Table 4 of the paper."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

import numpy as np

from embinit.errors import EmbinitError
from embinit.positions import sinusoidal
from embinit.seeds import stream
from embinit.text.vocabulary import read_lines
from embinit.types import Aligned, Matrix, xavier_std

Method = Literal["3cosadd", "3cosmul"]
#: At most this many similarities are in memory at once.
_LARGEST_BLOCK = 1 << 24


@dataclass(frozen=True)
class Question:
    """`a` is to `b` as `c` is to `d`."""

    section: str
    words: tuple[str, str, str, str]


@dataclass(frozen=True)
class Score:
    """The number of right answers and of questions."""

    right: int
    asked: int

    @property
    def accuracy(self) -> float:
        """Return the share of right answers."""
        return self.right / self.asked if self.asked else 0.0


def read_questions(path: Path, lower: bool = False) -> list[Question]:
    """Return the questions of a file: lines of four words, under `: section` lines."""
    questions, section = [], ""
    for number, line in enumerate(read_lines([path]), 1):
        if line.startswith(":"):
            section = line[1:].strip()
            continue
        words = (line.lower() if lower else line).split()
        if not words:
            continue
        if len(words) != 4:
            raise EmbinitError(f"{path}, line {number}: {len(words)} words; an analogy has four")
        questions.append(Question(section, (words[0], words[1], words[2], words[3])))
    if not questions:
        raise EmbinitError(f"{path} has no questions; expected lines of four words")
    return questions


def answerable(questions: Sequence[Question], index: Mapping[str, int]) -> list[Question]:
    """Return the questions whose four words are all known."""
    return [question for question in questions if all(word in index for word in question.words)]


def answer(rows: Matrix, triples: np.ndarray, method: Method = "3cosadd", candidates: int | None = None) -> np.ndarray:
    """Return the answer to each question (a, b, c): the row nearest to b - a + c (3CosAdd), or the best by 3CosMul.

    Parameters
    ----------
    rows
        The vectors, one row for each word.
    triples
        The rows of a, b and c, of shape (questions, 3).
    method
        `3cosadd` or `3cosmul`.
    candidates
        Search the first rows only, this many; by default all. The three words of a question are never its answer.

    Returns
    -------
    np.ndarray
        The row of each answer.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    targets = np.ascontiguousarray(unit[:candidates].T)
    best = np.empty(len(triples), dtype=np.int64)
    size = max(1, _LARGEST_BLOCK // targets.shape[1])
    for start in range(0, len(triples), size):
        part = triples[start : start + size]
        a, b, c = part.T
        if method == "3cosadd":
            similarity = (unit[b] - unit[a] + unit[c]) @ targets
        else:
            # Levy and Goldberg (2014) move cosines to 0 ... 1, so that none is negative.
            near_a, near_b, near_c = (0.5 * (1 + unit[i] @ targets) for i in (a, b, c))
            similarity = near_b * near_c / (near_a + 1e-3)
        is_candidate = part < targets.shape[1]
        similarity[np.nonzero(is_candidate)[0], part[is_candidate]] = -np.inf
        best[start : start + size] = similarity.argmax(axis=1)
    return best


def evaluate(
    rows: Matrix,
    index: Mapping[str, int],
    questions: Sequence[Question],
    method: Method = "3cosadd",
    candidates: int | None = None,
) -> dict[str, Score]:
    """Return the score of each section in the order of the file. Questions with unknown words are left out.

    Parameters
    ----------
    rows
        The vectors, one row for each word.
    index
        The row of each word.
    questions
        The questions of a file.
    method
        `3cosadd` or `3cosmul`.
    candidates
        Search the first rows only, this many; by default all.

    Returns
    -------
    dict[str, Score]
        Section -> right answers and questions.
    """
    asked = answerable(questions, index)
    ids = np.array([[index[word] for word in question.words] for question in asked], dtype=np.int64).reshape(-1, 4)
    right = answer(rows, ids[:, :3], method, candidates) == ids[:, 3]
    scores = {question.section: [0, 0] for question in questions}
    for question, correct in zip(asked, right.tolist(), strict=True):
        scores[question.section][0] += correct
        scores[question.section][1] += 1
    return {section: Score(*pair) for section, pair in scores.items()}


def known_words(aligned: Aligned) -> tuple[np.ndarray, dict[str, int]]:
    """Return the ids of the words that the source has, without special tokens, and the place of each word among them."""
    tokens = aligned.vocabulary.tokens
    ordinary = np.array([token not in aligned.vocabulary.specials for token in tokens], dtype=bool)
    ids = np.flatnonzero(aligned.found & ordinary)
    return ids, {tokens[token_id]: place for place, token_id in enumerate(ids.tolist())}


def total_score(scores: Mapping[str, Score]) -> Score:
    """Return the sum of all sections."""
    return Score(sum(score.right for score in scores.values()), sum(score.asked for score in scores.values()))


@dataclass(frozen=True)
class Table4Row:
    """A table row of Table 4: right answers, one count for each draw of positions."""

    name: str
    right: tuple[int, ...]
    asked: int
    paper: float

    @property
    def accuracy(self) -> float:
        """Return the mean share of right answers."""
        return float(np.mean(self.right)) / self.asked if self.asked else 0.0


def table4(
    aligned: Aligned, matrix: Matrix, questions: Sequence[Question], *, length: int = 20, draws: int = 10, seed: int = 0
) -> list[Table4Row]:
    """Return Table 4 of the paper on these vectors.

    Parameters
    ----------
    aligned
        The vectors in vocabulary order.
    matrix
        The same vectors with missing rows filled.
    questions
        The questions of a file.
    length
        Positions come from the first rows of the position table, this many, and are added after × √D (PAPER.md 6).
    draws
        The number of times that positions are drawn.
    seed
        The seed of the draws.

    Returns
    -------
    list[Table4Row]
        The table rows in the order of the paper.
    """
    count, dim = matrix.shape
    ids, index = known_words(aligned)
    raw = matrix[ids].astype(np.float64)
    std = float(raw.std())
    standardized = (raw - raw.mean()) * (xavier_std(count, dim) / std)
    root = math.sqrt(dim)
    table = sinusoidal(length, dim)

    def count_right(rows: np.ndarray) -> int:
        return total_score(evaluate(rows.astype(np.float32), index, questions)).right

    def with_positions(rows: np.ndarray, gain: float = 1.0) -> tuple[int, ...]:
        generators = [stream(seed, f"table 4, gain {gain:.6g}, draw {draw}") for draw in range(draws)]
        return tuple(count_right(rows + gain * table[rng.integers(0, length, len(rows))]) for rng in generators)

    asked = len(answerable(questions, index))
    results = (
        (count_right(raw),),
        (count_right(raw * root),),
        with_positions(raw * root),
        (count_right(standardized),),
        (count_right(standardized * root),),
        with_positions(standardized * root),
        with_positions(raw * root, std / xavier_std(count, dim)),
    )
    printed = tomllib.loads(resources.files("embinit.diagnosis").joinpath("table4.toml").read_text("utf-8"))["row"]
    return [Table4Row(row["name"], counts, asked, row["percent"]) for row, counts in zip(printed, results, strict=True)]
