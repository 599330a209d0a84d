"""Updates of members that share a stack and differ in their rates, schedules, weight decay, clipping or frozen epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from embinit.models.kernels import operations
from embinit.models.model import Stack
from embinit.training.options import Training


class MixedUpdates:
    """Adam with a rate, a decay, a largest norm and a number of steps for each member.

    A captured step reads tensors at fixed addresses; `set` changes their values between steps.

    Parameters
    ----------
    stack
        The members' weights.
    trainings
        The settings of each member.
    factors
        The factor on the rate of each embedding: a number, or a float64 tensor (members, rows, 1).
    """

    def __init__(self, stack: Stack, trainings: Sequence[Training], factors: Mapping[str, float | Tensor]) -> None:
        self._stack, self._trainings = stack, trainings
        self._betas, self._epsilon = trainings[0].betas, trainings[0].epsilon
        device = stack.seeds.device
        #: the rate of each member, (members,), or of each of its rows, (members, rows, 1)
        self._rates: dict[Tensor, Tensor] = {}
        #: the factor of each tensor of rates, and whether it is of embeddings; a step copies few tensors to the device
        self._factors: dict[Tensor, tuple[float | Tensor, bool]] = {}
        shared: dict[tuple[float, bool], Tensor] = {}
        for name, weight in stack.weights.items():
            factor, is_embedding = factors.get(name, 1.0), name.endswith(".embedding")
            if isinstance(factor, Tensor):
                rate = torch.zeros_like(factor, dtype=torch.float32)
            else:
                rate = shared.setdefault((factor, is_embedding), torch.zeros(stack.members, device=device))
            self._rates[weight], self._factors[rate] = rate, (factor, is_embedding)
        self._decays = {
            weight: torch.tensor(
                [training.weight_decay * decays(name, training.decay_embeddings) for training in trainings],
                device=device,
            )
            for name, weight in stack.weights.items()
            if any(training.weight_decay and decays(name, training.decay_embeddings) for training in trainings)
        }
        clips = [training.clip for training in trainings]
        self._clips = torch.tensor(clips, device=device) if any(clips) else None
        self._embeddings = [weight for name, weight in stack.weights.items() if name.endswith(".embedding")]
        #: whether each member's embeddings are frozen, here and on the device
        self.frozen = [False] * stack.members
        self._held = torch.zeros(stack.members, dtype=torch.bool, device=device)
        self._last: tuple[list[float], list[bool]] | None = None

    def set(self, number: int, steps: int, epoch: int) -> None:
        """Set each member's rate in a step, and whether its embeddings are frozen."""
        rates = [training.rate_at(number, steps) for training in self._trainings]
        self.frozen = [training.frozen_in(epoch) for training in self._trainings]
        if (rates, self.frozen) == self._last:
            return
        self._last = (rates, self.frozen)
        device = self._held.device
        each = torch.tensor(rates, dtype=torch.float64, device=device)
        self._held.copy_(torch.tensor(self.frozen, device=device))
        for rate, (factor, is_embedding) in self._factors.items():
            rate.copy_(_spread(each, factor) * factor if isinstance(factor, Tensor) else each * factor)
            if is_embedding:
                rate.masked_fill_(_spread(self._held, rate), 0.0)

    def update(self, adam: torch.optim.Adam) -> None:
        """Move all weights that have a gradient by one step; `adam` holds their moments.

        A frozen embedding has no gradient and no step, so that its moments begin when it is thawed.
        """
        for weight in self._embeddings:
            if weight.grad is not None:
                weight.grad.masked_fill_(_spread(self._held, weight), 0.0)
        if self._clips is not None:
            clip(self._stack, self._clips)
        moving = (~self._held).float()
        all_members = torch.ones_like(moving)
        with torch.no_grad():
            for weight, rate in self._rates.items():
                if weight.grad is not None:
                    _, is_embedding = self._factors[rate]
                    self._move(weight, weight.grad, adam.state[weight], moving if is_embedding else all_members)

    def _move(self, weight: Tensor, grad: Tensor, state: dict[str, Tensor], moving: Tensor) -> None:
        if not state:
            state["step"] = torch.zeros_like(moving)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        state["step"] += moving
        # A member that has made no step yet has no moments either: any number of steps gives it an update of zero.
        step, rate = state["step"].clamp(min=1), self._rates[weight]
        first, second = state["exp_avg"], state["exp_avg_sq"]
        if weight in self._decays:
            weight.mul_(1 - _spread(rate, weight) * _spread(self._decays[weight], weight))
        if operations.usable(weight):
            operations.adam(weight, grad, first, second, step, rate, self._betas, self._epsilon)
            return
        first.lerp_(grad, 1 - self._betas[0])
        second.mul_(self._betas[1]).addcmul_(grad, grad, value=1 - self._betas[1])
        sizes, roots = (_spread(1 - beta**step, weight) for beta in self._betas)
        weight.sub_(_spread(rate, weight) / sizes * first / ((second / roots).sqrt() + self._epsilon))


def _spread(values: Tensor, weight: Tensor) -> Tensor:
    """Return a tensor of the first dimensions of a weight with a dimension of 1 for each of the others."""
    return values.view(*values.shape, *[1] * (weight.dim() - values.dim()))


def decays(name: str, embeddings: bool) -> bool:
    """Return whether AdamW's weight decay applies to a weight: to matrices, and to embeddings and positions if asked."""
    side, _, last = name.rpartition(".")
    if last in ("embedding", "positions"):
        return embeddings
    return last == "weight" and not side.endswith("norm")


def clip(stack: Stack, largest: float | Tensor) -> None:
    """Shorten each member's gradient to a norm of at most `largest`; members do not see each other's.

    `largest` is one number for all members, or (members,).
    """
    gradients = [weight.grad for weight in stack.parameters() if weight.grad is not None]
    squares = torch.stack([gradient.flatten(1).square().sum(dim=1) for gradient in gradients]).sum(dim=0)  # (members,)
    factor = (largest / (squares.sqrt() + 1e-6)).clamp(max=1.0)
    if isinstance(largest, Tensor):
        factor = torch.where(largest > 0, factor, 1.0)
    for gradient in gradients:
        gradient.mul_(factor.view(-1, *[1] * (gradient.dim() - 1)))
