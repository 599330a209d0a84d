"""Rows and positions in one sum: which of the two can still be told from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embinit.diagnosis.rounding import FORMATS, position_loss
from embinit.positions import sinusoidal
from embinit.seeds import stream
from embinit.types import Host, Matrix, NumberFormat, finite_rows

#: A sentence's worth of positions: what a model meets, rather than the 5,000 rows of its table (PAPER.md 6).
LENGTH = 20
_NEIGHBOURS = 10
_QUERIES = 300
_CANDIDATES = 5_000
_READOUT_ROWS = 4_000


@dataclass(frozen=True)
class Absorption:
    """How rows and added positions get along; None where positions are not added or rows are too few to tell."""

    #: σ of the rows as the model sees them, over the rms of what is added
    ratio: float
    #: share of positions that a linear read-out tells from the sum, on tokens it was not fitted to; chance is 1/20
    position_readout: float | None
    #: share of ten nearest neighbours that stay when positions are added
    neighbours_kept: float | None
    #: share of the position signal lost to each number format
    rounding_loss: dict[NumberFormat, float]


def position_table(host: Host, dim: int, length: int = LENGTH, seed: int = 0) -> Matrix:
    """Return what a model adds to the first positions; learned tables are drawn at their rms."""
    if host.positions == "sinusoidal":
        table = sinusoidal(length, dim)
        return (table * (host.position_rms / float(np.sqrt((table.astype(np.float64) ** 2).mean())))).astype(np.float32)
    rng = stream(seed, "learned positions")
    return (host.position_rms * rng.standard_normal((length, dim))).astype(np.float32)


def absorption(rows: Matrix, host: Host, seed: int = 0) -> Absorption | None:
    """Return how these rows and the host's positions get along; None where positions are not added."""
    if not host.adds_positions:
        return None
    factor = host.multiplier(rows.shape[1])
    table = position_table(host, rows.shape[1], seed=seed)
    usable = rows[finite_rows(rows)]
    sample = usable[stream(seed, "absorption sample").permutation(len(usable))[:_CANDIDATES]]
    places = stream(seed, "absorption positions").integers(0, len(table), len(sample))
    losses = {form: position_loss(sample[:2000], table[places[:2000]], factor, form) for form in FORMATS}
    return Absorption(
        ratio=float(usable.std(dtype=np.float64)) * factor / host.position_rms,
        position_readout=_readout(sample * np.float32(factor), table, seed),
        neighbours_kept=_kept(sample * np.float32(factor), table[places]),
        rounding_loss=losses,
    )


def _readout(scaled: Matrix, table: Matrix, seed: int) -> float | None:
    """Fit positions linearly (ridge) on sums with some tokens; return the accuracy on sums with others."""
    fit, held = scaled[: len(scaled) * 4 // 5], scaled[len(scaled) * 4 // 5 :]
    if len(held) < 10:
        return None
    rng = stream(seed, "read-out")
    inputs, labels = _sums(fit, table, _READOUT_ROWS, rng)
    mean = inputs.mean(axis=0)
    inputs -= mean
    targets = np.eye(len(table))[labels] - 1 / len(table)
    gram = inputs.T @ inputs
    # The penalty is relative to the inputs' size, so that the read-out does not depend on their unit.
    weights = np.linalg.solve(gram + 1e-3 * np.trace(gram) / len(gram) * np.eye(len(gram)), inputs.T @ targets)
    tests, truth = _sums(held, table, _READOUT_ROWS // 4, rng)
    return float((((tests - mean) @ weights).argmax(axis=1) == truth).mean())


def _sums(scaled: Matrix, table: Matrix, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    labels = rng.integers(0, len(table), count)
    return scaled[rng.integers(0, len(scaled), count)].astype(np.float64) + table[labels], labels


def _kept(scaled: Matrix, added: Matrix) -> float | None:
    if len(scaled) < 5 * _NEIGHBOURS:
        return None
    before, after = _nearest(scaled), _nearest(scaled + added)
    return float(np.mean([len(set(a) & set(b)) / _NEIGHBOURS for a, b in zip(before, after, strict=True)]))


def _nearest(rows: Matrix) -> list[list[int]]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(lengths == 0, 1, lengths)
    similar = unit[:_QUERIES] @ unit.T
    np.fill_diagonal(similar, -np.inf)
    nearest: list[list[int]] = np.argpartition(-similar, _NEIGHBOURS, axis=1)[:, :_NEIGHBOURS].tolist()
    return nearest
