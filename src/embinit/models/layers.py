"""The layers of a transformer for many members: weights are (members, in, out), activations (members, tokens, dim)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from embinit.models.architecture import Architecture
from embinit.models.dropout import Dropout
from embinit.models.kernels import operations, packed_attention
from embinit.models.packing import Layout, blocks
from embinit.models.positions import AttentionPositions

Weights = Mapping[str, Tensor]
#: Longer blocks are left to PyTorch's attention, in bfloat16 on a CPU.
_LONGEST_PRODUCT = 512
#: Queries of a causal model that are taken at a time; keys after them are left out.
_TILE = 128


def linear(values: Tensor, weights: Weights, name: str) -> Tensor:
    """Return values (members, tokens, in) times each member's weight, plus its bias if the model has biases.

    The result has the number format of the values.
    """
    bias = weights.get(f"{name}.bias")
    if bias is None:
        return product(values, weights, name)
    return torch.baddbmm(bias.to(values.dtype)[:, None], values, weights[f"{name}.weight"].to(values.dtype))


def product(values: Tensor, weights: Weights, name: str) -> Tensor:
    """Return values times weight; the caller adds the bias."""
    return torch.bmm(values, weights[f"{name}.weight"].to(values.dtype))


def bias_of(weights: Weights, name: str) -> Tensor:
    """Return a linear layer's bias (members, out); zeros if it has none."""
    weight = weights[f"{name}.weight"]
    return weights[f"{name}.bias"] if f"{name}.bias" in weights else weight.new_zeros(len(weight), weight.shape[-1])


def headed(block: Tensor, heads: int) -> Tensor:
    """Return (sentences, length, dim) as (sentences, heads, length, head)."""
    return block.reshape(*block.shape[:-1], heads, -1).transpose(1, 2)


def _attention_in_bfloat16(queries: Tensor, keys: Tensor, content: Tensor, causal: bool) -> Tensor:
    """Return attention over whole blocks, (blocks, heads, length, head).

    On a CPU PyTorch's attention in bfloat16 takes two to three times as long for blocks of 256 tokens, and less for 1,024.
    """
    shape, length = queries.shape, queries.shape[2]
    q, k, v = (part.reshape(-1, *shape[2:]) for part in (queries, keys, content))
    tile = _TILE if causal else length
    mixed = []
    for start, own in zip(range(0, length, tile), torch.split(q, tile, dim=1), strict=True):
        end = start + own.shape[1] if causal else length
        hidden = q.new_full((own.shape[1], end), float("-inf")).triu(start + 1) if causal else q.new_zeros(1, end)
        scores = torch.baddbmm(hidden.expand(len(q), -1, -1), own, k[:, :end].transpose(1, 2), alpha=shape[3] ** -0.5)
        mixed.append(torch.bmm(scores.softmax(dim=-1), v[:, :end]))
    return torch.cat(mixed, dim=1).view(shape)


