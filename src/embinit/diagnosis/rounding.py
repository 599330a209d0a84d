"""Rounding: how much of a small signal number formats lose in a sum with large numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embinit.types import Matrix, NumberFormat

FORMATS: tuple[NumberFormat, ...] = ("float32", "tf32", "bfloat16", "float16")

Floats = npt.NDArray[np.float32]


def rounded(values: npt.NDArray[np.floating], number_format: NumberFormat) -> Floats:
    """Return values rounded to a number format (to nearest, ties to even); values beyond its range become infinite."""
    with np.errstate(over="ignore"):
        if number_format == "float16":
            return values.astype(np.float16).astype(np.float32)
        single = values.astype(np.float32)
    if number_format == "float32":
        return single
    # bfloat16 keeps 7 of float32's 23 fraction bits, TF32 keeps 10.
    dropped = np.uint32(16 if number_format == "bfloat16" else 13)
    bits = single.view(np.uint32)
    half = np.uint32((1 << (int(dropped) - 1)) - 1) + ((bits >> dropped) & np.uint32(1))
    kept = ((bits + half) >> dropped) << dropped
    return np.where(np.isfinite(single), kept.view(np.float32), single)


def position_loss(rows: Matrix, positions: Matrix, multiplier: float, number_format: NumberFormat) -> float:
    """Return the share of the position signal that a number format loses in `rows × multiplier + positions`.

    The sum is computed in the format, as a model does. Its difference to the scaled rows is compared with the positions:
    0 if they are equal, 1 if the difference is noise. TF32 rounds only the inputs of matrix products, so its sum is a
    float32 sum that is rounded once.
    """
    stored: NumberFormat = "float32" if number_format == "tf32" else number_format
    factor = rounded(np.array([multiplier], dtype=np.float32), stored)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = rounded(rounded(rows, stored) * factor, stored)
        total = rounded(scaled + rounded(positions, stored), number_format)
        remaining = total.astype(np.float64) - scaled
    remaining[~np.isfinite(remaining)] = 0.0  # values beyond the range of the format lose everything
    added = positions.astype(np.float64)
    product = float((remaining * added).sum())
    energy = float((remaining * remaining).sum()) * float((added * added).sum())
    return 1.0 - product**2 / energy if energy > 0 else 1.0
