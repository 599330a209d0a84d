"""Rates of embedding rows: each member and row has its own, and old settings give the bits that they always gave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack
from embinit.prepared.folder import Prepared
from embinit.training.batches import Batches
from embinit.training.loop import Outcome, train
from embinit.training.step import Trainer

from .made import architecture, member, settings


def with_found(a: Architecture, seed: int) -> Member:
    """Return a member whose even rows the source had."""
    return replace(member(a, seed), found=tuple(np.arange(n) % 2 == 0 for n in a.vocabularies))


def stepped(prepared: Prepared, members: list[Member], steps: int = 1, tied: bool = False, **options: object) -> Stack:
    """Return members after so many steps."""
    stack = Stack(architecture(prepared, tied=tied), members)
    training = settings(**options)
    batches = Batches(prepared, "train", training.batch)
    trainer = Trainer(stack, training, batches, 10, members)
    orders = batches.orders([one.seed for one in members], 0)
    for number in range(steps):
        trainer.step(torch.from_numpy(orders[:, number]), batches.rooms(orders)[number], number, 0)
    return stack


def longest(stack: Stack, start: Member, place: int, rows: slice, which: int = 0) -> float:
    """Return the largest change of any number in these rows."""
    weight = stack.weights[f"{stack.sides[place]}.embedding"][which].detach().numpy()
    return float(np.abs(weight - start.matrices[place])[rows].max())


EVEN, ODD = slice(4, None, 2), slice(5, None, 2)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("whole", "found"), [(1.0, 0.1), (0.5, 0.1), (2.0, 0.0), (1.0, 3.0)])
def test_found_rows_have_a_rate_of_their_own(whole: float, found: float, tied: bool, copying: Prepared) -> None:
    a, rate = architecture(copying, tied=tied), 1e-3
    # Adam's first step is as long as its rate, wherever the gradient is not tiny.
    own = with_found(a, 1)
    stack = stepped(copying, [own], tied=tied, rate=rate, embedding_rate=whole, found_rate=found)
    for place in range(2):
        assert longest(stack, own, place, EVEN) == pytest.approx(rate * whole * found, rel=5e-3)
        assert longest(stack, own, place, ODD) == pytest.approx(rate * whole, rel=5e-3)
    name = "output.bias"
    moved = (stack.weights[name] - Stack(a, [own]).weights[name]).abs().max().item()
    assert moved == pytest.approx(rate, rel=5e-3)


def test_found_rows_at_rate_zero_stay_bit_for_bit(copying: Prepared) -> None:
    a = architecture(copying)
    own = with_found(a, 1)
    stack = stepped(copying, [own], steps=8, found_rate=0.0, clip=1.0)
    for place in range(2):
        assert longest(stack, own, place, slice(0, None, 2)) == 0
        assert longest(stack, own, place, ODD) > 0


def test_rates_of_rows_follow_the_schedule(copying: Prepared) -> None:
    own = with_found(architecture(copying), 1)
    warm = stepped(copying, [own], rate=1e-3, warmup=4, found_rate=0.1)
    assert longest(warm, own, 0, EVEN) == pytest.approx(0.25e-4, rel=2e-2)
    assert longest(warm, own, 0, ODD) == pytest.approx(0.25e-3, rel=5e-3)


@pytest.mark.parametrize("whole", [1.0, 0.1])
def test_one_rate_for_all_rows_has_the_bits_of_a_parameter_group(whole: float, copying: Prepared) -> None:
    """The reference is torch's own Adam with one learning rate for the embeddings and one for the other weights."""
    a = architecture(copying)
    expected = reference(copying, member(a, 1), whole, steps=6)
    # All rows share one rate where no source is known, where `found_rate` is 1, and where every row was found.
    everything = tuple(np.ones(n, dtype=bool) for n in a.vocabularies)
    for own, options in [
        (member(a, 1), {"embedding_rate": whole, "found_rate": 0.5}),
        (with_found(a, 1), {"embedding_rate": whole}),
        (replace(member(a, 1), found=(None, None)), {"embedding_rate": whole, "found_rate": 0.0}),
        (replace(member(a, 1), found=everything), {"found_rate": whole}),
    ]:
        found = stepped(copying, [own], steps=6, **options)
        for name, weight in expected.items():
            assert torch.equal(found.weights[name], weight), name


def reference(prepared: Prepared, own: Member, whole: float, steps: int) -> dict[str, Tensor]:
    """Return the weights after so many steps of torch's Adam over two parameter groups."""
    training = settings()
    stack = Stack(architecture(prepared), [own])
    batches = Batches(prepared, "train", training.batch)
    trainer = Trainer(stack, training, batches, 10)
    embeddings = [weight for name, weight in stack.weights.items() if name.endswith(".embedding")]
    others = [weight for name, weight in stack.weights.items() if not name.endswith(".embedding")]
    groups = [
        {"params": embeddings, "lr": training.rate * whole, "factor": whole},
        {"params": others, "lr": training.rate, "factor": 1.0},
    ]
    trainer.adam = torch.optim.Adam(groups, betas=training.betas, eps=training.epsilon, fused=True)
    orders = batches.orders([own.seed], 0)
    for number in range(steps):
        trainer.step(torch.from_numpy(orders[:, number]), batches.rooms(orders)[number], number, 0)
    return dict(stack.weights)


def assorted(a: Architecture) -> list[tuple[Member, dict[str, float]]]:
    """Return members that differ in the rates of their rows; one has no row that a source had."""
    return [
        (with_found(a, 1), {"embedding_rate": 1.0, "found_rate": 1.0}),
        (with_found(a, 1), {"embedding_rate": 0.1, "found_rate": 1.0}),
        (with_found(a, 1), {"embedding_rate": 1.0, "found_rate": 0.1}),
        (with_found(a, 2), {"embedding_rate": 0.5, "found_rate": 0.0}),
        (member(a, 2), {"embedding_rate": 0.5, "found_rate": 0.0}),
    ]


def trained(prepared: Prepared, members: list[tuple[Member, dict[str, float]]]) -> Outcome:
    options = [settings(epochs=2, clip=1.0, warmup=5, frozen_epochs=0, **rates) for _, rates in members]
    return train(prepared, architecture(prepared), [own for own, _ in members], options)


def test_alone_and_beside_members_of_other_rates_the_bits_are_the_same(copying: Prepared) -> None:
    members = assorted(architecture(copying))
    together = trained(copying, members)
    for place, own in enumerate(members):
        alone = trained(copying, [own])
        assert alone.members[0].history == together.members[place].history
        for name, weight in alone.stack.weights.items():
            assert torch.equal(weight[0], together.stack.weights[name][place])
    assert len({repr(one.history) for one in together.members}) == len(members)


@pytest.mark.usefixtures("side_by_side")
def test_members_of_different_rates_that_share_a_stack_learn_as_those_apart(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = assorted(architecture(copying))
    together = trained(copying, members)
    monkeypatch.undo()
    apart = trained(copying, members)
    for one, other in zip(together.members, apart.members, strict=True):
        for here, there in zip(one.history, other.history, strict=True):
            assert here == pytest.approx(there, rel=1e-3)


def test_frozen_epochs_come_before_rates_of_rows(copying: Prepared) -> None:
    a = architecture(copying)
    history = (
        train(copying, a, [with_found(a, 1)], settings(epochs=2, frozen_epochs=1, found_rate=0.1)).members[0].history
    )
    assert [record["update, source"] > 0 for record in history] == [False, True]