@dataclass(frozen=True)
class Reader:
    """A stack of layers: its weights, its dropout masks, and its positions."""

    architecture: Architecture
    weights: Weights
    dropout: Dropout
    positions: AttentionPositions
    #: the number format of activations between layers
    dtype: torch.dtype = torch.float32
    #: the first layer's projection, self-attention and norm are in float32. Beside large rows, bfloat16 would round
    #: positions away: in the sum, and in the queries and keys made of it
    protected: bool = True

    def encode(self, values: Tensor, place: Layout, causal: bool = False) -> Tensor:
        """Return the output for embedded tokens: the encoder's, or that of a causal language model's decoder."""
        stack = "decoder" if causal else "encoder"
        for layer in range(self.architecture.layers):
            name = f"{stack}.{layer}"
            mixed = self._self_attention(self.entering(values, f"{name}.self"), name, place, causal)
            values = self.leaving(values, mixed, f"{name}.self", f"{name}.self.out")
            values = self.feedforward(values, name)
        return self.finished(values, stack)

    def decode(self, values: Tensor, place: Layout, memory: Tensor, memory_place: Layout) -> Tensor:
        """Return the decoder's output for embedded target tokens and the encoder's output."""
        for layer in range(self.architecture.layers):
            name = f"decoder.{layer}"
            mixed = self._self_attention(self.entering(values, f"{name}.self"), name, place, causal=True)
            values = self.leaving(values, mixed, f"{name}.self", f"{name}.self.out")
            mixed = self._cross_attention(self.entering(values, f"{name}.cross"), name, place, memory, memory_place)
            values = self.leaving(values, mixed, f"{name}.cross", f"{name}.cross.out")
            values = self.feedforward(values, name)
        return self.finished(values, "decoder")

    def finished(self, values: Tensor, stack: str) -> Tensor:
        """Return the output of a stack's last layer, normalized if the model has a final norm."""
        return self.norm(values, f"{stack}.norm") if self.architecture.final_norm else values

    def output_block(self, values: Tensor) -> Tensor:
        """Return the input of the output layer: a linear layer, the activation and a norm (BERT's head)."""
        return self.norm(self._activated(linear(values, self.weights, "output.block")), "output.norm")

    def norm(self, values: Tensor, name: str, first: bool = False) -> Tensor:
        """Return normalized values, scaled and shifted by each member's parameters."""
        a, dtype = self.architecture, torch.float32 if first and self.protected else self.dtype
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        if operations.usable(values):
            own = (weight, torch.zeros_like(weight) if bias is None else bias)
            return operations.norm(values, None, None, *own, self.dropout, "", dtype, a.norm_epsilon, bias is None)
        if bias is None:
            normal = F.rms_norm(values.float(), values.shape[-1:], eps=a.norm_epsilon)
            return (normal * weight[:, None]).to(dtype)
        normal = F.layer_norm(values.float(), values.shape[-1:], eps=a.norm_epsilon)
        return torch.addcmul(bias[:, None], normal, weight[:, None]).to(dtype)

    def entering(self, values: Tensor, name: str) -> Tensor:
        """Return the input of a block: the values, normalized in a pre-LN model."""
        if self.architecture.norm == "post":
            return values
        return self.norm(values, f"{name}.norm", first=name.endswith(".0.self"))

    def leaving(self, values: Tensor, inner: Tensor, name: str, projection: str) -> Tensor:
        """Return the residual sum after a block, whose output is projected; normalized in a post-LN model."""
        if self.architecture.norm == "pre":
            return values + self.dropout(linear(inner, self.weights, projection), name)
        if not operations.usable(values):
            return self.norm(values + self.dropout(linear(inner, self.weights, projection), name), f"{name}.norm")
        weight, own_bias = self.weights[f"{name}.norm.weight"], self.weights.get(f"{name}.norm.bias")
        own = (weight, torch.zeros_like(weight) if own_bias is None else own_bias)
        change, bias = product(inner, self.weights, projection), bias_of(self.weights, projection)
        epsilon, rms = self.architecture.norm_epsilon, own_bias is None
        return operations.norm(values, change, bias, *own, self.dropout, name, self.dtype, epsilon, rms)

    def feedforward(self, values: Tensor, name: str) -> Tensor:
        """Return the values after a layer's feed-forward block."""
        a, entered = self.architecture, self.entering(values, f"{name}.feedforward")
        if a.activation == "relu" and a.hidden_dropout and operations.usable(entered):
            bias = bias_of(self.weights, f"{name}.up")
            hidden = operations.relu(product(entered, self.weights, f"{name}.up"), bias, self.dropout, f"{name}.up")
        else:
            hidden = linear(entered, self.weights, f"{name}.up")
            if a.activation == "swiglu":
                hidden = hidden * F.silu(linear(entered, self.weights, f"{name}.gate"))
            else:
                hidden = self._activated(hidden)
            hidden = self.dropout(hidden, f"{name}.up") if a.hidden_dropout else hidden
        return self.leaving(values, hidden, f"{name}.feedforward", f"{name}.down")

    def _activated(self, values: Tensor) -> Tensor:
        kind = self.architecture.activation
        if kind == "relu":
            return F.relu(values)
        return F.gelu(values, approximate="tanh" if kind == "gelu_tanh" else "none")

    def _self_attention(self, values: Tensor, name: str, place: Layout, causal: bool) -> Tensor:
        return self._mixed(values, name, place, causal).to(self.dtype)

    def _mixed(self, values: Tensor, name: str, place: Layout, causal: bool) -> Tensor:
        """Return self-attention in the number format of the values."""
        qkv, own = f"{name}.self.qkv", f"{name}.self"
        rotary = self.architecture.positions == "rotary"
        whole = self._whole_blocks_serve(values, place)
        if self._kernels_serve(values, place, place) and not whole:
            together, bias = product(values, self.weights, qkv), self.weights.get(f"{qkv}.bias")
            if rotary:
                together = operations.turn(together, bias_of(self.weights, qkv), *self.positions.turns, place)
            biases = (None if rotary else bias, None)
            return self._fused_attention(together, None, biases, place, place, causal, own)
        together = linear(values, self.weights, qkv)
        queries, keys, content = together.chunk(3, dim=-1)
        if rotary:
            queries, keys = self.positions.turned(queries, place.position), self.positions.turned(keys, place.position)
        if whole:
            return self._whole_block_attention((queries, keys, content), place, causal)
        if not rotary:
            return self._plain_attention(together, None, place, place, causal, own)
        return self._plain_attention(queries, torch.cat((keys, content), dim=-1), place, place, causal, own)

    def _cross_attention(
        self, values: Tensor, name: str, place: Layout, memory: Tensor, memory_place: Layout
    ) -> Tensor:
        q, kv, own = f"{name}.cross.q", f"{name}.cross.kv", f"{name}.cross"
        if self._kernels_serve(values, place, memory_place):
            queries, others = product(values, self.weights, q), product(memory, self.weights, kv)
            biases = (self.weights.get(f"{q}.bias"), self.weights.get(f"{kv}.bias"))
            return self._fused_attention(queries, others, biases, place, memory_place, False, own)
        queries, others = linear(values, self.weights, q), linear(memory, self.weights, kv)
        return self._plain_attention(queries, others, place, memory_place, False, own)

    def _whole_blocks_serve(self, values: Tensor, place: Layout) -> bool:
        """Return whether PyTorch's attention can be used: all blocks have one length, without dropout or distance bias.

        On a card, this package's kernels are used for blocks as short as sentences. PyTorch's dropout takes no generator.
        """
        plain = place.full and not self.dropout.rate and self.architecture.positions not in ("alibi", "relative")
        return plain and not (operations.usable(values) and place.longest <= packed_attention.LONGEST)

    def _whole_block_attention(self, parts: tuple[Tensor, Tensor, Tensor], place: Layout, causal: bool) -> Tensor:
        heads = self.architecture.heads
        queries, keys, content = (headed(part.reshape(-1, place.longest, part.shape[-1]), heads) for part in parts)
        if queries.dtype == torch.bfloat16 and queries.device.type == "cpu" and place.longest <= _LONGEST_PRODUCT:
            mixed = _attention_in_bfloat16(queries, keys, content, causal)
        else:
            mixed = F.scaled_dot_product_attention(queries, keys, content, is_causal=causal)
        return mixed.transpose(1, 2).reshape(parts[0].shape)

    def _kernels_serve(self, values: Tensor, place: Layout, there: Layout) -> bool:
        return operations.usable(values) and packed_attention.serves(place, there, self._head)

    def _fused_attention(
        self, queries: Tensor, others: Tensor | None, biases: tuple[Tensor | None, Tensor | None], place: Layout,
        there: Layout, causal: bool, name: str,
    ) -> Tensor:  # fmt: skip
        curve = None
        if not name.endswith("cross"):
            curve = self.positions.curve(name.partition(".")[0], self.weights, packed_attention.span(place))
        heads = self.architecture.heads
        return packed_attention.attend(
            queries, others, *biases, place, there, heads, causal, curve, self.dropout, f"{name}.shares"
        )

    def _plain_attention(
        self, queries: Tensor, others: Tensor | None, place: Layout, there: Layout, causal: bool, name: str
    ) -> Tensor:
        """Return attention over padded blocks, packed again.

        `others` holds keys and values. If it is None, `queries` holds all three.
        """
        heads = self.architecture.heads
        own, those = blocks(place, there)
        rows = own.filled(queries)
        others_rows = rows if others is None else those.filled(others)
        mixed, start = [], 0
        for sentences, size in own.groups:
            stretch = slice(start, start + size * len(sentences))
            start = stretch.stop

            def headed_parts(filled: Tensor, of: slice = stretch, length: int = size) -> list[Tensor]:
                parts = filled[of].view(-1, length, filled.shape[-1] // self.architecture.dim, heads, self._head)
                return list(parts.permute(2, 0, 3, 1, 4))  # each (sentences, heads, length, head)

            q, k, v = headed_parts(rows) if others is None else [*headed_parts(rows), *headed_parts(others_rows)]
            member = sentences // place.batch
            scores = (q * self._head**-0.5) @ k.transpose(-1, -2)  # (sentences, heads, queries, keys)
            if not name.endswith("cross"):
                scores = self.positions.biased(scores, name.partition(".")[0], self.weights, member)
            allowed = those.real[stretch].view(-1, 1, 1, size)
            if causal:
                allowed = allowed & torch.ones(size, size, dtype=torch.bool, device=scores.device).tril()
            # A finite value, because a sentence without tokens (in a smaller last batch) would give NaN.
            shares = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
            if self.dropout.rate:
                # A query's row number is its packed place, which does not depend on its block.
                head = torch.arange(heads, device=scores.device)[:, None]
                local = own.place[stretch].view(-1, 1, size) - member[:, None, None] * place.room
                factors = self.dropout.factors(
                    local * heads + head, size, f"{name}.shares", shares.dtype, member[:, None, None]
                )
                shares = shares * factors
            mixed.append((shares @ v).transpose(1, 2).reshape(-1, self.architecture.dim))
        return own.emptied(torch.cat(mixed))

    @property
    def _head(self) -> int:
        return self.architecture.dim // self.architecture.heads
