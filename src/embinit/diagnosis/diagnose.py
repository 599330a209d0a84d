"""`diagnose`: everything that can be said of vectors before training, in one value."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embinit.diagnosis.absorption import Absorption, absorption, position_table
from embinit.diagnosis.basis import Basis
from embinit.diagnosis.distribution import Distribution, distribution
from embinit.diagnosis.geometry import Geometry, geometry
from embinit.diagnosis.verdict import Verdict, as_dict, verdict
from embinit.errors import EmbinitError
from embinit.hosts import host as known_host
from embinit.positions import sinusoidal
from embinit.recipes.recipe import Recipe, named_recipes
from embinit.recipes.recipe import recipe as recipe_of
from embinit.seeds import stream
from embinit.types import Aligned, Host, Matrix, check_aligned, task_kind, xavier_std

#: Length of the position table in Table 6 (PAPER.md 2).
_TABLE_LENGTH = 5_000


@dataclass(frozen=True)
class Diagnosis:
    """What vectors are like in a model, and what to do with them."""

    host: Host
    recipe: Recipe
    source: str
    format: str
    counts: dict[str, int]
    examples: tuple[str, ...]
    matches: dict[str, int]
    coverage: tuple[float, float | None]
    rows: int
    dim: int
    matrix: Matrix
    #: of the rows that came from the source, after the recipe
    found: Distribution
    missing: Distribution | None
    xavier: Distribution
    positions: Distribution | None
    geometry: Geometry
    absorption: Absorption | None
    #: the same after the recipe that the verdict names, where that is another
    after: Absorption | None
    #: the numbers that the verdict rests on
    basis: Basis
    verdict: Verdict

    @property
    def multiplier(self) -> float:
        """Return what the model multiplies rows by."""
        return self.host.multiplier(self.dim)

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain data, for JSON."""
        factor = self.multiplier
        tables = {"found": self.found, "missing": self.missing, "xavier": self.xavier}
        return {
            "source": {"name": self.source, "format": self.format, "counts": self.counts, "examples": self.examples},
            "host": asdict(self.host),
            "task": self.basis.task,
            "lines": self.basis.table,
            "recipe": {"name": self.recipe.name, "steps": str(self.recipe), "fill": self.recipe.fill},
            "vocabulary": {"rows": self.rows, "dim": self.dim, "matches": self.matches},
            "coverage": {"types": self.coverage[0], "tokens": self.coverage[1]},
            "distribution": {
                **{
                    name: {"raw": asdict(table), "scaled": asdict(table.scaled(factor))}
                    for name, table in tables.items()
                    if table is not None
                },
                "positions": None if self.positions is None else asdict(self.positions),
            },
            "geometry": asdict(self.geometry),
            "absorption": None if self.absorption is None else asdict(self.absorption),
            "after": None if self.after is None else asdict(self.after),
            "verdict": as_dict(self.verdict),
        }


def diagnose(
    aligned: Aligned,
    *,
    host: Host | str | Path = "tutorial",
    recipe: Recipe | str | Path = "pretrained",
    task: str | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Return the diagnosis of aligned vectors, after a recipe (by default as they are), in a model.

    `task` is what the model is for, `translation` (as without it) or `classification`; it changes the advice with
    sinusoids alone.
    """
    purpose = None if task is None else task_kind(task)
    check_aligned(aligned, "diagnose")
    host = host if isinstance(host, Host) else known_host(host)
    chosen = recipe_of(recipe)
    matrix = chosen(aligned, stream(seed, "matrix"), host)
    own = np.ones(len(matrix), dtype=bool) if not chosen.uses_source else aligned.found
    rows = matrix if own.all() else np.ascontiguousarray(matrix[own])
    if not rows.size or float(rows.std(dtype=np.float64)) == 0:
        raise EmbinitError(f"{aligned.origin.source}: all numbers are equal; these are no vectors")
    spread, shape, absorbed = distribution(rows), geometry(rows, seed), absorption(rows, host, seed)
    others = distribution(matrix[~own]) if not own.all() else None
    coverage = aligned.coverage()
    missing_std = None if others is None or others.rows < 10 else others.std
    basis = Basis(host, len(matrix), spread, shape, absorbed, coverage, missing_std, purpose, chosen.keeps_meaning)
    opinion = verdict(basis)
    if str(chosen) != "pretrained":
        # `as is` means: as the recipe made them. A recipe of one's own is written out, so that the text means it.
        opinion = opinion.of(chosen.name if chosen.name in named_recipes() else str(chosen))
    after = None
    if absorbed is not None and str(recipe_of(opinion.recipe)) != str(chosen) and aligned.found.any():
        better = recipe_of(opinion.recipe)(aligned, stream(seed, "matrix"), host)
        after = absorption(better[aligned.found], host, seed)
    return Diagnosis(
        host=host,
        recipe=chosen,
        source=aligned.origin.source,
        format=aligned.origin.format,
        counts=dict(aligned.origin.counts),
        examples=aligned.origin.examples,
        matches={str(kind): count for kind, count in aligned.matches().items()},
        coverage=coverage,
        rows=len(matrix),
        dim=spread.dim,
        matrix=matrix,
        found=spread,
        missing=others,
        xavier=_xavier(len(matrix), spread.dim),
        positions=_positions(host, spread.dim),
        geometry=shape,
        absorption=absorbed,
        after=after,
        basis=basis,
        verdict=opinion,
    )


def _xavier(rows: int, dim: int) -> Distribution:
    """Return Xavier's distribution at this size, by its formulas rather than by a draw (PAPER.md 7)."""
    std = xavier_std(rows, dim)
    bound = math.sqrt(3) * std
    length = std * math.sqrt(dim)
    return Distribution(rows, dim, -bound, bound, 0.0, std, -1.2, length, 0.0, bound * math.sqrt(dim))


def _positions(host: Host, dim: int) -> Distribution | None:
    if not host.adds_positions:
        return None
    if host.positions == "sinusoidal":
        return distribution(sinusoidal(_TABLE_LENGTH, dim))
    return distribution(position_table(host, dim, length=512))
