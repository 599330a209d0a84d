"""What tests share: small made data, and real data where the environment names it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from embinit.alignment import align
from embinit.types import Aligned


def _folder(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: it names the folder with {what}")
    path = Path(value)
    if not path.is_dir():
        pytest.fail(f"{variable} names {path}, which is no folder")
    return path


@pytest.fixture(scope="session")
def real_data() -> Path:
    return _folder("EMBINIT_DATA", "real data sets (multi30k/, analogy/ ...)")


@pytest.fixture(scope="session")
def real_vectors() -> Path:
    return _folder("EMBINIT_VECTORS", "real vectors, as tools/fetch_vectors.py lays them out")


@pytest.fixture
def glove_file(tmp_path: Path) -> Path:
    """500 words of 24 dimensions, σ about 0.4 and mean 0.05, written as GloVe text."""
    rng = np.random.default_rng(3)
    path = tmp_path / "glove.txt"
    rows = 0.05 + 0.4 * rng.standard_normal((500, 24))
    lines = [f"w{i} " + " ".join(f"{x:.5g}" for x in row) for i, row in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def aligned(glove_file: Path) -> Aligned:
    """A vocabulary of 404 tokens: two specials, 380 words that the file has, 22 that it lacks."""
    tokens = ["<unk>", "<pad>", *(f"w{i}" for i in range(380)), *(f"missing{i}" for i in range(22))]
    return align(glove_file, tokens)
