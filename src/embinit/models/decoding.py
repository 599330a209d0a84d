"""Greedy and beam search over all members and sentences at once, with cached keys and values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from embinit.models.layers import headed, linear
from embinit.models.model import Stack
from embinit.models.packing import Layout, padded

#: The number of tokens between two checks for finished sentences. Each check waits for the device.
_ASKED = 8


@dataclass
class _Cache:
    """Keys and values of every decoder layer. The source's are computed once, the target's grow by a token in each step."""

    source: list[tuple[Tensor, Tensor]]  # each (members * sentences, heads, source, head)
    target: list[tuple[Tensor, Tensor]]  # each (members * sentences, heads, length, head)
    hidden: Tensor  # (members * sentences, source): places without a token

    def reordered(self, index: Tensor) -> _Cache:
        """Return the cache with its sentences (or beams) in another order."""
        return _Cache(
            [(k.index_select(0, index), v.index_select(0, index)) for k, v in self.source],
            [(k.index_select(0, index), v.index_select(0, index)) for k, v in self.target],
            self.hidden.index_select(0, index),
        )


class _Search:
    """A search that adds one token in each step to every sentence of every member."""

    def __init__(self, stack: Stack, source: Tensor, place: Layout, length: int) -> None:
        self.stack, self.length = stack, length
        self.reader = stack.reader(None)
        memory = self.reader.encode(stack.embed("source", source, place, self.reader), place)
        heads = stack.architecture.heads
        sources, targets = [], []
        for layer in range(stack.architecture.layers):
            both = linear(memory, stack.weights, f"decoder.{layer}.cross.kv").chunk(2, dim=-1)
            # Contiguous, because every step would otherwise copy them for its matrix products.
            keys, values = (headed(padded(part, place), heads).contiguous() for part in both)
            sources.append((keys, values))
            shape = (len(place.mask), heads, length, stack.architecture.dim // heads)
            dtype = torch.float32 if layer == 0 and stack.protected else stack.dtype
            targets.append((memory.new_zeros(shape, dtype=dtype), memory.new_zeros(shape, dtype=dtype)))
        self.cache = _Cache(sources, targets, ~place.mask)
        self._output = stack.padded_output(stack.dtype)

    def step(self, ids: Tensor, at: int) -> Tensor:
        """Return logits (members, sentences, vocabulary) of the token after `ids` (members, sentences)."""
        values = self._embedded(ids, at)
        for layer in range(self.stack.architecture.layers):
            name = f"decoder.{layer}"
            mixed = self._self_attention(self.reader.entering(values, f"{name}.self"), layer, at)
            values = self.reader.leaving(values, mixed, f"{name}.self", f"{name}.self.out")
            mixed = self._cross_attention(self.reader.entering(values, f"{name}.cross"), layer)
            values = self.reader.leaving(values, mixed, f"{name}.cross", f"{name}.cross.out")
            values = self.reader.feedforward(values, name)
        weight, bias = self._output
        logits = torch.baddbmm(bias[:, None], self.reader.finished(values, "decoder"), weight)
        return logits[..., : self.stack.architecture.outputs]

    def keep(self, chosen: Tensor) -> None:
        """Drop all sentences but the chosen ones of each member, (members, remaining sentences)."""
        members, sentences = len(chosen), len(self.cache.hidden) // len(chosen)
        first = torch.arange(members, device=chosen.device)[:, None] * sentences
        self.cache = self.cache.reordered((first + chosen).flatten())

    def _embedded(self, ids: Tensor, at: int) -> Tensor:
        ones, zeros = torch.ones_like(ids), torch.zeros_like(ids)
        place = Layout(ones, zeros, zeros, zeros + at, ones > 0, longest=1)
        return self.stack.embed("target", ids, place, self.reader)

    def _self_attention(self, values: Tensor, layer: int, at: int) -> Tensor:
        weights, name, members = self.stack.weights, f"decoder.{layer}", values.shape[0]
        queries, keys, content = linear(values, weights, f"{name}.self.qkv").chunk(3, dim=-1)
        heads, kind = self.stack.architecture.heads, self.stack.architecture.positions
        if kind == "rotary":  # decoding waits for Python: it launches nothing that is not needed
            position = torch.full(values.shape[:2], at, device=values.device)
            queries, keys = (self.reader.positions.turned(part, position) for part in (queries, keys))
        cached_keys, cached_values = self.cache.target[layer]
        cached_keys[:, :, at] = headed(keys.flatten(0, 1)[:, None], heads)[:, :, 0]
        cached_values[:, :, at] = headed(content.flatten(0, 1)[:, None], heads)[:, :, 0]
        q = headed(queries.flatten(0, 1)[:, None], heads)
        scores = (q * q.shape[-1] ** -0.5) @ cached_keys[:, :, : at + 1].transpose(-1, -2)
        if kind in ("alibi", "relative"):
            member = torch.arange(members, device=values.device).repeat_interleave(values.shape[1])
            scores = self.reader.positions.biased(scores, "decoder", weights, member, first=at)
        mixed: Tensor = scores.softmax(dim=-1) @ cached_values[:, :, : at + 1]
        return mixed.transpose(1, 2).flatten(-2).view_as(values).to(self.stack.dtype)

    def _cross_attention(self, values: Tensor, layer: int) -> Tensor:
        weights, name = self.stack.weights, f"decoder.{layer}"
        queries = linear(values, weights, f"{name}.cross.q")
        keys, content = self.cache.source[layer]
        q = headed(queries.flatten(0, 1)[:, None], self.stack.architecture.heads)
        scores = (q * q.shape[-1] ** -0.5) @ keys.transpose(-1, -2)
        scores = scores.masked_fill(self.cache.hidden[:, None, None], torch.finfo(scores.dtype).min)
        mixed: Tensor = scores.softmax(dim=-1) @ content
        return mixed.transpose(1, 2).flatten(-2).view_as(values)


@torch.no_grad()
def greedy(stack: Stack, source: Tensor, place: Layout, limits: Tensor, begin: int, end: int) -> Tensor:
    """Return sentences made of the likeliest next token, (members, sentences, length), filled up with `end`.

    `limits` (members, sentences) is the largest number of tokens of each sentence; `end` does not count.
    """
    length = int(limits.max()) + 1
    search = _Search(stack, source, place, length)
    ids = torch.full_like(limits, begin)
    done = torch.zeros_like(limits, dtype=torch.bool)
    result = torch.full((*limits.shape, length), end, dtype=torch.int64, device=limits.device)
    sentence = torch.arange(limits.shape[1], device=limits.device).expand_as(limits)
    for at in range(length):
        ids = search.step(ids, at).argmax(dim=-1)
        ids = torch.where(done | (limits <= at), end, ids)
        result[:, :, at].scatter_(1, sentence, ids)
        done |= ids == end
        if at % _ASKED != _ASKED - 1:
            continue
        left = int((~done).sum(dim=1).max())
        if left == 0:
            break
        if left <= ids.shape[1] // 2:
            # A few sentences are often much longer than the rest. Finished ones cost no more work.
            chosen = done.byte().argsort(dim=1, stable=True)[:, :left]
            search.keep(chosen)
            ids, done, limits, sentence = (values.gather(1, chosen) for values in (ids, done, limits, sentence))
    return result


@torch.no_grad()
def beam(
    stack: Stack,
    source: Tensor,
    place: Layout,
    limits: Tensor,
    begin: int,
    end: int,
    width: int = 5,
    penalty: float = 1.0,
) -> Tensor:
    """Return the best sentences of a beam search, (members, sentences, length).

    Sentences are ranked by their log probability divided by their length to the power of `penalty`.
    """
    members, sentences = limits.shape
    length, rows = int(limits.max()) + 1, members * sentences
    device = limits.device
    search = _Search(stack, source, place, length)
    search.cache = search.cache.reordered(torch.arange(rows, device=device).repeat_interleave(width))
    scores = torch.full((rows, width), float("-inf"), device=device)
    scores[:, 0] = 0.0
    ids = torch.full((rows, width), begin, device=device)
    done = torch.zeros_like(ids, dtype=torch.bool)
    lengths = torch.zeros_like(ids)
    result = torch.full((rows, width, length), end, dtype=torch.int64, device=device)
    flat_limits = limits.flatten()[:, None]
    for at in range(length):
        following = search.step(ids.view(members, -1), at).float().log_softmax(dim=-1).view(rows, width, -1)
        vocabulary = following.shape[-1]
        only_end = torch.full((vocabulary,), float("-inf"), device=device)
        only_end[end] = 0.0
        # A finished beam does not change. A beam at its limit can only end.
        following = torch.where(done[:, :, None], only_end, following)
        stopping = (~done & (flat_limits <= at))[:, :, None]
        following = torch.where(stopping, torch.where(only_end == 0, following, only_end), following)
        grown = (lengths + (~done).long())[:, :, None].expand(-1, -1, vocabulary)
        total = scores[:, :, None] + following
        rank = total / grown.clamp(min=1).to(total.dtype) ** penalty
        best = rank.flatten(1).topk(width, dim=1).indices
        origin, ids = best // vocabulary, best % vocabulary
        scores = total.flatten(1).gather(1, best)
        lengths = grown.flatten(1).gather(1, best)
        done = done.gather(1, origin) | (ids == end)
        result = result.gather(1, origin[:, :, None].expand_as(result))
        result[:, :, at] = ids
        search.cache = search.cache.reordered((torch.arange(rows, device=device)[:, None] * width + origin).flatten())
        if bool(done.all()):
            break
    final = scores / lengths.clamp(min=1).to(scores.dtype) ** penalty
    best = final.argmax(dim=1)
    return result[torch.arange(rows, device=device), best].view(members, sentences, length)
