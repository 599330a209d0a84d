"""The stacked model: the weights of all members, and the computation from packed token ids to logits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.models.dropout import Dropout, keys
from embinit.models.kernels import operations
from embinit.models.layers import Reader
from embinit.models.packing import Layout, padded
from embinit.models.parameters import drawn, parameters, places
from embinit.models.positions import added_table, attention_positions
from embinit.types import Flags, Matrix


@dataclass(frozen=True)
class Member:
    """One model of an experiment: its seed, and its first matrix for each side."""

    seed: int
    matrices: tuple[Matrix, ...]
    #: flags of rows that are never trained, for each side; None: as the training settings say
    frozen: tuple[Flags | None, ...] | None = None
    #: flags of rows that the source has, to which `found_rate` applies, for each side; None: no row
    found: tuple[Flags | None, ...] | None = None
    #: the share of the activations that dropout sets to zero for this member; None: the architecture's
    dropout: float | None = None
    #: the first rows of an untied output layer, (outputs, dim); None: drawn like the other weights
    output: Matrix | None = None


class Stack(nn.Module):
    """Members of one architecture as one model. Weights enter through the constructor and nowhere else."""

    seeds: Tensor
    table: Tensor | None

    def __init__(
        self,
        architecture: Architecture,
        members: Sequence[Member],
        device: Any = "cpu",
        dtype: torch.dtype = torch.float32,
        protected: bool = True,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.architecture, self.dtype, self.protected = architecture, dtype, protected
        self.sides = architecture.sides
        stacked = weights if weights is not None else _drawn(architecture, self.sides, members)
        self._weights = nn.ParameterDict({_stored(name): nn.Parameter(values) for name, values in stacked.items()})
        self._names = {name: _stored(name) for name in stacked}
        self.register_buffer("seeds", torch.tensor([member.seed for member in members], dtype=torch.int64))
        self.register_buffer("table", added_table(architecture), persistent=False)
        self.to(device)
        self.attention_positions = attention_positions(architecture, device)
        self._places = places(architecture)
        self._dropout = tuple(architecture.dropout if member.dropout is None else member.dropout for member in members)
        #: every parameter by its name, (members, ...)
        self.weights: Mapping[str, Tensor] = {name: self._weights[stored] for name, stored in self._names.items()}

    @property
    def members(self) -> int:
        """Return the number of members."""
        return len(self.seeds)

    def reader(self, step: Tensor | int | None) -> Reader:
        """Return the layers with their dropout masks in this step; None: no dropout."""
        rates = self._dropout if step is not None else 0.0
        dropout = Dropout(rates, keys(self.seeds, 0 if step is None else step), self._places)
        return Reader(self.architecture, self.weights, dropout, self.attention_positions, self.dtype, self.protected)

    def embed(self, side: str, ids: Tensor, place: Layout, reader: Reader) -> Tensor:
        """Return the rows of packed ids (members, tokens), scaled, with their positions added."""
        a, weights, dropout = self.architecture, self.weights, reader.dropout
        embedding = weights[f"{side}.embedding"]  # (members, rows, dim)
        scale = math.sqrt(a.dim) if a.scaled else 1.0
        exact = self.protected or self.dtype == torch.float32
        simple = a.positions not in ("learned", "gained") and not a.embedding_norm and exact
        if simple and operations.usable(embedding):
            return operations.embed(embedding, ids, place, self.table, scale, dropout, f"{side}.embedding")
        own = torch.arange(self.members, device=ids.device)[:, None]
        rows = nn.functional.embedding(ids + own * embedding.shape[1], embedding.flatten(0, 1)) * scale
        rows = rows if exact else rows.to(self.dtype)
        if a.positions == "learned":
            rows = _with_learned(rows, weights[f"{side}.positions"].to(rows.dtype), place)
        elif self.table is not None:
            added = self.table[place.position]
            added = added * weights[f"{side}.gain"][:, None] if a.positions == "gained" else added
            rows = rows + added.to(rows.dtype)
        if a.embedding_norm:
            rows = reader.norm(rows, f"{side}.norm", first=True)
        return dropout(rows, f"{side}.embedding")

    def output(self, values: Tensor) -> Tensor:
        """Return logits (members, rows, outputs)."""
        weight = self._output_weight(values.dtype)
        if not self.architecture.output_bias:
            return torch.bmm(values, weight)
        return torch.baddbmm(self._output_bias[:, None].to(values.dtype), values, weight)

    def unbiased_output(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits without their bias, and the bias.

        The logits are padded to a multiple of eight, because products of an odd width take three times as long on tensor
        cores.
        """
        return torch.bmm(values, _widened(self._output_weight(values.dtype))), self._output_bias

    def padded_output(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the output layer's weight and bias, padded to a multiple of eight with outputs of probability zero."""
        return _widened(self._output_weight(dtype)), _widened(self._output_bias.to(dtype), float("-inf"))

    def _output_weight(self, dtype: torch.dtype) -> Tensor:
        tied = self.architecture.tied
        weight = self.weights[f"{self.sides[-1]}.embedding"].transpose(1, 2) if tied else self.weights["output.weight"]
        return weight.to(dtype)

    @property
    def _output_bias(self) -> Tensor:
        """Return the bias of the output layer, (members, outputs); zeros if it has none."""
        if self.architecture.output_bias:
            return self.weights["output.bias"]
        return torch.zeros(self.members, self.architecture.outputs, device=self.seeds.device)

    def translate(
        self,
        source: Tensor,
        source_place: Layout,
        target: Tensor,
        target_place: Layout,
        step: Tensor | int | None = None,
    ) -> Tensor:
        """Return the input of the output layer at every packed target place, (members, tokens, dim)."""
        reader = self.reader(step)
        memory = reader.encode(self.embed("source", source, source_place, reader), source_place)
        return reader.decode(self.embed("target", target, target_place, reader), target_place, memory, source_place)

    def classify(self, text: Tensor, place: Layout, step: Tensor | int | None = None) -> Tensor:
        """Return the input of the output layer for each sentence, (members, batch, dim)."""
        reader = self.reader(step)
        values = reader.encode(self.embed("text", text, place, reader), place)
        return pooled(values, place, self.architecture.pooling)

    def model_text(
        self, text: Tensor, place: Layout, step: Tensor | int | None = None, chosen: Tensor | None = None
    ) -> Tensor:
        """Return the input of the output layer at every place of a text, (members, places, dim).

        In a causal model, the value at a place depends on the tokens up to it; in a masked model, on the whole block.
        `chosen` (members, places) limits the result to these packed places.
        """
        reader = self.reader(step)
        causal = self.architecture.task == "language_model"
        values = reader.encode(self.embed("text", text, place, reader), place, causal)
        if chosen is not None:
            values = values.gather(1, chosen[:, :, None].expand(-1, -1, values.shape[2]))
        return reader.output_block(values) if self.architecture.output_block else values


def _with_learned(rows: Tensor, positions: Tensor, place: Layout) -> Tensor:
    """Return rows (members, room, dim) with learned positions (members, length, dim)."""
    if place.full:
        blocks = rows.view(len(rows), -1, place.longest, rows.shape[2])
        return (blocks + positions[:, None, : place.longest]).view_as(rows)
    own = torch.arange(len(rows), device=rows.device)[:, None]
    return rows + positions[own, place.position]


def _widened(outputs: Tensor, value: float = 0.0) -> Tensor:
    """Return a weight or bias with added columns, so that their number is a multiple of eight."""
    return nn.functional.pad(outputs, (0, -outputs.shape[-1] % 8), value=value)


def _drawn(a: Architecture, sides: Sequence[str], members: Sequence[Member]) -> dict[str, Tensor]:
    """Return the members' matrices, and all other weights, drawn from their seeds."""
    stacked: dict[str, Tensor] = {}
    for place, side in enumerate(sides):
        expected = (a.vocabularies[place], a.dim)
        for member in members:
            if member.matrices[place].shape != expected:
                raise EmbinitError(f"{side}: a matrix of {member.matrices[place].shape}, the model has {expected}")
        stacked[f"{side}.embedding"] = _stacked([member.matrices[place] for member in members])
    for parameter in parameters(a):
        # Members of one seed share all weights but the embeddings, so that comparisons are paired.
        own = {seed: drawn(parameter, seed) for seed in {member.seed for member in members}}
        stacked[parameter.name] = _stacked([own[member.seed] for member in members])
    for i, member in enumerate(members):
        if member.output is not None:
            stacked["output.weight"][i] = torch.from_numpy(_checked_output(member.output, a).T.copy())
    return stacked


def _checked_output(rows: Matrix, a: Architecture) -> Matrix:
    """Return the rows of an output layer; an error if the model has no such layer, or another shape."""
    if a.tied or a.task == "classification":
        raise EmbinitError("only an untied output layer over tokens can start from rows")
    if rows.shape != (a.outputs, a.dim):
        raise EmbinitError(f"output: a matrix of {rows.shape}, the model has {(a.outputs, a.dim)}")
    return rows


def pooled(values: Tensor, place: Layout, how: str) -> Tensor:
    """Return one row for each sentence, (members, batch, dim); a sentence without tokens gets zeros."""
    block = padded(values, place)  # (members * batch, longest, dim)
    mask = place.mask[:, :, None]
    if how == "first":
        rows = block[:, 0]
    elif how == "max":
        rows = block.masked_fill(~mask, torch.finfo(block.dtype).min).amax(dim=1)
    else:
        rows = (block * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    rows = rows.masked_fill(~mask.any(dim=1), 0.0)
    return rows.view(values.shape[0], place.batch, -1)


def _stacked(arrays: Sequence[Matrix]) -> Tensor:
    return torch.from_numpy(np.stack(arrays).astype(np.float32))


def _stored(name: str) -> str:
    return name.replace(".", "/")  # the names of a ParameterDict have no dots


def joined(stacks: Sequence[Stack]) -> Stack:
    """Return the members of several stacks of one architecture as one stack."""
    first = stacks[0]
    if len(stacks) == 1:
        return first
    members = [Member(int(seed), ()) for stack in stacks for seed in stack.seeds]
    weights = {name: torch.cat([stack.weights[name].detach() for stack in stacks]) for name in first.weights}
    return Stack(first.architecture, members, first.seeds.device, first.dtype, first.protected, weights)
