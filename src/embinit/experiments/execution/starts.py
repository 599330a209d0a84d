"""A job's embedding matrices, and what they are like."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from embinit.diagnosis.distribution import distribution
from embinit.experiments.inputs.row_files import no_rows, read_rows
from embinit.experiments.jobs import Job
from embinit.experiments.spec import Side, Spec
from embinit.hosts import host
from embinit.prepared.folder import Prepared
from embinit.recipes.recipe import recipe
from embinit.seeds import stream
from embinit.types import Aligned, Flags, Matrix, Vocabulary

_BINS = 60


@dataclass(frozen=True)
class Start:
    """What a run starts from: each side's matrix in the model's order, and which of its rows a source had."""

    matrices: tuple[Matrix, ...]
    #: None: the side's rows are random
    found: tuple[Flags | None, ...]
    #: side -> what is to be known of its matrix
    facts: dict[str, dict[str, Any]]


def start_of(job: Job, prepared: Prepared) -> Start:
    """Return the matrices that a job's recipes make."""
    matrices: list[Matrix] = []
    found: list[Flags | None] = []
    facts = {}
    for (name, side), (_, path) in zip(job.spec.sides, job.rows, strict=True):
        aligned = aligned_of(side, path, prepared.vocabularies[name], dim_of(job.spec))
        matrices.append(matrix_of(side, aligned, job.spec, name))
        found.append(aligned.found if recipe(side.steps).uses_source else None)
        facts[name] = facts_of(matrices[-1], aligned, bool(side.source))
    return Start(tuple(matrices), tuple(found), facts)


def dim_of(spec: Spec) -> int:
    """Return the model's dimension."""
    return int(dict(spec.model)["dim"])


def aligned_of(side: Side, path: Path | None, vocabulary: Vocabulary, dim: int) -> Aligned:
    """Return the rows that a side starts from; none where its recipe needs none."""
    return no_rows(vocabulary, dim) if path is None else _read(path, vocabulary, side.rows)


@lru_cache(maxsize=4)
def _read(path: Path, vocabulary: Vocabulary, expected: str) -> Aligned:
    return read_rows(path, vocabulary, expected)  # seeds and recipes of one source come one after another


def matrix_of(side: Side, aligned: Aligned, spec: Spec, name: str) -> Matrix:
    """Return a side's matrix: every recipe of one seed draws from the same stream.

    A recipe's `ratio=` is of the tutorial's positions, whichever the model has, so that a sweep over kinds of positions
    compares equal matrices; whether rows are multiplied by √D is the model's own.
    """
    where = replace(host("tutorial"), scaled=bool(dict(spec.model)["scaled"]))
    return recipe(side.steps, side.fill)(aligned, stream(spec.seed, f"{name} matrix"), where)


def facts_of(matrix: Matrix, aligned: Aligned, sourced: bool) -> dict[str, Any]:
    """Return a matrix's distribution with a histogram, and how much of the vocabulary came from a source."""
    spread = asdict(distribution(matrix))
    counts, edges = np.histogram(matrix, bins=_BINS, range=(spread["min"], spread["max"]))
    types, tokens = aligned.coverage() if sourced else (None, None)
    return {
        **spread,
        "histogram": {"counts": counts.tolist(), "edges": edges.tolist()},
        "coverage": {"types": types, "tokens": tokens} if sourced else None,
        "kinds": {str(kind): count for kind, count in aligned.matches().items() if count} if sourced else {},
    }
