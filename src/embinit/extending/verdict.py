"""Measures of new rows against old rows: collapse, length, duplicates, neighbours, and the bias of the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embinit.diagnosis.geometry import mean_cosine
from embinit.extending.methods import unit_rows
from embinit.seeds import stream
from embinit.types import Matrix, as_matrix

_SAMPLE = 2_000
#: New rows have collapsed if their mean cosine is above this and, by the margin, above that of old rows.
_COLLAPSED, _MARGIN = 0.9, 0.1
_SHORT, _LONG = 0.5, 2.0
#: Two rows with this cosine or more are the same direction.
_SAME = 0.9999
#: Logits of new tokens that are this far above the old ones put new tokens into every output.
_BIAS = 2.0


@dataclass(frozen=True)
class NewRows:
    """Measures of the rows of new tokens."""

    rows: int
    #: the mean cosine of two new rows, and of two old rows
    mean_cosine: float
    old_mean_cosine: float
    #: the mean length of new rows, relative to old rows
    length_ratio: float
    #: new rows that point in the direction of another new row
    duplicates: int
    #: for the first few new tokens, the nearest old tokens
    neighbours: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: the mean output bias of new tokens minus that of old tokens; None without a bias
    bias_difference: float | None = None

    @property
    def collapsed(self) -> bool:
        """Return whether the new rows are nearly one row."""
        return self.rows > 1 and self.mean_cosine > self._collapse_limit

    @property
    def _collapse_limit(self) -> float:
        return max(_COLLAPSED, self.old_mean_cosine + _MARGIN)

    def findings(self) -> list[tuple[str, str]]:
        """Return severities and sentences."""
        notes = []
        if self.collapsed:
            notes.append(
                ("harm", f"The new rows are nearly the same row (mean cosine {self.mean_cosine:.3f}; old rows "
                 f"{self.old_mean_cosine:.3f}), so the model cannot tell the new tokens apart.")
            )  # fmt: skip
        elif self.duplicates:
            notes.append(("note", f"{self.duplicates:,} new rows point in the direction of another new row."))
        length = f"The new rows have {self.length_ratio:,.2f} times the length of old rows"
        if not _SHORT <= self.length_ratio <= _LONG:
            notes.append(("harm", f"{length}, so the model reads them at another weight."))
        if self.bias_difference is not None and abs(self.bias_difference) > _BIAS:
            direction = "above" if self.bias_difference > 0 else "below"
            size = abs(self.bias_difference)
            notes.append(("note", f"The output bias of new tokens is {size:.1f} {direction} that of old tokens."))
        return notes or [("good", f"{self._distinct()}{length} (accepted: {_SHORT:g} to {_LONG:g}).")]

    def _distinct(self) -> str:
        """Return a sentence on rows that have not collapsed; nothing for a single row."""
        if self.rows < 2:
            return ""
        return (
            f"The new rows differ from each other: their mean cosine is {self.mean_cosine:.3f} (old rows "
            f"{self.old_mean_cosine:.3f}; collapsed above {self._collapse_limit:.2f}). "
        )


def measure(
    rows: Matrix,
    new_ids: Sequence[int],
    tokens: Sequence[str | None],
    *,
    bias: Matrix | None = None,
    shown: int = 5,
    seed: int = 0,
) -> NewRows:
    """Measure the rows of new tokens against all other rows of a model.

    Parameters
    ----------
    rows
        All rows of the embedding.
    new_ids
        The rows of the new tokens.
    tokens
        The token of each row, None if a row has no token.
    bias
        The output bias, one number for each row.
    shown
        The number of new tokens whose nearest old tokens are listed.
    seed
        The seed of the samples.

    Returns
    -------
    NewRows
        The measures.
    """
    is_new = np.zeros(len(rows), dtype=bool)
    is_new[list(new_ids)] = True
    is_old = ~is_new & np.array([place < len(tokens) and tokens[place] is not None for place in range(len(rows))])
    new, old = rows[is_new], rows[is_old]
    old_ids = np.flatnonzero(is_old)
    unit_old, unit_new = unit_rows(old), unit_rows(new)
    lists = []
    for new_id in list(new_ids)[:shown]:
        order = np.argsort(-(unit_old @ unit_rows(rows[[new_id]])[0]), kind="stable")[:3]
        lists.append((str(tokens[new_id]), tuple(str(tokens[old_ids[place]]) for place in order)))
    difference = None if bias is None else float(bias[is_new].mean() - bias[is_old].mean())
    lengths = np.linalg.norm(old, axis=1)
    return NewRows(
        rows=len(new),
        mean_cosine=mean_cosine(_sample(new, seed).astype(np.float64)),
        old_mean_cosine=mean_cosine(_sample(old, seed).astype(np.float64)),
        length_ratio=float(np.linalg.norm(new, axis=1).mean() / max(float(lengths.mean()), 1e-12)),
        duplicates=_duplicates(unit_new),
        neighbours=tuple(lists),
        bias_difference=difference,
    )


def _sample(rows: Matrix, seed: int) -> Matrix:
    usable = np.flatnonzero((rows != 0).any(axis=1))
    return as_matrix(rows[stream(seed, "rows for cosines").permutation(usable)[:_SAMPLE]])


def _duplicates(unit: Matrix) -> int:
    """Return the number of rows that have the direction of another row, for the first few thousand rows."""
    sample = unit[: 2 * _SAMPLE]
    cosines = sample @ sample.T
    np.fill_diagonal(cosines, 0)
    return int((cosines > _SAME).any(axis=1).sum())
