"""Hosts told from a checkpoint's folder: what is measured, what is assumed and said so, and what is damage."""

import json
from pathlib import Path

import numpy as np
import pytest

from embinit.alignment import align
from embinit.diagnosis.diagnose import diagnose
from embinit.hosts import host
from embinit.types import Embeddings, Origin
from tests.refusal import refused

from .sources.folders import float32, matrix, safetensors

WORDS = {"bert.embeddings.word_embeddings.weight": matrix(40, 16)}
POSITIONS = {"bert.embeddings.position_embeddings.weight": np.full((8, 16), 0.5, dtype=np.float32)}


def folder(path: Path, weights: bytes | None, kind: str = "bert") -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"model_type": kind, "hidden_size": 16}))
    if weights is not None:
        (path / "model.safetensors").write_bytes(weights)
    return path


def test_the_size_of_learned_positions_is_measured(tmp_path: Path) -> None:
    known = host(str(folder(tmp_path / "model", safetensors(float32(**WORDS, **POSITIONS)))))
    assert (known.position_rms, known.position_rms_assumed) == (0.5, False)


@pytest.mark.parametrize("weights", [None, safetensors(float32(**WORDS))], ids=["a config alone", "an embedding alone"])
def test_positions_that_are_not_there_are_assumed_and_the_verdict_says_so(
    weights: bytes | None, tmp_path: Path
) -> None:
    known = host(str(folder(tmp_path / "model", weights)))
    assert (known.position_rms, known.position_rms_assumed) == (0.02, True)
    rows = Embeddings([f"w{i}" for i in range(100)], matrix(100, 16), Origin("made", "made"))
    findings = {finding.name: finding.numbers for finding in diagnose(align(rows), host=known).verdict.findings}
    assert findings["positions"] == {"rms": 0.02, "host": "model (bert)"}
    assert diagnose(align(rows), host=known).as_dict()["host"]["position_rms_assumed"] is True
    assert "positions" not in {one.name for one in diagnose(align(rows), host="bert").verdict.findings}


@pytest.mark.parametrize("kept", [4, 60, 1500])
def test_a_damaged_file_of_weights_is_an_error_and_not_an_assumption(kept: int, tmp_path: Path) -> None:
    weights = safetensors(float32(**WORDS, **POSITIONS))
    assert kept < len(weights)
    with refused("model.safetensors", "truncated"):
        host(str(folder(tmp_path / "model", weights[:kept])))


def test_positions_that_are_no_numbers_are_an_error(tmp_path: Path) -> None:
    broken = {name: table * np.float32("nan") for name, table in POSITIONS.items()}
    with refused("position_embeddings.weight is damaged"):
        host(str(folder(tmp_path / "model", safetensors(float32(**broken)))))


def test_where_positions_are_not_learned_the_weights_are_not_read(tmp_path: Path) -> None:
    known = host(str(folder(tmp_path / "model", b"damaged", "llama")))
    assert (known.position_rms, known.position_rms_assumed) == (0.0, False)
