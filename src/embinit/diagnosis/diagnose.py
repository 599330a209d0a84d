"""`diagnose`: measurements of vectors in a model before training, and the verdict on them."""

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
from embinit.diagnosis.missing import MissingTokens, missing_tokens
from embinit.diagnosis.verdict import Verdict, verdict
from embinit.display import Panel
from embinit.errors import EmbinitError
from embinit.hosts import host as find_host
from embinit.positions import sinusoidal
from embinit.recipes.recipe import Recipe
from embinit.recipes.recipe import recipe as recipe_of
from embinit.seeds import stream
from embinit.types import Aligned, Host, Matrix, check_aligned, standard_deviation, task_kind, xavier_std

#: Length of the position table in Table 6 (PAPER.md 2).
_TABLE_LENGTH = 5_000
#: The σ of fewer missing rows than this is not compared with that of the found rows.
_FEW_ROWS = 10


@dataclass(frozen=True)
class Diagnosis:
    """Measurements of vectors in a model, and the verdict on them."""

    host: Host
    recipe: Recipe
    source: str
    format: str
    counts: dict[str, int]
    examples: tuple[str, ...]
    #: messages about the source and the alignment that a person should read first
    warnings: tuple[str, ...]
    matches: dict[str, int]
    coverage: tuple[float, float | None]
    #: the tokens that the source lacks
    missing_tokens: MissingTokens
    rows: int
    dim: int
    matrix: Matrix
    #: the distribution of the found rows, after the recipe
    found: Distribution
    missing: Distribution | None
    xavier: Distribution
    positions: Distribution | None
    geometry: Geometry
    absorption: Absorption | None
    #: the absorption after the advised recipe; None if the matrix was already made by it
    after: Absorption | None
    #: the measurements that decide the verdict
    basis: Basis
    verdict: Verdict

    def __repr__(self) -> str:
        from embinit.diagnosis.panel import diagnosis_panel

        return diagnosis_panel(self, numbers=False).text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary for a notebook or a page, with its tables and its histogram."""
        from embinit.diagnosis.panel import diagnosis_panel

        return diagnosis_panel(self)

    @property
    def multiplier(self) -> float:
        """Return the factor that the model multiplies rows by."""
        return self.host.multiplier(self.dim)

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain data, for JSON."""
        distributions = {"found": self.found, "missing": self.missing, "xavier": self.xavier}
        return {
            "source": {"name": self.source, "format": self.format, "counts": self.counts, "examples": self.examples},
            "host": asdict(self.host),
            "warnings": list(self.warnings),
            "task": self.basis.task,
            "lines": self.basis.table,
            "recipe": {"name": self.recipe.name, "steps": str(self.recipe), "fill": self.recipe.fill},
            "vocabulary": {"rows": self.rows, "dim": self.dim, "matches": self.matches},
            "missing": self.missing_tokens.as_dict(),
            "coverage": {"types": self.coverage[0], "tokens": self.coverage[1]},
            "distribution": {
                **{
                    name: {"raw": asdict(spread), "scaled": asdict(spread.scaled(self.multiplier))}
                    for name, spread in distributions.items()
                    if spread is not None
                },
                "positions": None if self.positions is None else asdict(self.positions),
            },
            "geometry": asdict(self.geometry),
            "absorption": None if self.absorption is None else asdict(self.absorption),
            "after": None if self.after is None else asdict(self.after),
            "verdict": self.verdict.as_dict(),
        }


