"""One step of all members: loss, gradients, Adam."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from embinit.models.model import Stack
from embinit.training.batches import Batch
from embinit.training.options import Training


def predictions(stack: Stack, batch: Batch, step: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, what was asked for, and where something was: (members, places, outputs), (members, places) twice."""
    if batch.labels is not None:
        side = batch.sides[0]
        return stack.classify(side.ids, side.place, step), batch.labels, batch.present
    source, target = batch.sides
    logits = stack.translate(source.ids, source.place, target.ids, target.place, step)
    return logits, target.following, target.place.real


def losses(logits: Tensor, asked: Tensor, there: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Return the summed loss and the number of predictions of each member, (members,) each."""
    each = F.cross_entropy(logits.flatten(0, 1), asked.flatten(), reduction="none", label_smoothing=smoothing)
    # What stands where no token does is set aside, not multiplied: it may be anything.
    return torch.where(there, each.view_as(asked), 0.0).sum(dim=1), there.sum(dim=1)


class Trainer:
    """Members in training: their weights and Adam's state, both stacked, so that one update serves all."""

    def __init__(self, stack: Stack, training: Training, steps: int) -> None:
        self.stack, self.training, self.steps = stack, training, steps
        named = dict(stack.weights)
        self._embeddings = [weight for name, weight in named.items() if name.endswith(".embedding")]
        others = [weight for name, weight in named.items() if not name.endswith(".embedding")]
        fused = stack.seeds.device.type == "cuda"
        self.adam = torch.optim.Adam(
            [{"params": self._embeddings, "factor": training.embedding_rate}, {"params": others, "factor": 1.0}],
            lr=training.rate, betas=training.betas, eps=training.epsilon, fused=fused,
        )  # fmt: skip

    def step(self, batch: Batch, number: int, epoch: int) -> tuple[Tensor, Tensor]:
        """Train on one batch; return the summed loss and the number of predictions of each member."""
        frozen = self.training.frozen_epochs < 0 or epoch < self.training.frozen_epochs
        for weight in self._embeddings:
            weight.requires_grad_(not frozen)
        for group in self.adam.param_groups:
            group["lr"] = self.training.rate_at(number, self.steps) * group["factor"]
        total, count = losses(*predictions(self.stack, batch, number), self.training.smoothing)
        self.adam.zero_grad(set_to_none=True)
        # Each member's mean; their sum has each member's own gradient, for no weight is shared.
        (total / count).sum().backward()  # type: ignore[no-untyped-call]
        if self.training.clip > 0:
            clip(self.stack, self.training.clip)
        self.adam.step()
        return total.detach(), count


def clip(stack: Stack, largest: float) -> None:
    """Shorten each member's gradient to a norm of at most `largest`; members do not see each other's."""
    gradients = [weight.grad for weight in stack.parameters() if weight.grad is not None]
    squares = torch.stack([gradient.flatten(1).square().sum(dim=1) for gradient in gradients]).sum(dim=0)  # (members,)
    factor = (largest / (squares.sqrt() + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))
