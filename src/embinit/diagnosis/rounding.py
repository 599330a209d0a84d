"""What number formats do to a small signal that is added to large numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embinit.types import Matrix, NumberFormat

FORMATS: tuple[NumberFormat, ...] = ("float32", "tf32", "bfloat16", "float16")

Floats = npt.NDArray[np.float32]


def rounded(values: npt.NDArray[np.floating], form: NumberFormat) -> Floats:
    """Return values as a format holds them, rounded to nearest even; beyond its range they are infinite."""
    with np.errstate(over="ignore"):
        if form == "float16":
            return values.astype(np.float16).astype(np.float32)
        single = values.astype(np.float32)
    if form == "float32":
        return single
    # bfloat16 keeps 7 of float32's 23 fraction bits, TF32 keeps 10.
    dropped = np.uint32(16 if form == "bfloat16" else 13)
    bits = single.view(np.uint32)
    half = np.uint32((1 << (int(dropped) - 1)) - 1) + ((bits >> dropped) & np.uint32(1))
    cut = ((bits + half) >> dropped) << dropped
    return np.where(np.isfinite(single), cut.view(np.float32), single)


def position_loss(rows: Matrix, positions: Matrix, multiplier: float, form: NumberFormat) -> float:
    """Return the share of the position signal that a format loses in `rows × multiplier + positions`.

    The sum is computed as a model would in that format; what remains of the positions in it is compared with what was
    added. 0: all of it is there; 1: what remains is noise. TF32 rounds only what enters a matrix product, so its sum is
    float32's, rounded once.
    """
    held: NumberFormat = "float32" if form == "tf32" else form
    factor = rounded(np.array([multiplier], dtype=np.float32), held)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = rounded(rounded(rows, held) * factor, held)
        signal = rounded(positions, held)
        total = rounded(scaled + signal, form)
        remains = total.astype(np.float64) - scaled
    remains[~np.isfinite(remains)] = 0.0  # beyond the format's range nothing is left
    added = positions.astype(np.float64)
    together = float((remains * added).sum())
    energy = float((remains * remains).sum()) * float((added * added).sum())
    return 1.0 - together**2 / energy if energy > 0 else 1.0
