"""The card of a matrix: its source, its recipe and its distribution."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import numpy as np

import embinit
from embinit.diagnosis.distribution import distribution
from embinit.recipes.recipe import Recipe
from embinit.types import Aligned, Host, Matrix


def card(aligned: Aligned, matrix: Matrix, recipe: Recipe, host: Host, seed: int) -> dict[str, Any]:
    """Return plain data that suffices to make the matrix again and to recognize it."""
    types, tokens = aligned.coverage()
    return {
        "made by": f"embinit {embinit.__version__}",
        "source": asdict(aligned.origin),
        "vocabulary": {"origin": aligned.vocabulary.origin, "tokens": len(aligned.vocabulary)},
        "recipe": {"name": recipe.name, "steps": str(recipe), "fill": recipe.fill},
        "seed": seed,
        "model": asdict(host),
        "coverage": {"types": types, "tokens": tokens, "matches": aligned.matches()},
        "shape": list(matrix.shape),
        "before": asdict(distribution(aligned.rows)) if aligned.found.any() else None,
        "after": asdict(distribution(matrix)),
        "sha256": digest(matrix),
    }


def digest(matrix: Matrix) -> str:
    """Return the sha256 of the matrix's float32 numbers, little-endian, row after row."""
    return hashlib.sha256(np.ascontiguousarray(matrix, dtype="<f4").tobytes()).hexdigest()
