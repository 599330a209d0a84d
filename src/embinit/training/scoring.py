"""Scores: BLEU over the model's own tokens and over text, chrF; accuracy, macro F1, Matthews."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from embinit.errors import require


@dataclass(frozen=True)
class Scored:
    """A score with its signature, which tells how it was computed."""

    value: float
    signature: str


def bleu(found: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> Scored:
    """Return sacreBLEU's corpus BLEU. The tokenizer `none` takes tokens joined by spaces, as in the paper (PAPER.md 14)."""
    metric = require("sacrebleu", "train", "BLEU").BLEU(tokenize=tokenize, force=True)
    score = metric.corpus_score(list(found), [list(references)])
    return Scored(float(score.score), str(metric.get_signature()))


def chrf(found: Sequence[str], references: Sequence[str]) -> Scored:
    """Return sacreBLEU's chrF."""
    metric = require("sacrebleu", "train", "chrF").CHRF()
    score = metric.corpus_score(list(found), [list(references)])
    return Scored(float(score.score), str(metric.get_signature()))


def confusion(answers: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], classes: int) -> npt.NDArray[np.int64]:
    """Return the number of examples with each label (row) and each answer (column)."""
    return np.bincount(labels * classes + answers, minlength=classes**2).reshape(classes, classes)


def macro_f1(table: npt.NDArray[np.int64]) -> float:
    """Return the mean F1 of the classes; a class without examples and answers counts as 0."""
    right = np.diag(table)
    total = table.sum(axis=0) + table.sum(axis=1)
    return float(np.divide(2 * right, total, out=np.zeros(len(table)), where=total > 0).mean())


def matthews(table: npt.NDArray[np.int64]) -> float:
    """Return Matthews' correlation, CoLA's score; 0 if the labels or the answers are constant."""
    exact = table.astype(np.float64)  # int64 overflows at some ten thousand rows
    truth, answers, count = exact.sum(axis=1), exact.sum(axis=0), float(exact.sum())
    covariance = float(np.trace(exact) * count - truth @ answers)
    spread = float((count**2 - answers @ answers) * (count**2 - truth @ truth)) ** 0.5
    return covariance / spread if spread else 0.0


class TokenBleu:
    """BLEU of token ids, equal to sacreBLEU's over tokens, and fast enough for every epoch."""

    _LENGTHS = (1, 2, 3, 4)

    def __init__(self, references: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> None:
        ids: dict[str, int] = {}

        def words(tokens: Sequence[str]) -> list[int]:
            # sacreBLEU splits at spaces, so spaCy's tokens of spaces alone do not count.
            return [ids.setdefault(word, len(ids)) for token in tokens for word in token.split()]

        self._words = [words([token]) for token in vocabulary]
        # Words outside the vocabulary count but are never right: each gets a number that no model produces.
        numbered = [words(reference) for reference in references]
        self._size = sum(map(len, numbered))
        self._count = len(numbered)
        self._grams = [_grams(numbered, n) for n in self._LENGTHS]

    def __call__(self, words: Sequence[Sequence[int]]) -> float:
        """Return BLEU of token ids, one sentence for each reference."""
        if len(words) != self._count:
            raise ValueError(f"{len(words)} sentences for {self._count} references")
        words = [[word for token in sentence for word in self._words[token]] for sentence in words]
        size = sum(map(len, words))
        right, total = [], []
        for n, (grams, counts) in zip(self._LENGTHS, self._grams, strict=True):
            own, own_counts = _grams(words, n)
            place = np.searchsorted(grams, own).clip(max=max(0, len(grams) - 1))
            same = grams[place] == own if len(grams) else np.zeros(len(own), dtype=bool)
            right.append(int(np.minimum(own_counts[same], counts[place[same]]).sum()))
            total.append(int(own_counts.sum()))
        if not size or not right[0]:
            return 0.0
        logs, smooth = 0.0, 1.0
        for r, t in zip(right, total, strict=True):
            if not t:
                return 0.0
            if not r:
                smooth *= 2  # sacreBLEU's `exp` smoothing, its default
            logs += float(np.log(r / t if r else 1 / (smooth * t)))
        brevity = min(0.0, 1 - self._size / size)
        return 100 * float(np.exp(brevity + logs / len(total)))


def _grams(sentences: Sequence[Sequence[int]], n: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return a 64-bit hash of each distinct (sentence, n-gram), sorted, and its count."""
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    flat = np.fromiter(chain.from_iterable(sentences), dtype=np.uint64, count=int(lengths.sum()))
    number = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    count = max(0, len(flat) - n + 1)
    inside = number[:count] == number[n - 1 :][:count]
    hashes = number[:count][inside]
    for k in range(n):
        hashes = _mixed(hashes) + flat[k : k + count][inside]
    return np.unique(_mixed(hashes), return_counts=True)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 64-bit numbers with their bits mixed (the finalizer of SplitMix64); 10^9 grams hardly ever collide."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
