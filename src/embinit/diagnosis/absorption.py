"""Absorption: how well rows and positions can still be read from their sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embinit.diagnosis.rounding import FORMATS, position_loss
from embinit.positions import sinusoidal
from embinit.seeds import stream
from embinit.types import Host, Matrix, NumberFormat, finite_rows, standard_deviation

#: The length of a usual sentence. A model rarely meets later positions of its table, which has 5,000 (PAPER.md 6).
LENGTH = 20
_NEIGHBOURS = 10
_QUERIES = 300
_CANDIDATES = 5_000
_READOUT_ROWS = 4_000


@dataclass(frozen=True)
class Absorption:
    """Measurements of rows and positions in one sum; None if there are too few rows to measure."""

    #: σ of the rows as the model sees them, over the rms of the positions
    ratio: float
    #: share of positions that a linear read-out finds in the sum, for tokens that it was not fitted to; chance is 1/20
    position_readout: float | None
    #: share of the ten nearest neighbours that stay when positions are added
    neighbours_kept: float | None
    #: share of the position signal that each number format loses
    rounding_loss: dict[NumberFormat, float]


def position_table(host: Host, dim: int, length: int = LENGTH, seed: int = 0) -> Matrix:
    """Return the rows that a model adds at the first positions. Learned positions are drawn at random with their rms."""
    if host.positions == "sinusoidal":
        table = sinusoidal(length, dim)
        return (table * (host.position_rms / float(np.sqrt((table.astype(np.float64) ** 2).mean())))).astype(np.float32)
    rng = stream(seed, "learned positions")
    return (host.position_rms * rng.standard_normal((length, dim))).astype(np.float32)


def absorption(rows: Matrix, host: Host, seed: int = 0) -> Absorption | None:
    """Return the measurements of these rows with the host's positions; None if the host does not add positions."""
    if not host.adds_positions:
        return None
    factor = host.multiplier(rows.shape[1])
    table = position_table(host, rows.shape[1], seed=seed)
    finite = finite_rows(rows)
    usable = rows if finite.all() else rows[finite]
    sample = usable[stream(seed, "absorption sample").permutation(len(usable))[:_CANDIDATES]]
    places = stream(seed, "absorption positions").integers(0, len(table), len(sample))
    losses = {
        number_format: position_loss(sample[:2000], table[places[:2000]], factor, number_format)
        for number_format in FORMATS
    }
    with np.errstate(over="ignore", invalid="ignore"):  # rows at the limit of float32 overflow; recipes refuse them
        return Absorption(
            ratio=standard_deviation(usable) * factor / host.position_rms,
            position_readout=_readout_accuracy(sample * np.float32(factor), table, seed),
            neighbours_kept=_neighbours_kept(sample * np.float32(factor), table[places]),
            rounding_loss=losses,
        )


def _readout_accuracy(scaled: Matrix, table: Matrix, seed: int) -> float | None:
    """Return the accuracy of a linear read-out (ridge regression) on tokens that it was not fitted to."""
    fitted, held_out = scaled[: len(scaled) * 4 // 5], scaled[len(scaled) * 4 // 5 :]
    if len(held_out) < 10:
        return None
    rng = stream(seed, "read-out")
    inputs, labels = _random_sums(fitted, table, _READOUT_ROWS, rng)
    mean = inputs.mean(axis=0)
    inputs -= mean
    targets = np.eye(len(table))[labels] - 1 / len(table)
    gram = inputs.T @ inputs
    # The penalty is relative to the size of the inputs, so that the read-out does not depend on their unit.
    weights = np.linalg.solve(gram + 1e-3 * np.trace(gram) / len(gram) * np.eye(len(gram)), inputs.T @ targets)
    test_inputs, test_labels = _random_sums(held_out, table, _READOUT_ROWS // 4, rng)
    return float((((test_inputs - mean) @ weights).argmax(axis=1) == test_labels).mean())


def _random_sums(scaled: Matrix, table: Matrix, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of random rows and random positions, and the positions."""
    labels = rng.integers(0, len(table), count)
    return scaled[rng.integers(0, len(scaled), count)].astype(np.float64) + table[labels], labels


def _neighbours_kept(scaled: Matrix, added: Matrix) -> float | None:
    if len(scaled) < 5 * _NEIGHBOURS:
        return None
    before, after = _nearest(scaled), _nearest(scaled + added)
    return float(np.mean([len(set(a) & set(b)) / _NEIGHBOURS for a, b in zip(before, after, strict=True)]))


def _nearest(rows: Matrix) -> list[list[int]]:
    """Return the nearest rows of the first rows by cosine."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(lengths == 0, 1, lengths)
    similarity = unit[:_QUERIES] @ unit.T
    np.fill_diagonal(similarity, -np.inf)
    nearest: list[list[int]] = np.argpartition(-similarity, _NEIGHBOURS, axis=1)[:, :_NEIGHBOURS].tolist()
    return nearest
