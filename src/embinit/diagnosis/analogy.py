"""Word analogies: `questions-words.txt` files, and the paper's Table 4."""

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
#: How many similarities are held at once.
_ENTRIES = 1 << 24


@dataclass(frozen=True)
class Question:
    """`a` is to `b` as `c` is to `d`."""

    section: str
    words: tuple[str, str, str, str]


@dataclass(frozen=True)
class Score:
    """Right answers and questions asked."""

    right: int
    asked: int

    @property
    def accuracy(self) -> float:
        """Return the share of right answers."""
        return self.right / self.asked if self.asked else 0.0


def read_questions(path: Path, lower: bool = False) -> list[Question]:
    """Return the questions of a file: `: section`, then four words a line."""
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
        raise EmbinitError(f"{path} has no questions; expected four words a line")
    return questions


def applicable(questions: Sequence[Question], index: Mapping[str, int]) -> list[Question]:
    """Return the questions whose four words are all known."""
    return [question for question in questions if all(word in index for word in question.words)]


def answers(rows: Matrix, triples: np.ndarray, method: Method = "3cosadd", candidates: int | None = None) -> np.ndarray:
    """Return for each (a, b, c) the row nearest to b - a + c (3CosAdd), or best by 3CosMul, among the candidates.

    Candidates are the first so many rows (all by default); the three words of a question are never its answer.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    targets = np.ascontiguousarray(unit[:candidates].T)
    best = np.empty(len(triples), dtype=np.int64)
    size = max(1, _ENTRIES // targets.shape[1])
    for start in range(0, len(triples), size):
        part = triples[start : start + size]
        a, b, c = part.T
        if method == "3cosadd":
            similar = (unit[b] - unit[a] + unit[c]) @ targets
        else:
            # Levy and Goldberg (2014): cosines moved to 0..1, so that none is negative.
            near_a, near_b, near_c = (0.5 * (1 + unit[i] @ targets) for i in (a, b, c))
            similar = near_b * near_c / (near_a + 1e-3)
        inside = part < targets.shape[1]
        similar[np.nonzero(inside)[0], part[inside]] = -np.inf
        best[start : start + size] = similar.argmax(axis=1)
    return best


def evaluate(
    rows: Matrix,
    index: Mapping[str, int],
    questions: Sequence[Question],
    method: Method = "3cosadd",
    candidates: int | None = None,
) -> dict[str, Score]:
    """Return the score of each section in the file's order; questions with unknown words are not asked."""
    asked = applicable(questions, index)
    ids = np.array([[index[word] for word in question.words] for question in asked], dtype=np.int64).reshape(-1, 4)
    right = answers(rows, ids[:, :3], method, candidates) == ids[:, 3]
    scores = {question.section: [0, 0] for question in questions}
    for question, correct in zip(asked, right.tolist(), strict=True):
        scores[question.section][0] += correct
        scores[question.section][1] += 1
    return {section: Score(*pair) for section, pair in scores.items()}


def known(aligned: Aligned) -> tuple[np.ndarray, dict[str, int]]:
    """Return the rows that the source has words for, and where each word stands among them; filled rows know nothing."""
    ordinary = np.array([token not in aligned.vocabulary.specials for token in aligned.vocabulary.tokens], dtype=bool)
    places = np.flatnonzero(aligned.found & ordinary)
    return places, {aligned.vocabulary.tokens[i]: row for row, i in enumerate(places.tolist())}


def total(scores: Mapping[str, Score]) -> Score:
    """Return all sections together."""
    return Score(sum(score.right for score in scores.values()), sum(score.asked for score in scores.values()))


@dataclass(frozen=True)
class Table4Row:
    """A row of Table 4: right answers, over draws of the positions where these are added."""

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
    """Return the paper's Table 4 on these vectors, row by row; positions are drawn `draws` times.

    `matrix` holds the aligned rows with missing ones filled. Positions are added after × √D, from the first `length` rows
    of the table (PAPER.md 6).
    """
    count, dim = matrix.shape
    places, index = known(aligned)
    raw = matrix[places].astype(np.float64)
    spread = float(raw.std())
    narrow = (raw - raw.mean()) * (xavier_std(count, dim) / spread)
    root = math.sqrt(dim)
    table = sinusoidal(length, dim)

    def right(rows: np.ndarray) -> int:
        return total(evaluate(rows.astype(np.float32), index, questions)).right

    def with_positions(rows: np.ndarray, gain: float = 1.0) -> tuple[int, ...]:
        generators = [stream(seed, f"table 4, gain {gain:.6g}, draw {draw}") for draw in range(draws)]
        return tuple(right(rows + gain * table[rng.integers(0, length, len(rows))]) for rng in generators)

    asked = len(applicable(questions, index))
    results = (
        (right(raw),),
        (right(raw * root),),
        with_positions(raw * root),
        (right(narrow),),
        (right(narrow * root),),
        with_positions(narrow * root),
        with_positions(raw * root, spread / xavier_std(count, dim)),
    )
    printed = tomllib.loads(resources.files("embinit.diagnosis").joinpath("table4.toml").read_text("utf-8"))["row"]
    return [Table4Row(row["name"], counts, asked, row["percent"]) for row, counts in zip(printed, results, strict=True)]
