"""One step: each member's gradient is its own, and what is frozen stays bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from embinit.models.model import Member, Stack
from embinit.prepared.folder import Prepared
from embinit.training.batches import Batches
from embinit.training.loop import train
from embinit.training.step import Trainer, clip

from .made import architecture, member, settings


def stepped(prepared: Prepared, members: list[Member], steps: int = 1, **options: object) -> Stack:
    """Return members after so many steps."""
    stack = Stack(architecture(prepared), members)
    training = settings(**options)
    batches = Batches(prepared, "train", training.batch)
    trainer = Trainer(stack, training, batches, 10, members)
    orders = batches.orders([one.seed for one in members], 0)
    for number in range(steps):
        trainer.step(torch.from_numpy(orders[:, number]), batches.rooms(orders)[number], number, 0)
    return stack


def norms(gradients: list[Tensor]) -> Tensor:
    return torch.stack([gradient.flatten(1).square().sum(dim=1) for gradient in gradients]).sum(dim=0).sqrt()


def test_clipping_is_each_members_own(copying: Prepared) -> None:
    a = architecture(copying)
    stack = stepped(copying, [member(a, 1), member(a, 2)])
    with torch.no_grad():
        for weight in stack.parameters():
            assert weight.grad is not None
            weight.grad[1] *= 100
    before = [w.grad.clone() for w in stack.parameters() if w.grad is not None]
    largest = float(norms(before)[0]) * 2
    clip(stack, largest)
    after = [w.grad for w in stack.parameters() if w.grad is not None]
    assert all(torch.equal(x[0], y[0]) for x, y in zip(before, after, strict=True))
    assert norms(after)[1].item() == pytest.approx(largest, rel=1e-4)


def test_rows_that_are_frozen_stay_bit_for_bit_while_the_others_move(copying: Prepared) -> None:
    a = architecture(copying)
    kept = np.arange(a.vocabularies[0]) % 2 == 0
    # One side of one member; the target of it and both sides of the other are free.
    members = [replace(member(a, 1), frozen=(kept, None)), member(a, 2)]
    stack = stepped(copying, members, steps=12)
    moved = {
        (i, side): (stack.weights[f"{side}.embedding"][i].detach().numpy() != one.matrices[place]).any(axis=1)
        for i, one in enumerate(members)
        for place, side in enumerate(("source", "target"))
    }
    seen = np.array([False, False, True, True, *[True] * 12])  # <unk> and <pad> are not among the training ids
    assert (moved[0, "source"] == (seen & ~kept)).all()
    assert moved[1, "source"].tolist() == seen.tolist()
    assert moved[0, "target"][4:].all()
    assert moved[1, "target"][4:].all()
    assert kept[seen].any()


def test_frozen_rows_have_no_part_in_clipping(copying: Prepared) -> None:
    a = architecture(copying)
    everything = tuple(np.ones(n, dtype=bool) for n in a.vocabularies)
    by_row = stepped(copying, [replace(member(a, 1), frozen=everything)], steps=3, clip=0.1)
    whole = stepped(copying, [member(a, 1)], steps=3, clip=0.1, frozen_epochs=-1)
    for name, weight in whole.weights.items():
        assert torch.allclose(weight, by_row.weights[name], rtol=1e-5, atol=1e-7), name


def test_frozen_embeddings_stay_bit_for_bit(copying: Prepared) -> None:
    a = architecture(copying)
    own = member(a, 1)
    frozen = train(copying, a, [own], settings(epochs=2, frozen_epochs=-1))
    for place, side in enumerate(("source", "target")):
        assert (frozen.stack.weights[f"{side}.embedding"][0].detach().numpy() == own.matrices[place]).all()
    assert frozen.members[0].best_epoch == 2  # the others learned


def test_embeddings_are_thawed_after_so_many_epochs(copying: Prepared) -> None:
    a = architecture(copying)
    history = train(copying, a, [member(a, 1)], settings(epochs=3, frozen_epochs=2)).members[0].history
    for side in ("source", "target"):
        assert [record[f"update, {side}"] > 0 for record in history] == [False, False, True]
    frozen = train(copying, a, [member(a, 1)], settings(epochs=2, frozen_epochs=-1)).members[0].history
    assert frozen == history[:2]


@pytest.mark.parametrize("factor", [0.0, 0.25, 4.0])
def test_embeddings_have_a_rate_of_their_own(factor: float, copying: Prepared) -> None:
    a = architecture(copying)
    rate = 1e-3
    # Adam's first step is as long as its rate, wherever the gradient is not tiny.
    stack, start = stepped(copying, [member(a, 1)], rate=rate, embedding_rate=factor), Stack(a, [member(a, 1)])
    for name, weight in stack.weights.items():
        longest = (weight - start.weights[name]).abs().max().item()
        expected = rate * factor if name.endswith(".embedding") else rate
        assert longest == pytest.approx(expected, rel=2e-3), name


def test_rates_follow_the_steps_number(copying: Prepared) -> None:
    a = architecture(copying)
    name = "output.bias"
    start = Stack(a, [member(a, 1)]).weights[name]
    warm = stepped(copying, [member(a, 1)], rate=1e-3, warmup=4).weights[name]
    assert (warm - start).abs().max().item() == pytest.approx(0.25e-3, rel=2e-3)
