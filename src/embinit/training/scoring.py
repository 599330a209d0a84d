"""Scores: BLEU over the model's own tokens and over text, chrF; accuracy, macro F1, Matthews."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embinit.errors import require


@dataclass(frozen=True)
class Scored:
    """A score with the signature that says how it was computed."""

    value: float
    signature: str


def bleu(found: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> Scored:
    """Return sacreBLEU's corpus BLEU; `none` for tokens that are joined by spaces (the paper's kind, PAPER.md 14)."""
    metric = require("sacrebleu", "train", "BLEU").BLEU(tokenize=tokenize, force=True)
    score = metric.corpus_score(list(found), [list(references)])
    return Scored(float(score.score), str(metric.get_signature()))


def chrf(found: Sequence[str], references: Sequence[str]) -> Scored:
    """Return sacreBLEU's chrF."""
    metric = require("sacrebleu", "train", "chrF").CHRF()
    score = metric.corpus_score(list(found), [list(references)])
    return Scored(float(score.score), str(metric.get_signature()))


def confusion(answers: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], classes: int) -> npt.NDArray[np.int64]:
    """Return how often each label (row) got each answer (column)."""
    return np.bincount(labels * classes + answers, minlength=classes**2).reshape(classes, classes)


def macro_f1(table: npt.NDArray[np.int64]) -> float:
    """Return the mean F1 of the classes; a class that is neither there nor answered counts as 0."""
    right = np.diag(table)
    total = table.sum(axis=0) + table.sum(axis=1)
    return float(np.divide(2 * right, total, out=np.zeros(len(table)), where=total > 0).mean())


def matthews(table: npt.NDArray[np.int64]) -> float:
    """Return Matthews' correlation, as CoLA is scored; 0 where one side is constant."""
    exact = table.astype(np.float64)  # int64 overflows at some ten thousand rows
    truth, answers, count = exact.sum(axis=1), exact.sum(axis=0), float(exact.sum())
    covariance = float(np.trace(exact) * count - truth @ answers)
    spread = float((count**2 - answers @ answers) * (count**2 - truth @ truth)) ** 0.5
    return covariance / spread if spread else 0.0
