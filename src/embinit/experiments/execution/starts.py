"""The embedding matrices that a run starts from, and their statistics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from embinit.diagnosis.distribution import distribution
from embinit.experiments.inputs.row_files import no_rows, read_rows
from embinit.experiments.jobs import Job
from embinit.experiments.runs.result import MatrixFacts
from embinit.experiments.spec import OUTPUT, Side, Spec, side_of_tokens
from embinit.hosts import host
from embinit.prepared.folder import Prepared
from embinit.recipes.recipe import recipe
from embinit.seeds import stream
from embinit.types import Aligned, Flags, Matrix, Vocabulary

_BINS = 60


@dataclass(frozen=True)
class Start:
    """The matrices of a run, and which of their rows a source had; both in the order of the model's sides."""

    matrices: tuple[Matrix, ...]
    #: None for a side with random rows
    found: tuple[Flags | None, ...]
    #: side, or `output` -> statistics of its matrix
    facts: dict[str, MatrixFacts]
    #: the rows of the output layer; None: they are drawn like the other weights
    output: Matrix | None = None


def start_of(job: Job, prepared: Prepared) -> Start:
    """Return the matrices that a job's recipes give."""
    matrices: list[Matrix] = []
    found: list[Flags | None] = []
    output: Matrix | None = None
    facts: dict[str, MatrixFacts] = {}
    for (name, side), (_, path) in zip(job.spec.sides, job.rows, strict=True):
        vocabulary = prepared.vocabularies[side_of_tokens(name, prepared.sides)]
        aligned = aligned_of(side, path, vocabulary, dim_of(job.spec))
        matrix = matrix_of(side, aligned, job.spec, name)
        facts[name] = facts_of(matrix, aligned, bool(side.source))
        if name == OUTPUT:
            output = matrix
            continue
        matrices.append(matrix)
        found.append(aligned.found if recipe(side.steps).uses_source else None)
    return Start(tuple(matrices), tuple(found), facts, output)


def dim_of(spec: Spec) -> int:
    """Return the model's dimension."""
    return int(dict(spec.model)["dim"])


def aligned_of(side: Side, path: Path | None, vocabulary: Vocabulary, dim: int) -> Aligned:
    """Return the aligned rows of a side; none are found if its recipe needs no source."""
    return no_rows(vocabulary, dim) if path is None else _read(path, vocabulary, side.rows)


@lru_cache(maxsize=4)
def _read(path: Path, vocabulary: Vocabulary, expected: str) -> Aligned:
    return read_rows(path, vocabulary, expected)  # seeds and recipes of one source follow each other


def matrix_of(side: Side, aligned: Aligned, spec: Spec, name: str) -> Matrix:
    """Return the matrix of a side. Every recipe draws from the same stream of a seed.

    A recipe's `ratio=` refers to the tutorial's positions, so that a sweep over kinds of positions compares equal matrices.
    Whether rows are multiplied by √D is taken from the spec.
    """
    where = replace(host("tutorial"), scaled=bool(dict(spec.model)["scaled"]))
    return recipe(side.steps, side.fill)(aligned, stream(spec.seed, f"{name} matrix"), where)


def facts_of(matrix: Matrix, aligned: Aligned, sourced: bool) -> MatrixFacts:
    """Return the distribution of a matrix with a histogram, and the share of the vocabulary that a source had."""
    spread = asdict(distribution(matrix))
    counts, edges = np.histogram(matrix, bins=_BINS, range=(spread["min"], spread["max"]))
    types, tokens = aligned.coverage() if sourced else (None, None)
    facts = {
        **spread,
        "histogram": {"counts": counts.tolist(), "edges": edges.tolist()},
        "coverage": {"types": types, "tokens": tokens} if sourced else None,
        "kinds": {str(kind): count for kind, count in aligned.matches().items() if count} if sourced else {},
    }
    return cast(MatrixFacts, facts)
