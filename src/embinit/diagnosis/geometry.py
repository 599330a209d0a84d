"""Geometry of a matrix: directions, outlier dimensions, zero and duplicate rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embinit.seeds import stream
from embinit.types import Matrix, finite_rows

_SAMPLE = 5_000
#: A dimension is an outlier if its mean or σ is this many times the median σ of all dimensions.
_OUTLIER = 6.0


@dataclass(frozen=True)
class Geometry:
    """The shape of the rows of a matrix."""

    #: mean cosine between two random rows: 0 in a round cloud, near 1 in a narrow cone
    mean_cosine: float
    #: share of the variance in the widest direction
    top_share: float
    #: exponential of the entropy of the spectrum: the number of dimensions in use
    effective_dim: float
    outlier_dimensions: tuple[int, ...]
    zero_rows: int
    duplicate_rows: int
    bad_rows: int


def geometry(matrix: Matrix, seed: int = 0) -> Geometry:
    """Return the geometry of a matrix. Directions are measured on a sample of its rows."""
    finite = finite_rows(matrix)
    zero = (matrix == 0).all(axis=1)
    usable = np.flatnonzero(finite & ~zero)
    sampled = stream(seed, "geometry sample").permutation(usable)[:_SAMPLE]
    sample = matrix[np.sort(sampled)].astype(np.float64)
    distinct = {row.tobytes() for row in np.ascontiguousarray(matrix[usable])}
    return Geometry(
        mean_cosine=mean_cosine(sample),
        **_spectrum(sample),
        outlier_dimensions=_outliers(sample),
        zero_rows=int(zero.sum()),
        duplicate_rows=len(usable) - len(distinct),
        bad_rows=int((~finite).sum()),
    )


def mean_cosine(sample: np.ndarray) -> float:
    """Return the mean cosine over all pairs of different rows."""
    count = len(sample)
    if count < 2:
        return 0.0
    unit = sample / np.linalg.norm(sample, axis=1, keepdims=True)
    # The sum of the cosines of all pairs, those of a row with itself included.
    total = float((unit.sum(axis=0) ** 2).sum())
    return (total - count) / (count * (count - 1))


def _spectrum(sample: np.ndarray) -> dict[str, float]:
    if len(sample) < 2:
        return {"top_share": 0.0, "effective_dim": 0.0}
    centered = sample - sample.mean(axis=0)
    variances = np.maximum(np.linalg.eigvalsh(centered.T @ centered), 0)
    total = float(variances.sum())
    if total == 0:
        return {"top_share": 0.0, "effective_dim": 0.0}
    shares = variances[variances > 0] / total
    return {"top_share": float(shares.max()), "effective_dim": float(np.exp(-(shares * np.log(shares)).sum()))}


def _outliers(sample: np.ndarray) -> tuple[int, ...]:
    if len(sample) < 2:
        return ()
    stds, means = sample.std(axis=0), np.abs(sample.mean(axis=0))
    median_std = float(np.median(stds))
    if median_std == 0:
        return ()
    return tuple(np.flatnonzero(np.maximum(stds, means) > _OUTLIER * median_std).tolist())
