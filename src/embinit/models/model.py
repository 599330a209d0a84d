"""The stacked model: members' weights, and the way from packed token ids to logits."""

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
from embinit.models.layers import Reader, layer_norm, linear
from embinit.models.packing import Layout, padded
from embinit.models.parameters import drawn, parameters
from embinit.models.positions import added_table, attention_positions
from embinit.types import Matrix


@dataclass(frozen=True)
class Member:
    """One model of an experiment: its seed, and the matrix of each side that it starts from."""

    seed: int
    matrices: tuple[Matrix, ...]


class Stack(nn.Module):
    """Members of one architecture as one model; weights enter here and nowhere else."""

    seeds: Tensor
    table: Tensor | None

    def __init__(self, architecture: Architecture, members: Sequence[Member], device: Any = "cpu") -> None:
        super().__init__()
        self.architecture = architecture
        self.sides = ("source", "target") if architecture.task == "translation" else ("text",)
        stacked: dict[str, Tensor] = {}
        for place, side in enumerate(self.sides):
            expected = (architecture.vocabularies[place], architecture.dim)
            for member in members:
                if member.matrices[place].shape != expected:
                    raise EmbinitError(f"{side}: a matrix of {member.matrices[place].shape}, the model has {expected}")
            stacked[f"{side}.embedding"] = _stacked([member.matrices[place] for member in members])
        for parameter in parameters(architecture):
            # Members of one seed share every weight but the embeddings, so that comparisons are paired.
            own = {seed: drawn(parameter, seed) for seed in {member.seed for member in members}}
            stacked[parameter.name] = _stacked([own[member.seed] for member in members])
        self._weights = nn.ParameterDict({_stored(name): nn.Parameter(values) for name, values in stacked.items()})
        self._names = {name: _stored(name) for name in stacked}
        self.register_buffer("seeds", torch.tensor([member.seed for member in members], dtype=torch.int64))
        self.register_buffer("table", added_table(architecture), persistent=False)
        self.to(device)

    @property
    def members(self) -> int:
        """Return how many members there are."""
        return len(self.seeds)

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Return every parameter by its name, (members, ...)."""
        return {name: self._weights[stored] for name, stored in self._names.items()}

    def reader(self, step: int | None) -> tuple[Reader, Dropout]:
        """Return the layers with what they drop in this step; None: nothing is dropped."""
        rate = self.architecture.dropout if step is not None else 0.0
        dropout = Dropout(rate, keys(self.seeds, step or 0))
        device = self.seeds.device
        return Reader(self.architecture, self.weights, dropout, attention_positions(self.architecture, device)), dropout

    def embed(self, side: str, ids: Tensor, place: Layout, dropout: Dropout) -> Tensor:
        """Return rows of packed ids (members, tokens), scaled and with their positions."""
        a, weights = self.architecture, self.weights
        embedding = weights[f"{side}.embedding"]  # (members, rows, dim)
        offset = torch.arange(self.members, device=ids.device)[:, None] * embedding.shape[1]
        rows = nn.functional.embedding(ids + offset, embedding.flatten(0, 1))
        if a.scaled:
            rows = rows * math.sqrt(a.dim)
        if a.positions == "learned":
            own = torch.arange(self.members, device=ids.device)[:, None]
            rows = rows + weights[f"{side}.positions"][own, place.position]
        elif self.table is not None:
            added = self.table[place.position]
            rows = rows + (added * weights[f"{side}.gain"][:, None] if a.positions == "gained" else added)
        if a.embedding_norm:
            rows = layer_norm(rows, weights, f"{side}.norm")
        return dropout(rows, f"{side}.embedding")

    def output(self, values: Tensor) -> Tensor:
        """Return logits (members, rows, outputs)."""
        if not self.architecture.tied:
            return linear(values, self.weights, "output")
        embedding = self.weights["target.embedding"].transpose(1, 2)
        return torch.baddbmm(self.weights["output.bias"][:, None], values, embedding)

    def translate(
        self, source: Tensor, source_place: Layout, target: Tensor, target_place: Layout, step: int | None = None
    ) -> Tensor:
        """Return the logits of the next target token at every packed target place, (members, tokens, vocabulary)."""
        reader, dropout = self.reader(step)
        memory = reader.encode(self.embed("source", source, source_place, dropout), source_place)
        values = reader.decode(self.embed("target", target, target_place, dropout), target_place, memory, source_place)
        return self.output(values)

    def classify(self, text: Tensor, place: Layout, step: int | None = None) -> Tensor:
        """Return the logits of each sentence, (members, batch, classes)."""
        reader, dropout = self.reader(step)
        values = reader.encode(self.embed("text", text, place, dropout), place)
        return self.output(pooled(values, place, self.architecture.pooling))


def pooled(values: Tensor, place: Layout, how: str) -> Tensor:
    """Return one row a sentence, (members, batch, dim), from packed rows; a sentence of no tokens gets zeros."""
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
    return name.replace(".", "/")  # a ParameterDict takes no dots
