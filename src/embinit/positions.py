"""Position encodings as numpy tables."""

from __future__ import annotations

import numpy as np

from embinit.types import Matrix

#: Eq. 2 of the paper prints 1000, but only 10000 gives its Table 6 (PAPER.md 2).
BASE = 10_000.0
#: Root mean square of every row of a sinusoidal table, because sin² + cos² = 1 over a pair of columns.
SINUSOIDAL_RMS = 0.5**0.5


def sinusoidal(length: int, dim: int, base: float = BASE) -> Matrix:
    """Return the (length, dim) table of Vaswani et al.: sine in even columns, cosine in odd columns.

    Both columns of a pair have the same frequency, as in PyTorch's tutorial (PAPER.md 2).
    """
    rates = base ** (-2.0 * (np.arange(dim) // 2) / dim)  # (dim,)
    angles = np.arange(length)[:, None] * rates  # (length, dim)
    return np.where(np.arange(dim) % 2 == 0, np.sin(angles), np.cos(angles)).astype(np.float32)
