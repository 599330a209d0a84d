"""The table of new tokens: its rank correlations, perplexities and stored rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks import extend
from benchmarks.extend_data import Pairs, ranks
from benchmarks.extend_language import perplexities, text_parts
from benchmarks.extend_row import ExtendCase, ExtendScores


def test_pairs_are_scored_by_ranks_and_selected_by_their_sentences() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]
    pairs = Pairs(("a", "a", "b"), ("b", "c", "c"), (1.0, 2.0, 3.0))
    angles = np.array([0.0, 1.2, 0.4])  # of a, b and c
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert pairs.spearman(vectors) == pytest.approx(0.5)  # the cosines rank 1, 3, 2
    assert pairs.spearman(vectors, [0, 1]) == pytest.approx(1)
    assert pairs.with_sentences({0}) == [0, 1]
    assert pairs.with_sentences(set()) == []


def test_perplexities_are_per_word() -> None:
    assert text_parts(["a " * 50, "b"]) == [" ".join("a" * 40), " ".join("a" * 10), "b"]
    losses = [np.log(np.array([2.0, 8.0])), np.log(np.array([4.0]))]
    assert perplexities(losses, ["x new", "y"], ["new"]) == pytest.approx((4, 8**0.5))


def test_stored_rows_are_read_and_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = ExtendScores(3, 0.8, 0.9, 0.7, 0.9, 5, 0.95, (0.81, 0.82), 1.0, 1.0, 1.0)
    case = ExtendCase("pieces", "/models/minilm", "/data", "dev", "/work")
    stored = {name: value for name, value in asdict(case).items() if name not in ("data", "work")}
    line = {"case": {**stored, "model": "minilm"}, "row": "pieces", "scores": asdict(scores)}
    (tmp_path / "out.jsonl").write_text(json.dumps(line) + "\n")
    monkeypatch.setattr(extend.subprocess, "run", None)
    assert extend.measure_row("pieces", case, tmp_path / "out.jsonl") == scores
    texts = extend.cells("(a) dev", "pieces", scores)
    assert len(texts) == len(extend.HEADERS)
    assert texts[3:8] == ["0.8000", "0.9000", "0.8100 to 0.8200", "0.7000", "0.9000"]
