"""Evaluate members on a split: loss, accuracy, BLEU, translations and predicted labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embinit.models.architecture import Architecture
from embinit.models.decoding import beam, greedy
from embinit.models.model import Stack
from embinit.prepared.folder import Prepared
from embinit.training.batches import BEGIN, END, Batch, Batches
from embinit.training.blocks import TextBatches
from embinit.training.options import Training
from embinit.training.scoring import TokenBleu
from embinit.training.step import losses, read
from embinit.types import TEXT_TASKS


def _batch(members: int, device: Any) -> int:
    """Return the number of sentences of a batch: large for a card, small for a CPU."""
    return 128 if torch.device(device).type == "cpu" else min(512, max(64, 10_240 // members))


def _text_batches(
    prepared: Prepared, split: str, members: int, device: Any, length: int, training: Training
) -> TextBatches:
    tokens = 2048 if torch.device(device).type == "cpu" else min(16_384, max(1024, 65_536 // members))
    batch = max(1, tokens // length)
    return TextBatches(prepared, split, batch, length, device, training.stride, training.mask_rate)


class Validation:
    """A split on which members are evaluated after each epoch."""

    def __init__(
        self, prepared: Prepared, architecture: Architecture, training: Training, members: int, device: Any
    ) -> None:
        self._task = prepared.task
        self._batches: Batches | TextBatches
        if prepared.task in TEXT_TASKS:
            self._batches = _text_batches(prepared, "valid", members, device, architecture.length, training)
        else:
            self._batches = Batches(prepared, "valid", _batch(members, device), device)
        self._bleu: TokenBleu | None = None
        if prepared.task == "translation":
            self._bleu = TokenBleu(prepared.reference_tokens("valid"), prepared.vocabularies["target"].tokens)

    def __call__(self, stack: Stack, with_bleu: bool) -> dict[str, list[float]]:
        """Return each member's loss, and its accuracy or BLEU."""
        sums = evaluate(stack, self._batches)
        columns = {"valid loss": (sums[0] / sums[1]).tolist()}
        if self._task == "classification":
            columns["accuracy"] = (sums[2] / sums[3]).tolist()
        elif self._task == "masked_language_model":
            columns["masked accuracy"] = (sums[2] / sums[1]).tolist()
        elif self._bleu is not None and with_bleu:
            assert isinstance(self._batches, Batches)
            columns["bleu"] = [self._bleu(ids) for ids in translated(stack, self._batches)]
        return columns


@torch.no_grad()
def evaluate(stack: Stack, batches: Batches | TextBatches) -> Tensor:
    """Return summed loss, predictions, right answers and sentences (or blocks) of each member, (4, members)."""
    answering = stack.architecture.task in ("classification", "masked_language_model")
    sums = torch.zeros(4, stack.members, dtype=torch.float64, device=stack.seeds.device)
    for batch in batches.each(batches.straight(stack.members)):
        values, asked, there = read(stack, batch, None)
        right = torch.zeros(stack.members, device=sums.device)
        if answering:
            right = ((stack.output(values).argmax(dim=-1) == asked) & there).sum(dim=1)
        total, count = losses(stack, values, asked, there)
        sums += torch.stack((total, count, right, batch.present.sum(dim=1)))
    return sums


def text_sums(stack: Stack, prepared: Prepared, split: str, training: Training, device: Any = "cpu") -> Tensor:
    """Return each member's summed loss in nats, predictions and right answers on a split of a running text, (3, members)."""
    length = stack.architecture.length
    return evaluate(stack, _text_batches(prepared, split, stack.members, device, length, training))[:3]


@torch.no_grad()
def translated(stack: Stack, batches: Batches, width: int = 1) -> list[list[list[int]]]:
    """Return for each member the target ids of each sentence, by greedy search or a beam of some width.

    A translation may have twice as many tokens as the source, its <bos> and <eos> counted, and ten more.
    """
    decoded: list[list[list[int]]] = [[] for _ in range(stack.members)]
    longest = stack.architecture.length - 2
    for batch in batches.each(batches.straight(stack.members)):
        source = batch.sides[0]
        limits = torch.where(batch.present, (2 * source.place.lengths + 10).clamp(max=longest), 0)
        ids = _searched(stack, batch, limits, width).cpu().numpy()
        ends = np.where((ids == END).any(axis=2), (ids == END).argmax(axis=2), ids.shape[2])
        count = int(batch.present[0].sum())
        for member in range(stack.members):
            decoded[member] += [ids[member, i, : ends[member, i]].tolist() for i in range(count)]
    return decoded


def _searched(stack: Stack, batch: Batch, limits: Tensor, width: int) -> Tensor:
    source = batch.sides[0]
    if width == 1:
        return greedy(stack, source.ids, source.place, limits, BEGIN, END)
    return beam(stack, source.ids, source.place, limits, BEGIN, END, width)


def translations(
    stack: Stack, prepared: Prepared, split: str, device: Any = "cpu", width: int = 1
) -> list[list[list[str]]]:
    """Return for each member the target tokens of each sentence of a split."""
    vocabulary = prepared.vocabularies["target"].tokens
    ids = translated(stack, Batches(prepared, split, _batch(stack.members, device), device), width)
    return [[[vocabulary[i] for i in sentence] for sentence in member] for member in ids]


@torch.no_grad()
def answers(stack: Stack, prepared: Prepared, split: str, device: Any = "cpu") -> npt.NDArray[np.int64]:
    """Return the label that each member gives each sentence of a split, (members, sentences)."""
    batches = Batches(prepared, split, _batch(stack.members, device), device)
    labels = [
        stack.output(read(stack, batch, None)[0]).argmax(dim=-1)
        for batch in batches.each(batches.straight(stack.members))
    ]
    return torch.cat(labels, dim=1)[:, : batches.sentences].cpu().numpy()
