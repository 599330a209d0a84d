"""One step of all members: batch, loss, gradients, Adam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from embinit.models.kernels import operations
from embinit.models.model import Member, Stack
from embinit.training.batches import Batch, Batches, Rooms
from embinit.training.blocks import TextBatches, masked_batch
from embinit.training.cross_entropy import cross_entropy
from embinit.training.mixed import MixedUpdates, clip, decays
from embinit.training.options import OF_UPDATES, Training, settings_of_each
from embinit.training.row_rates import embedding_factors


def read(stack: Stack, batch: Batch, step: Tensor | int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the inputs of the output layer, the targets, and flags of existing places.

    (members, places, dim), and (members, places) twice; a place is a target token, a sentence of a classification, or a
    token of a running text.
    """
    side = batch.sides[0]
    if batch.labels is not None:
        return stack.classify(side.ids, side.place, step), batch.labels, batch.present
    if batch.scored is not None:
        if stack.architecture.task == "language_model":
            return stack.model_text(side.ids, side.place, step), side.following, batch.scored
        masked = masked_batch(batch, stack.seeds, step, stack.architecture.outputs)
        return stack.model_text(masked.ids, side.place, step, masked.chosen), masked.asked, masked.there
    source, target = batch.sides
    values = stack.translate(source.ids, source.place, target.ids, target.place, step)
    return values, target.following, target.place.real


def losses(
    stack: Stack, values: Tensor, asked: Tensor, there: Tensor, smoothing: float | Tensor = 0.0
) -> tuple[Tensor, Tensor]:
    """Return the summed loss and the number of predictions of each member, (members,) each.

    `smoothing` is one number for all members, or (members,).
    """
    if operations.usable(values):
        logits, bias = stack.unbiased_output(values)
        if not isinstance(smoothing, Tensor):
            smoothing = torch.full((len(values),), smoothing, device=values.device)
        return operations.entropy(logits, bias, asked, there, smoothing).sum(dim=1), there.sum(dim=1)
    logits = stack.output(values)
    if isinstance(smoothing, Tensor):
        each = _smoothed_entropy(logits.float(), asked, smoothing[:, None])
    elif logits.dtype == torch.bfloat16 and logits.device.type == "cpu":
        each = cross_entropy(logits.flatten(0, 1), asked.flatten(), smoothing)
    else:
        flat = logits.flatten(0, 1).float()
        each = F.cross_entropy(flat, asked.flatten(), reduction="none", label_smoothing=smoothing)
    # Values at places without a token are replaced instead of multiplied by zero, because they may be NaN.
    return torch.where(there, each.view_as(asked), 0.0).sum(dim=1), there.sum(dim=1)


def _smoothed_entropy(logits: Tensor, asked: Tensor, smoothing: Tensor) -> Tensor:
    """Return the cross-entropy of each place, (members, places), with the label smoothing of each member."""
    logs = logits.log_softmax(dim=-1)
    right = logs.gather(-1, asked[:, :, None]).squeeze(-1)
    return -((1 - smoothing) * right + smoothing * logs.mean(dim=-1))


