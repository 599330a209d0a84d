"""A member's weights, drawn with numpy from its seed: the same on every device, and whoever trains beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embinit.models.architecture import Architecture
from embinit.seeds import stream
from embinit.types import Matrix

#: How many buckets T5's relative bias has, and from which distance on all are alike.
RELATIVE_BUCKETS, RELATIVE_FAR = 32, 128


@dataclass(frozen=True)
class Parameter:
    """One parameter of a member: its shape as it is stored (in, out), and how it is drawn."""

    name: str
    shape: tuple[int, ...]
    draw: Literal["xavier", "default", "ones", "zeros", "normal"]
    #: inputs and outputs of the logical matrix: PyTorch packs q, k and v into one (PAPER.md 1)
    fan_in: int = 0
    fan_out: int = 0


def parameters(architecture: Architecture) -> list[Parameter]:
    """Return every parameter but the embeddings, whose matrices come from outside."""
    return list(_parameters(architecture))


def _parameters(a: Architecture) -> Iterator[Parameter]:
    for layer in range(a.layers):
        yield from _layer(a, f"encoder.{layer}", crossed=False)
    yield from _norm(a, "encoder.norm")
    if a.task == "translation":
        for layer in range(a.layers):
            yield from _layer(a, f"decoder.{layer}", crossed=True)
        yield from _norm(a, "decoder.norm")
    sides = ("source", "target") if a.task == "translation" else ("text",)
    for side in sides:
        if a.embedding_norm:
            yield from _norm(a, f"{side}.norm")
        if a.positions == "learned":
            yield Parameter(f"{side}.positions", (a.length, a.dim), "normal")
        if a.positions == "gained":
            yield Parameter(f"{side}.gain", (1,), "ones")
    if a.positions == "relative":
        for stack in ("encoder", "decoder") if a.task == "translation" else ("encoder",):
            yield Parameter(f"{stack}.bias", (RELATIVE_BUCKETS, a.heads), "xavier", RELATIVE_BUCKETS, a.heads)
    if not a.tied:
        yield Parameter("output.weight", (a.dim, a.outputs), "xavier", a.dim, a.outputs)
    yield Parameter("output.bias", (a.outputs,), "default", a.dim)


def _layer(a: Architecture, name: str, crossed: bool) -> Iterator[Parameter]:
    yield Parameter(f"{name}.self.qkv.weight", (a.dim, 3 * a.dim), "xavier", a.dim, 3 * a.dim)
    yield Parameter(f"{name}.self.qkv.bias", (3 * a.dim,), "zeros")
    yield from _projection(a, f"{name}.self.out")
    yield from _norm(a, f"{name}.self.norm")
    if crossed:
        # One logical matrix in PyTorch, stored as two: queries read the target, keys and values the source.
        yield Parameter(f"{name}.cross.q.weight", (a.dim, a.dim), "xavier", a.dim, 3 * a.dim)
        yield Parameter(f"{name}.cross.q.bias", (a.dim,), "zeros")
        yield Parameter(f"{name}.cross.kv.weight", (a.dim, 2 * a.dim), "xavier", a.dim, 3 * a.dim)
        yield Parameter(f"{name}.cross.kv.bias", (2 * a.dim,), "zeros")
        yield from _projection(a, f"{name}.cross.out")
        yield from _norm(a, f"{name}.cross.norm")
    yield Parameter(f"{name}.up.weight", (a.dim, a.feedforward), "xavier", a.dim, a.feedforward)
    yield Parameter(f"{name}.up.bias", (a.feedforward,), "default", a.dim)
    yield Parameter(f"{name}.down.weight", (a.feedforward, a.dim), "xavier", a.feedforward, a.dim)
    yield Parameter(f"{name}.down.bias", (a.dim,), "default", a.feedforward)
    yield from _norm(a, f"{name}.feedforward.norm")


def _projection(a: Architecture, name: str) -> Iterator[Parameter]:
    yield Parameter(f"{name}.weight", (a.dim, a.dim), "xavier", a.dim, a.dim)
    yield Parameter(f"{name}.bias", (a.dim,), "zeros")


def _norm(a: Architecture, name: str) -> Iterator[Parameter]:
    yield Parameter(f"{name}.weight", (a.dim,), "ones")
    yield Parameter(f"{name}.bias", (a.dim,), "zeros")


def places(a: Architecture) -> list[str]:
    """Return the names of all places where something may be dropped."""
    sides = ("source", "target") if a.task == "translation" else ("text",)
    names = [f"{side}.embedding" for side in sides]
    for stack, blocks in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        for layer in range(a.layers):
            for block in blocks:
                names += [f"{stack}.{layer}.{block}", f"{stack}.{layer}.{block}.shares"]
            names += [f"{stack}.{layer}.up", f"{stack}.{layer}.feedforward"]
    return ["", *names]


def drawn(parameter: Parameter, seed: int) -> Matrix:
    """Return a parameter's first values; they depend on the seed and the parameter's name and shape alone."""
    rng = stream(seed, f"parameter {parameter.name}")
    if parameter.draw == "ones":
        return np.ones(parameter.shape, dtype=np.float32)
    if parameter.draw == "zeros":
        return np.zeros(parameter.shape, dtype=np.float32)
    if parameter.draw == "normal":
        return (0.02 * rng.standard_normal(parameter.shape)).astype(np.float32)
    bound = math.sqrt(6 / (parameter.fan_in + parameter.fan_out))
    if parameter.draw == "default":
        bound = 1 / math.sqrt(parameter.fan_in)  # PyTorch's nn.Linear draws its bias so
    return rng.uniform(-bound, bound, parameter.shape).astype(np.float32)


def count(architecture: Architecture) -> int:
    """Return the number of numbers in one member, embeddings included."""
    embeddings = sum(rows * architecture.dim for rows in architecture.vocabularies)
    return embeddings + sum(math.prod(parameter.shape) for parameter in parameters(architecture))
