"""The card of a matrix: its source, its recipe and its distribution."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import embinit
from embinit.diagnosis.distribution import distribution
from embinit.recipes.recipe import Recipe
from embinit.sources.load import input_files
from embinit.types import Aligned, Embeddings, Host, Matrix

_MADE_BY = "made by"


def card(aligned: Aligned, matrix: Matrix, recipe: Recipe, host: Host, seed: int) -> dict[str, Any]:
    """Return plain data that suffices to make the matrix again and to recognize it."""
    types, tokens = aligned.coverage()
    return {
        _MADE_BY: f"embinit {embinit.__version__}",
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


def card_path(path: Path) -> Path:
    """Return the path of a matrix's card: beside a file, inside a folder."""
    return path / "embinit.json" if path.is_dir() else path.with_name(path.name + ".card.json")


def read_card(source: Embeddings | str | Path) -> dict[str, Any] | None:
    """Return the card of a matrix that `embinit make` wrote; None for any other source."""
    for path in input_files(source.origin.source if isinstance(source, Embeddings) else source)[:1]:
        try:
            content = json.loads(card_path(path).read_bytes())
        except (OSError, ValueError, RecursionError):  # no card, or the file of another tool
            return None
        made_by = content.get(_MADE_BY) if isinstance(content, dict) else None
        return content if str(made_by).startswith("embinit") and isinstance(content.get("sha256"), str) else None
    return None


def is_described(embeddings: Embeddings, card: dict[str, Any]) -> bool:
    """Return whether these are the rows that a card describes."""
    added = len(card.get("added") or ())
    rows = embeddings.vectors[: len(embeddings) - added]
    left_out = len(card.get("left out") or ())
    if left_out:  # the checksum is that of all rows
        return list(card.get("shape", ())) == [len(rows) + left_out, embeddings.dim]
    return bool(digest(rows) == card["sha256"])