def diagnose(
    aligned: Aligned,
    *,
    host: Any = "tutorial",
    recipe: Recipe | str | Path = "pretrained",
    task: str | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Return the diagnosis of aligned vectors in a model.

    Parameters
    ----------
    aligned
        The rows of a source in vocabulary order, from `align`.
    host
        The model: anything that `host` takes, for example `bert`, a folder, or a model of transformers.
    recipe
        The recipe that makes the matrix to diagnose. By default the vectors are diagnosed as they are.
    task
        `translation` (the default), `classification`, `language_model` or `masked_language_model`. The advice depends on
        it only with sinusoidal positions; for language models, no run has tested it yet.
    seed
        The seed of the matrix and of the samples that are measured.

    Returns
    -------
    Diagnosis
        All measurements, and the verdict.

    Raises
    ------
    EmbinitError
        If no token was found, or all numbers of the rows are equal.

    Examples
    --------
    >>> diagnosis = diagnose(embinit.align("glove.6B.300d.txt", ["the", "cat"]))      # doctest: +SKIP
    >>> diagnosis.verdict.recipe                                                       # doctest: +SKIP
    'pretrained_xavier'
    """
    kind_of_task = None if task is None else task_kind(task)
    check_aligned(aligned, "diagnose")
    host = find_host(host)
    recipe = recipe_of(recipe)
    lacking = missing_tokens(aligned)
    if recipe.uses_source and not aligned.found.any():
        reasons = "".join(f"; likely reason: {reason.text}" for reason in lacking.reasons)
        raise EmbinitError(f"no token of the vocabulary is in {aligned.origin.source}: {lacking.first()}{reasons}")
    matrix = recipe(aligned, stream(seed, "matrix"), host)
    measured = aligned.found if recipe.uses_source else np.ones(len(matrix), dtype=bool)
    rows = matrix if measured.all() else np.ascontiguousarray(matrix[measured])
    if not rows.size or standard_deviation(rows) == 0:
        raise EmbinitError(f"{aligned.origin.source}: all numbers are equal, so these are not vectors")
    missing = distribution(matrix[~measured]) if not measured.all() else None
    basis = Basis(
        host=host,
        rows=len(matrix),
        spread=distribution(rows),
        shape=geometry(rows, seed),
        absorbed=absorption(rows, host, seed),
        coverage=aligned.coverage(),
        missing_std=None if missing is None or missing.rows < _FEW_ROWS else missing.std,
        task=kind_of_task,
        meaning=recipe.keeps_meaning,
    )
    advised = verdict(basis).on_rows_of(recipe)
    return Diagnosis(
        host=host,
        recipe=recipe,
        source=aligned.origin.source,
        format=aligned.origin.format,
        counts=dict(aligned.origin.counts),
        examples=aligned.origin.examples,
        warnings=aligned.warnings,
        matches={str(kind): count for kind, count in aligned.matches().items()},
        coverage=basis.coverage,
        missing_tokens=lacking,
        rows=basis.rows,
        dim=basis.spread.dim,
        matrix=matrix,
        found=basis.spread,
        missing=missing,
        xavier=_xavier_distribution(basis.rows, basis.spread.dim),
        positions=_position_distribution(host, basis.spread.dim),
        geometry=basis.shape,
        absorption=basis.absorbed,
        after=_advised_absorption(aligned, host, recipe, advised, seed) if basis.absorbed is not None else None,
        basis=basis,
        verdict=advised,
    )


def _advised_absorption(aligned: Aligned, host: Host, recipe: Recipe, advised: Verdict, seed: int) -> Absorption | None:
    """Return the absorption of the rows that the advised recipe makes; None if they are the same or nothing was found."""
    advised_recipe = recipe_of(advised.recipe)
    if str(advised_recipe) == str(recipe) or not aligned.found.any():
        return None
    matrix = advised.matrix(aligned, seed=seed)
    return absorption(matrix[aligned.found], host, seed)


def _xavier_distribution(rows: int, dim: int) -> Distribution:
    """Return the distribution of Xavier's initialization at this size, from its formulas (PAPER.md 7)."""
    std = xavier_std(rows, dim)
    bound = math.sqrt(3) * std
    length = std * math.sqrt(dim)
    return Distribution(rows, dim, -bound, bound, 0.0, std, -1.2, length, 0.0, bound * math.sqrt(dim))


def _position_distribution(host: Host, dim: int) -> Distribution | None:
    if not host.adds_positions:
        return None
    if host.positions == "sinusoidal":
        return distribution(sinusoidal(_TABLE_LENGTH, dim))
    return distribution(position_table(host, dim, length=512))
