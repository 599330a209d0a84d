"""The loop: epochs of all members side by side, each keeping its own best weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.models.decoding import greedy
from embinit.models.model import Member, Stack
from embinit.prepared.reading import Prepared
from embinit.training.batches import BEGIN, END, Batches
from embinit.training.options import Training
from embinit.training.step import Trainer, losses, predictions

#: Called after each epoch with its number and every member's record of it.
Progress = Callable[[int, list[dict[str, float]]], None]

_EVALUATION_BATCH = 128


@dataclass
class Trained:
    """What became of one member."""

    seed: int
    #: one record an epoch: train loss, validation loss, accuracy where there are labels, σ of the embeddings
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    diverged: bool = False


@dataclass
class Outcome:
    """Members after training: the stack with each member's best weights, and what became of each."""

    stack: Stack
    members: list[Trained]
    seconds: float


def train(
    prepared: Prepared,
    architecture: Architecture,
    members: Sequence[Member],
    training: Training,
    device: Any = "cpu",
    progress: Progress = lambda *_: None,
) -> Outcome:
    """Return members trained in lockstep; the best epoch is that of lowest validation loss, or of best accuracy."""
    _fits(prepared, architecture)
    torch.backends.cuda.matmul.allow_tf32 = training.precision == "tf32"
    stack = Stack(architecture, members, device)
    batches = Batches(prepared, "train", training.batch, device)
    valid = Batches(prepared, "valid", _EVALUATION_BATCH, device)
    trainer = Trainer(stack, training, len(batches) * training.epochs)
    outcome = [Trained(member.seed) for member in members]
    best = {name: weight.detach().clone() for name, weight in stack.weights.items()}
    start, number = time.perf_counter(), 0
    for epoch in range(training.epochs):
        sums = torch.zeros(2, len(members), dtype=torch.float64, device=device)
        for batch in batches.shuffled([member.seed for member in members], epoch):
            total, count = trainer.step(batch, number, epoch)
            sums += torch.stack((total, count))
            number += 1
        records = _records(stack, sums, evaluate(stack, valid))
        for place, (member, record) in enumerate(zip(outcome, records, strict=True)):
            member.history.append(record)
            member.diverged |= not np.isfinite(record["train loss"])
            if _better(member, record):
                member.best_epoch = epoch + 1
                for name, weight in stack.weights.items():
                    best[name][place] = weight.detach()[place]
        progress(epoch + 1, records)
    with torch.no_grad():
        for name, weight in stack.weights.items():
            weight.copy_(best[name])
            weight.requires_grad_(True)
    return Outcome(stack, outcome, time.perf_counter() - start)


def _fits(prepared: Prepared, architecture: Architecture) -> None:
    """Raise where a model is not made for a task: a wrong size would read another member's rows."""
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    if prepared.task != architecture.task or sizes != architecture.vocabularies:
        raise EmbinitError(
            f"{prepared.path} is a {prepared.task} with vocabularies of {sizes}, the model is made for a "
            f"{architecture.task} with {architecture.vocabularies}"
        )
    labels = len(prepared.manifest["labels"])
    if prepared.task == "classification" and labels != architecture.classes:
        raise EmbinitError(f"{prepared.path} has {labels} labels, the model {architecture.classes} classes")
    longest = max(side["longest"] for split in prepared.manifest["splits"].values() for side in split["sides"].values())
    if longest + 2 > architecture.length:
        raise EmbinitError(
            f"{prepared.path} has a sentence of {longest} tokens, with <bos> and <eos> {longest + 2}; "
            f"the model's length is {architecture.length}"
        )


def _better(member: Trained, record: dict[str, float]) -> bool:
    """Return whether the newest record is the member's best so far; one whose loss is NaN never is."""
    sound = [one for one in member.history if np.isfinite(one["valid loss"])]
    if not sound or sound[-1] is not record:
        return False
    if "accuracy" in record:
        return all(record["accuracy"] > one["accuracy"] for one in sound[:-1])
    return all(record["valid loss"] < one["valid loss"] for one in sound[:-1])


@torch.no_grad()
def evaluate(stack: Stack, batches: Batches) -> Tensor:
    """Return summed loss, predictions, right answers and sentences of each member, (4, members)."""
    sums = torch.zeros(4, stack.members, dtype=torch.float64, device=stack.seeds.device)
    for batch in batches.straight(stack.members):
        logits, asked, there = predictions(stack, batch, None)
        total, count = losses(logits, asked, there)
        right = torch.zeros_like(total)
        if batch.labels is not None:
            right = ((logits.argmax(dim=-1) == asked) & there).sum(dim=1).to(total.dtype)
        sums += torch.stack((total, count.to(total.dtype), right, batch.present.sum(dim=1).to(total.dtype)))
    return sums


def _records(stack: Stack, trained: Tensor, valid: Tensor) -> list[dict[str, float]]:
    """Return each member's record of an epoch; the only place where the loop waits for the device."""
    spreads = {
        name: w.detach().flatten(1).std(dim=1) for name, w in stack.weights.items() if name.endswith(".embedding")
    }
    columns = {
        "train loss": trained[0] / trained[1],
        "valid loss": valid[0] / valid[1],
        **({"accuracy": valid[2] / valid[3]} if stack.architecture.task == "classification" else {}),
        **{f"σ, {name.partition('.')[0]}": spread for name, spread in spreads.items()},
    }
    values = {name: column.tolist() for name, column in columns.items()}
    return [{name: value[i] for name, value in values.items()} for i in range(stack.members)]


@torch.no_grad()
def translations(stack: Stack, prepared: Prepared, split: str, device: Any = "cpu") -> list[list[list[str]]]:
    """Return for each member the target tokens of each sentence, found by greedy search.

    A translation may have twice as many tokens as the source, its <bos> and <eos> counted, and ten more.
    """
    vocabulary = prepared.vocabularies["target"].tokens
    longest = stack.architecture.length - 2
    found: list[list[list[str]]] = [[] for _ in range(stack.members)]
    for batch in Batches(prepared, split, _EVALUATION_BATCH, device).straight(stack.members):
        source = batch.sides[0]
        sizes = source.place.mask.sum(dim=1).view(stack.members, -1)
        limits = torch.where(batch.present, (2 * sizes + 10).clamp(max=longest), 0)
        ids = greedy(stack, source.ids, source.place, limits, BEGIN, END).tolist()
        for member in range(stack.members):
            for row in ids[member][: batch.rows.shape[1]]:
                words = row[: row.index(END)] if END in row else row
                found[member].append([vocabulary[i] for i in words])
    return found
