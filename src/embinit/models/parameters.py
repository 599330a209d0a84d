"""A member's first weights, drawn with numpy from its seed. They depend neither on the device nor on other members."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embinit.models.architecture import Architecture
from embinit.seeds import stream
from embinit.types import Matrix

#: The number of buckets of T5's relative bias, and the distance from which on all distances share a bucket.
RELATIVE_BUCKETS, RELATIVE_FAR = 32, 128


@dataclass(frozen=True)
class Parameter:
    """One parameter of a member: its stored shape (in, out), and the distribution that it is drawn from."""

    name: str
    shape: tuple[int, ...]
    draw: Literal["xavier", "default", "ones", "zeros", "normal"]
    #: inputs and outputs of the logical matrix: PyTorch packs q, k and v into one (PAPER.md 1)
    fan_in: int = 0
    fan_out: int = 0
    #: σ of normal draws
    std: float = 0.02


def parameters(architecture: Architecture) -> list[Parameter]:
    """Return all parameters but the embeddings, whose matrices come with the members."""
    return list(_parameters(architecture))


def _parameters(a: Architecture) -> Iterator[Parameter]:
    for stack in a.stacks:
        for layer in range(a.layers):
            yield from _layer(a, f"{stack}.{layer}", crossed=stack == "decoder" and a.task == "translation")
        if a.final_norm:
            yield from _norm(a, f"{stack}.norm")
    for side in a.sides:
        if a.embedding_norm:
            yield from _norm(a, f"{side}.norm")
        if a.positions == "learned":
            yield Parameter(f"{side}.positions", (a.length, a.dim), "normal")
        if a.positions == "gained":
            yield Parameter(f"{side}.gain", (1,), "ones")
    if a.positions == "relative":
        for stack in a.stacks:
            yield Parameter(f"{stack}.bias", (RELATIVE_BUCKETS, a.heads), "xavier", RELATIVE_BUCKETS, a.heads)
    if a.output_block:
        yield from _linear(a, "output.block", a.dim, a.dim)
        yield from _norm(a, "output.norm")
    if not a.tied:
        yield _weight(a, "output", (a.dim, a.outputs))
    if a.output_bias:
        yield Parameter("output.bias", (a.outputs,), "default" if a.initial == "xavier" else "zeros", a.dim)


def _layer(a: Architecture, name: str, crossed: bool) -> Iterator[Parameter]:
    yield from _linear(a, f"{name}.self.qkv", a.dim, 3 * a.dim, zero_bias=True)
    yield from _linear(a, f"{name}.self.out", a.dim, a.dim, zero_bias=True, residual=True)
    yield from _norm(a, f"{name}.self.norm")
    if crossed:
        # PyTorch has one matrix. It is stored as two here: queries read the target, keys and values the source.
        yield from _linear(a, f"{name}.cross.q", a.dim, a.dim, zero_bias=True, fan_out=3 * a.dim)
        yield from _linear(a, f"{name}.cross.kv", a.dim, 2 * a.dim, zero_bias=True, fan_out=3 * a.dim)
        yield from _linear(a, f"{name}.cross.out", a.dim, a.dim, zero_bias=True, residual=True)
        yield from _norm(a, f"{name}.cross.norm")
    if a.activation == "swiglu":
        yield from _linear(a, f"{name}.gate", a.dim, a.feedforward)
    yield from _linear(a, f"{name}.up", a.dim, a.feedforward)
    yield from _linear(a, f"{name}.down", a.feedforward, a.dim, residual=True)
    yield from _norm(a, f"{name}.feedforward.norm")


def _linear(
    a: Architecture, name: str, inputs: int, outputs: int, zero_bias: bool = False, residual: bool = False,
    fan_out: int = 0,
) -> Iterator[Parameter]:  # fmt: skip
    yield _weight(a, name, (inputs, outputs), residual, fan_out)
    if a.biases:
        zero = zero_bias or a.initial != "xavier"
        yield Parameter(f"{name}.bias", (outputs,), "zeros" if zero else "default", inputs)


def _weight(a: Architecture, name: str, shape: tuple[int, int], residual: bool = False, fan_out: int = 0) -> Parameter:
    """Return a matrix. A `residual` matrix projects into the residual sum, to which a layer adds two or three times."""
    inputs, outputs = shape
    if a.initial == "xavier":
        return Parameter(f"{name}.weight", shape, "xavier", inputs, fan_out or outputs)
    scaled = residual and a.initial == "residual"
    sums = a.layers * (3 if name.startswith("decoder") and a.task == "translation" else 2)
    return Parameter(f"{name}.weight", shape, "normal", std=0.02 / math.sqrt(sums) if scaled else 0.02)


def _norm(a: Architecture, name: str) -> Iterator[Parameter]:
    yield Parameter(f"{name}.weight", (a.dim,), "ones")
    if a.norm_kind == "layer":
        yield Parameter(f"{name}.bias", (a.dim,), "zeros")


def places(a: Architecture) -> list[str]:
    """Return the names of all places with dropout."""
    names = [f"{side}.embedding" for side in a.sides]
    for stack, blocks in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        for layer in range(a.layers):
            for block in blocks:
                names += [f"{stack}.{layer}.{block}", f"{stack}.{layer}.{block}.shares"]
            names += [f"{stack}.{layer}.up", f"{stack}.{layer}.feedforward"]
    return ["", *names]


def drawn(parameter: Parameter, seed: int) -> Matrix:
    """Return a parameter's first values, which depend only on the seed, the parameter's name and its shape."""
    rng = stream(seed, f"parameter {parameter.name}")
    if parameter.draw == "ones":
        return np.ones(parameter.shape, dtype=np.float32)
    if parameter.draw == "zeros":
        return np.zeros(parameter.shape, dtype=np.float32)
    if parameter.draw == "normal":
        return (parameter.std * rng.standard_normal(parameter.shape)).astype(np.float32)
    bound = math.sqrt(6 / (parameter.fan_in + parameter.fan_out))
    if parameter.draw == "default":
        bound = 1 / math.sqrt(parameter.fan_in)  # the bias of PyTorch's nn.Linear
    return rng.uniform(-bound, bound, parameter.shape).astype(np.float32)


def count(architecture: Architecture) -> int:
    """Return the number of weights of one member, including the embeddings."""
    embeddings = sum(rows * architecture.dim for rows in architecture.vocabularies)
    return embeddings + sum(math.prod(parameter.shape) for parameter in parameters(architecture))
