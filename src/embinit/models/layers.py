"""The layers of a transformer over members: every weight is (members, in, out), every activation (members, tokens, dim)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from embinit.models.architecture import Architecture
from embinit.models.dropout import Dropout
from embinit.models.packing import Layout, packed, padded
from embinit.models.positions import AttentionPositions

Weights = Mapping[str, Tensor]


def linear(values: Tensor, weights: Weights, name: str) -> Tensor:
    """Return values (members, tokens, in) times weight plus bias, each member by its own."""
    return torch.baddbmm(weights[f"{name}.bias"][:, None], values, weights[f"{name}.weight"])


def layer_norm(values: Tensor, weights: Weights, name: str) -> Tensor:
    """Return values normalized over the last dimension, then scaled and moved by each member's own numbers."""
    normal = F.layer_norm(values, values.shape[-1:])
    return torch.addcmul(weights[f"{name}.bias"][:, None], normal, weights[f"{name}.weight"][:, None])


def headed(block: Tensor, heads: int) -> Tensor:
    """Return (sentences, length, dim) as (sentences, heads, length, head)."""
    return block.reshape(*block.shape[:-1], heads, -1).transpose(1, 2)


@dataclass(frozen=True)
class Reader:
    """What a stack of layers needs beside its input: weights, what is dropped, and where tokens stand."""

    architecture: Architecture
    weights: Weights
    dropout: Dropout
    positions: AttentionPositions

    def encode(self, values: Tensor, place: Layout) -> Tensor:
        """Return the encoder's output for embedded tokens."""
        for layer in range(self.architecture.layers):
            name = f"encoder.{layer}"
            change = self._self_attention(self.entering(values, f"{name}.self"), name, place, causal=False)
            values = self.leaving(values, change, f"{name}.self")
            values = self.feedforward(values, name)
        return layer_norm(values, self.weights, "encoder.norm")

    def decode(self, values: Tensor, place: Layout, memory: Tensor, memory_place: Layout) -> Tensor:
        """Return the decoder's output for embedded target tokens and the encoder's output."""
        for layer in range(self.architecture.layers):
            name = f"decoder.{layer}"
            change = self._self_attention(self.entering(values, f"{name}.self"), name, place, causal=True)
            values = self.leaving(values, change, f"{name}.self")
            change = self._cross_attention(self.entering(values, f"{name}.cross"), name, place, memory, memory_place)
            values = self.leaving(values, change, f"{name}.cross")
            values = self.feedforward(values, name)
        return layer_norm(values, self.weights, "decoder.norm")

    def entering(self, values: Tensor, name: str) -> Tensor:
        """Return what a block reads: normalized values in a pre-LN model."""
        return layer_norm(values, self.weights, f"{name}.norm") if self.architecture.norm == "pre" else values

    def leaving(self, values: Tensor, change: Tensor, name: str) -> Tensor:
        """Return the residual sum with what a block gave, normalized in a post-LN model."""
        summed = values + self.dropout(change, name)
        return layer_norm(summed, self.weights, f"{name}.norm") if self.architecture.norm == "post" else summed

    def feedforward(self, values: Tensor, name: str) -> Tensor:
        """Return the values after a layer's feed-forward block."""
        hidden = linear(self.entering(values, f"{name}.feedforward"), self.weights, f"{name}.up")
        hidden = F.relu(hidden) if self.architecture.activation == "relu" else F.gelu(hidden)
        change = linear(self.dropout(hidden, f"{name}.up"), self.weights, f"{name}.down")
        return self.leaving(values, change, f"{name}.feedforward")

    def _self_attention(self, values: Tensor, name: str, place: Layout, causal: bool) -> Tensor:
        queries, keys, content = linear(values, self.weights, f"{name}.self.qkv").chunk(3, dim=-1)
        queries, keys = self.positions.turned(queries, place.position), self.positions.turned(keys, place.position)
        mixed = self._attention(queries, keys, content, place, place, causal, f"{name}.self")
        return linear(mixed, self.weights, f"{name}.self.out")

    def _cross_attention(
        self, values: Tensor, name: str, place: Layout, memory: Tensor, memory_place: Layout
    ) -> Tensor:
        queries = linear(values, self.weights, f"{name}.cross.q")
        keys, content = linear(memory, self.weights, f"{name}.cross.kv").chunk(2, dim=-1)
        mixed = self._attention(queries, keys, content, place, memory_place, False, f"{name}.cross")
        return linear(mixed, self.weights, f"{name}.cross.out")

    def _attention(
        self, queries: Tensor, keys: Tensor, content: Tensor, place: Layout, there: Layout, causal: bool, name: str
    ) -> Tensor:
        """Return attention over padded blocks (members * batch, heads, longest, head), packed again."""
        members, heads = queries.shape[0], self.architecture.heads

        def split(rows: Tensor, where: Layout) -> Tensor:
            return headed(padded(rows, where), heads)

        q, k, v = split(queries, place), split(keys, there), split(content, there)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)  # (members * batch, heads, queries, keys)
        if not name.endswith("cross"):
            scores = self.positions.biased(scores, name.partition(".")[0], self.weights, members)
        allowed = there.mask[:, None, None, :]
        if causal:
            allowed = allowed & torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        # Finite, so that a sentence of no tokens (a last, smaller batch) gives numbers that nobody reads, and no NaN.
        shares = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
        if self.dropout.rate:
            flat = shares.reshape(members, -1, shares.shape[-1])
            shares = self.dropout(flat, f"{name}.shares").view_as(shares)
        return packed((shares @ v).transpose(1, 2).flatten(-2), place)