class Trainer:
    """Members in training: their weights and Adam's state, both stacked, so that one update changes all.

    `training` holds the settings of all members, or of each. On CUDA a step is captured once for each size of batch and
    replayed from then on: the device never waits for Python.
    """

    def __init__(
        self,
        stack: Stack,
        training: Training | Sequence[Training],
        batches: Batches | TextBatches,
        steps: int,
        members: Sequence[Member] = (),
    ) -> None:
        each = settings_of_each(training, stack.members)
        self.stack, self.training, self.steps, self._batches = stack, each[0], steps, batches
        device = stack.seeds.device
        self._cuda = device.type == "cuda"
        self._embeddings = {name: weight for name, weight in stack.weights.items() if name.endswith(".embedding")}
        factors = embedding_factors(stack, each, members)
        self._trained_rows = _trained_rows(stack, members)
        if any(own.weight_decay for own in each):
            # A row that never changes does not decay.
            for name, trained in self._trained_rows.items():
                factors[name] = trained.double() * factors[name]
        #: embeddings whose rows have different rates: the factor of each row, (members, rows, 1)
        self._row_factors = {
            self._embeddings[name]: factor for name, factor in factors.items() if isinstance(factor, Tensor)
        }
        #: the rate of each row, which the CUDA kernel reads; a captured step keeps its address
        self._row_rates = {
            weight: torch.zeros_like(factor, dtype=torch.float32) for weight, factor in self._row_factors.items()
        }
        groups: list[dict[str, Any]] = [
            {"params": [weight], "factor": 1.0 if isinstance(factors[name], Tensor) else factors[name], "name": name}
            for name, weight in self._embeddings.items()
        ]
        groups += [
            {"params": [weight], "factor": 1.0, "name": name}
            for name, weight in stack.weights.items()
            if name not in self._embeddings
        ]
        self.adam = _adam(groups, self.training, device)
        #: members whose updates differ in more than the rates of their rows
        self._mixed: MixedUpdates | None = None
        if any(own.values_of(OF_UPDATES) != each[0].values_of(OF_UPDATES) for own in each):
            self._mixed = MixedUpdates(stack, each, factors)
        smoothing = [own.smoothing for own in each]
        self._smoothing = torch.tensor(smoothing, device=device) if len(set(smoothing)) > 1 else smoothing[0]
        #: summed loss and number of predictions of each member since they were last set to zero, (2, members)
        self.sums = torch.zeros(2, stack.members, dtype=torch.float64, device=device)
        self._number = torch.zeros((), dtype=torch.int64, device=device)
        self._rows = torch.zeros(stack.members, batches.batch, dtype=torch.int64, device=device)
        self._rate, self._frozen = -1.0, False
        self._graphs: dict[tuple[Rooms, bool], torch.cuda.CUDAGraph | None] = {}
        self._pool: Any = None

    def step(self, rows: Tensor, rooms: Rooms, number: int, epoch: int) -> None:
        """Train on one batch: these rows of the split, (members, batch), in so much room."""
        self._set(number, epoch)
        self._rows.copy_(rows)
        self._number.fill_(number)
        if not self._cuda:
            self._advance(rooms)
            return
        key = (rooms, self._frozen)
        graph = self._graphs.get(key)
        if graph is not None:
            graph.replay()
        elif key not in self._graphs:
            # The first step of a size is an ordinary one, in which kernels are compiled and libraries initialized.
            self._advance(rooms)
            self._graphs[key] = None
        else:
            self._graphs[key] = self._captured(rooms)

    def first_step(self, steps: Tensor) -> Tensor:
        """Return Adam's count of steps of a weight that has made this number of steps, as its state holds it."""
        if self._mixed is not None:
            return steps.to(self.sums.device).repeat(self.stack.members)
        return steps.to(self.sums.device) if self._cuda else steps.clone()

    def _captured(self, rooms: Rooms) -> torch.cuda.CUDAGraph:
        self.adam.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()  # the captured step needs the memory of the ordinary step again, in its own pool
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._advance(rooms)
        self.adam.zero_grad(set_to_none=True)
        self._pool = graph.pool()
        graph.replay()
        return graph

    def _set(self, number: int, epoch: int) -> None:
        """Set the rate of a step, and whether embeddings are trained in it."""
        rate = self.training.rate_at(number, self.steps)
        if self._mixed is not None:
            self._mixed.set(number, self.steps, epoch)
        elif rate != self._rate:
            self._rate = rate
            for group in self.adam.param_groups:
                own = rate * group["factor"]
                if self._cuda:
                    group["lr"].fill_(own)
                else:
                    group["lr"] = own
            for weight, factors in self._row_factors.items():
                self._row_rates[weight].copy_(rate * factors)
        self._frozen = self.training.frozen_in(epoch) if self._mixed is None else all(self._mixed.frozen)
        for weight in self._embeddings.values():
            weight.requires_grad_(not self._frozen)

    def _advance(self, rooms: Rooms) -> None:
        batch = self._batches.made(self._rows, rooms)
        total, count = losses(self.stack, *read(self.stack, batch, self._number), self._smoothing)
        self.adam.zero_grad(set_to_none=True)
        # The sum of the members' means has each member's own gradient, because no weight is shared.
        (total / count.clamp(min=1)).sum().backward()  # type: ignore[no-untyped-call]
        for name, trained in self._trained_rows.items():
            gradient = self._embeddings[name].grad
            if gradient is not None:
                gradient.mul_(trained)
        if self._mixed is not None:
            self._mixed.update(self.adam)
        else:
            if self.training.clip > 0:
                clip(self.stack, self.training.clip)
            self._update()
        self.sums += torch.stack((total.detach(), count))

    def _update(self) -> None:
        """Move all weights that have a gradient by one step of Adam."""
        moved = [
            (weight, group) for group in self.adam.param_groups for weight in group["params"] if weight.grad is not None
        ]
        # The first step of torch creates the moments. After that, one kernel for each weight is faster.
        if not self._cuda or not all(operations.usable(weight) and self.adam.state[weight] for weight, _ in moved):
            self._step_by_rows()
            return
        states = [self.adam.state[weight] for weight, _ in moved]
        torch._foreach_add_([state["step"] for state in states], 1)
        for (weight, group), state in zip(moved, states, strict=True):
            moments = (state["exp_avg"], state["exp_avg_sq"])
            rate = self._row_rates.get(weight, group["lr"])
            if group["weight_decay"]:
                weight.detach().mul_(1 - rate * group["weight_decay"])
            operations.adam(weight, weight.grad, *moments, state["step"], rate, group["betas"], group["eps"])

    def _step_by_rows(self) -> None:
        """Step torch's Adam, then shorten (or lengthen) the update of each row whose rate is not that of its group."""
        before = {weight: weight.detach().clone() for weight in self._row_factors if weight.grad is not None}
        self.adam.step()
        with torch.no_grad():
            for weight, start in before.items():
                # A factor of 1 gives Adam's result and a factor of 0 the start, both bit for bit.
                torch.lerp(start, weight, self._row_factors[weight].float(), out=weight)


