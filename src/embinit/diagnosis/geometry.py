"""The shape of a cloud of vectors: directions, outliers, rows that are zero or alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embinit.seeds import stream
from embinit.types import Matrix, finite_rows

_SAMPLE = 5_000
#: A dimension is an outlier when its mean or σ is this many times the median dimension's σ.
_OUTLIER = 6.0


@dataclass(frozen=True)
class Geometry:
    """What is odd about the rows of a matrix."""

    #: mean cosine between two rows picked at random: 0 in a round cloud, near 1 in a narrow cone
    mean_cosine: float
    #: share of the variance in the widest direction
    top_share: float
    #: exp of the entropy of the variance's directions: as many dimensions as are really used
    effective_dim: float
    outlier_dimensions: tuple[int, ...]
    zero_rows: int
    duplicate_rows: int
    bad_rows: int


def geometry(matrix: Matrix, seed: int = 0) -> Geometry:
    """Return the geometry of a matrix; directions are taken from a sample of its rows."""
    good = finite_rows(matrix)
    zero = (matrix == 0).all(axis=1)
    usable = np.flatnonzero(good & ~zero)
    rng = stream(seed, "geometry sample")
    picked = rng.permutation(usable)[:_SAMPLE]
    sample = matrix[np.sort(picked)].astype(np.float64)
    keys = {row.tobytes() for row in np.ascontiguousarray(matrix[usable])}
    return Geometry(
        mean_cosine=_mean_cosine(sample),
        **_spectrum(sample),
        outlier_dimensions=_outliers(sample),
        zero_rows=int(zero.sum()),
        duplicate_rows=len(usable) - len(keys),
        bad_rows=int((~good).sum()),
    )


def _mean_cosine(sample: np.ndarray) -> float:
    """Return the mean over all pairs of distinct rows, from the length of the mean unit vector."""
    count = len(sample)
    if count < 2:
        return 0.0
    unit = sample / np.linalg.norm(sample, axis=1, keepdims=True)
    together = float((unit.sum(axis=0) ** 2).sum())
    return (together - count) / (count * (count - 1))


def _spectrum(sample: np.ndarray) -> dict[str, float]:
    if len(sample) < 2:
        return {"top_share": 0.0, "effective_dim": 0.0}
    centered = sample - sample.mean(axis=0)
    widths = np.maximum(np.linalg.eigvalsh(centered.T @ centered), 0)
    total = float(widths.sum())
    if total == 0:
        return {"top_share": 0.0, "effective_dim": 0.0}
    shares = widths[widths > 0] / total
    return {"top_share": float(shares.max()), "effective_dim": float(np.exp(-(shares * np.log(shares)).sum()))}


def _outliers(sample: np.ndarray) -> tuple[int, ...]:
    if len(sample) < 2:
        return ()
    spread, offset = sample.std(axis=0), np.abs(sample.mean(axis=0))
    usual = float(np.median(spread))
    if usual == 0:
        return ()
    return tuple(np.flatnonzero(np.maximum(spread, offset) > _OUTLIER * usual).tolist())
