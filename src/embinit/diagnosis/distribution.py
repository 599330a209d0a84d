"""Distributions: range, mean, σ, kurtosis and row length of a matrix, as in Tables 2, 6 and 8 of the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embinit.types import Matrix

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Distribution:
    """The distribution of the numbers in a matrix."""

    rows: int
    dim: int
    min: float
    max: float
    mean: float
    std: float
    #: excess kurtosis: 0 for a normal distribution, -1.2 for a uniform one
    kurtosis: float
    norm_mean: float
    norm_min: float
    norm_max: float

    def scaled(self, factor: float) -> Distribution:
        """Return the distribution of the matrix times a positive factor."""
        values = {
            name: getattr(self, name) * factor
            for name in ("min", "max", "mean", "std", "norm_mean", "norm_min", "norm_max")
        }
        return Distribution(rows=self.rows, dim=self.dim, kurtosis=self.kurtosis, **values)


def distribution(matrix: Matrix) -> Distribution:
    """Return the distribution of the finite numbers in a matrix."""
    # Blocks keep the memory of the float64 copy small.
    count, total, low, high = 0, 0.0, np.inf, -np.inf
    norms = np.empty(len(matrix))
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK].astype(np.float64)
        norms[start : start + len(block)] = np.sqrt((block * block).sum(axis=1))
        block = block[np.isfinite(block)]
        count, total = count + block.size, total + float(block.sum())
        if block.size:
            low, high = min(low, float(block.min())), max(high, float(block.max()))
    mean = total / max(count, 1)
    second = fourth = 0.0
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK].astype(np.float64) - mean
        squares = block[np.isfinite(block)] ** 2
        second, fourth = second + float(squares.sum()), fourth + float((squares * squares).sum())
    variance = second / max(count, 1)
    finite = norms[np.isfinite(norms)]
    return Distribution(
        rows=len(matrix),
        dim=int(matrix.shape[1]),
        min=float(low),
        max=float(high),
        mean=mean,
        std=variance**0.5,
        kurtosis=fourth / max(count, 1) / variance**2 - 3 if variance else 0.0,
        norm_mean=float(finite.mean()) if finite.size else 0.0,
        norm_min=float(finite.min()) if finite.size else 0.0,
        norm_max=float(finite.max()) if finite.size else 0.0,
    )
