"""Vectors of a given scale."""

from __future__ import annotations

import numpy as np

from embinit.alignment import align
from embinit.types import Aligned, Embeddings, Origin


def vectors(std: float, dim: int, rows: int = 6000, mean: float = 0.0) -> Aligned:
    rng = np.random.default_rng(0)
    matrix = (mean + std * rng.standard_normal((rows, dim))).astype(np.float32)
    return align(Embeddings([f"w{i}" for i in range(rows)], matrix, Origin("made", "made")))