def _adam(groups: list[dict[str, Any]], training: Training, device: torch.device) -> torch.optim.Adam:
    """Return Adam over the groups, or AdamW if weights decay; groups of one factor and one decay are joined."""
    cuda = device.type == "cuda"
    rate: Any = torch.tensor(training.rate, device=device) if cuda else training.rate
    joined: dict[tuple[float, float, bool], dict[str, Any]] = {}
    for group in groups:
        decay = training.weight_decay if decays(group["name"], training.decay_embeddings) else 0.0
        own = {"params": [], "factor": group["factor"], "weight_decay": decay, "lr": rate.clone() if cuda else rate}
        key = (group["factor"], decay, group["name"].endswith(".embedding"))
        joined.setdefault(key, own)["params"] += group["params"]
    kind = torch.optim.AdamW if training.weight_decay else torch.optim.Adam
    return kind(list(joined.values()), betas=training.betas, eps=training.epsilon, fused=True, capturable=cuda)


def _trained_rows(stack: Stack, members: Sequence[Member]) -> dict[str, Tensor]:
    """Return 0 for rows that never change and 1 for the others, (members, rows, 1); nothing if all rows change."""
    found = {}
    for place, side in enumerate(stack.sides):
        masks = [member.frozen[place] if member.frozen is not None else None for member in members]
        if any(mask is not None for mask in masks):
            rows = stack.architecture.vocabularies[place]
            kept = [torch.zeros(rows) if mask is None else torch.from_numpy(mask.astype(np.float32)) for mask in masks]
            found[f"{side}.embedding"] = (1 - torch.stack(kept)).unsqueeze(-1).to(stack.seeds.device)
    return found
