"""Members do not see each other: alone or among others, a member computes the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.dropout import Dropout, keys
from embinit.models.model import Member, Stack
from embinit.models.packing import blocks, capacity, layout, padded
from embinit.models.parameters import drawn, parameters
from tests.models.made import SOURCE, TARGET, architecture, batch, member, stack

LENGTHS = [[5, 3, 9], [1, 10, 2], [7, 7, 7]]


def trained(seeds: list[int], rows: list[int], steps: int = 4, poison: int | None = None) -> list[Tensor]:
    """Return the losses (members,) of a few steps of members that read these rows of LENGTHS."""
    a = architecture(dropout=0.1)
    model = Stack(a, [member(a, seed, start) for seed, start in zip(seeds, rows, strict=True)])
    if poison is not None:
        with torch.no_grad():
            model.weights["source.embedding"][poison] = float("nan")
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        (source, source_place), (target, place) = (
            batch([LENGTHS[row] for row in rows], size, seed=step) for size in (SOURCE, TARGET)
        )
        logits = model.output(model.translate(source, source_place, target, place, step))
        each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), target, reduction="none")
        loss = (each * place.real).sum(dim=1) / place.real.sum(dim=1)
        adam.zero_grad()
        loss.sum().backward()
        adam.step()
        losses.append(loss.detach())
    return losses


def test_alone_or_among_others_the_bits_are_the_same() -> None:
    together = trained([1, 2, 3], [0, 1, 2])
    for i, (seed, row) in enumerate([(1, 0), (2, 1), (3, 2)]):
        alone = trained([seed], [row])
        assert [step[0].item() for step in alone] == [step[i].item() for step in together]
    assert together[-1].sum() < together[0].sum()


def test_a_member_that_diverges_does_not_touch_its_neighbours() -> None:
    healthy = trained([1, 2, 3], [0, 1, 2])
    poisoned = trained([1, 2, 3], [0, 1, 2], poison=1)
    for before, after in zip(healthy, poisoned, strict=True):
        assert after[1].isnan()
        assert before[[0, 2]].tolist() == after[[0, 2]].tolist()


def test_members_of_one_seed_share_everything_but_their_embeddings() -> None:
    a = architecture(dropout=0.1)
    one = Stack(a, [member(a, 7, 0), member(a, 7, 1), member(a, 8, 0)])
    for name, weight in one.weights.items():
        same = torch.equal(weight[0], weight[1])
        assert same == (not name.endswith("embedding"))
    dropped = Dropout(0.1, keys(one.seeds, 3), ["here"]).factors(torch.arange(50).expand(3, 50), 16, "here")
    assert torch.equal(dropped[0], dropped[1])
    assert not torch.equal(dropped[0], dropped[2])


def test_embeddings_enter_bit_for_bit() -> None:
    a = architecture()
    own = [member(a, 1), member(a, 2)]
    model = Stack(a, own)
    for i, one in enumerate(own):
        assert (model.weights["source.embedding"][i].detach().numpy() == one.matrices[0]).all()
        assert (model.weights["target.embedding"][i].detach().numpy() == one.matrices[1]).all()
    with pytest.raises(EmbinitError, match="source: a matrix of"):
        Stack(a, [Member(1, (own[0].matrices[1], own[0].matrices[1]))])


@pytest.mark.parametrize("task", ["translation", "language_model"])
def test_rows_enter_the_output_layer_bit_for_bit(task: str) -> None:
    a = architecture(task=task)
    rows = np.random.default_rng(3).standard_normal((a.outputs, a.dim)).astype(np.float32)
    first, second = member(a, 1), member(a, 1, start=1)
    made = Stack(a, [first, replace(second, output=rows)])
    drawn_alone = Stack(a, [first])
    assert np.array_equal(made.weights["output.weight"][1].detach().numpy(), rows.T)
    assert torch.equal(made.weights["output.weight"][0], drawn_alone.weights["output.weight"][0])


@pytest.mark.parametrize(
    ("changes", "size", "sentence"),
    [
        ({"tied": True}, TARGET, "only an untied output layer over tokens"),
        ({"task": "classification"}, 3, "only an untied output layer over tokens"),
        ({}, TARGET + 1, r"output: a matrix of \(20, 16\), the model has \(19, 16\)"),
    ],
)
def test_an_output_layer_that_cannot_start_from_rows_is_an_error(
    changes: dict[str, object], size: int, sentence: str
) -> None:
    a = architecture(**changes)
    with pytest.raises(EmbinitError, match=sentence):
        Stack(a, [replace(member(a, 1), output=np.zeros((size, a.dim), dtype=np.float32))])


def test_weights_have_the_bounds_of_one_members_matrix() -> None:
    a = architecture(dim=64, heads=4, feedforward=128)
    found = {parameter.name: drawn(parameter, 3) for parameter in parameters(a)}
    bounds = {
        "encoder.0.self.qkv.weight": (6 / (4 * 64)) ** 0.5, "encoder.0.self.out.weight": (6 / (2 * 64)) ** 0.5,
        "decoder.1.cross.kv.weight": (6 / (4 * 64)) ** 0.5, "encoder.1.up.weight": (6 / (64 + 128)) ** 0.5,
        "output.weight": (6 / (64 + TARGET)) ** 0.5, "encoder.0.up.bias": 64**-0.5, "output.bias": 64**-0.5,
    }  # fmt: skip
    for name, bound in bounds.items():
        largest = np.abs(found[name]).max()
        assert bound * 0.8 < largest <= bound, name
    assert not found["encoder.0.self.qkv.bias"].any()
    assert (found["encoder.norm.weight"] == 1).all()


# ---------------------------------------------------------------- dropout


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    ones = torch.ones(2, 400, 300)
    out = Dropout(0.1, keys(torch.tensor([1, 2]), 5), ["place"])(ones, "place")
    assert (out == 0).float().mean().item() == pytest.approx(0.1, abs=0.003)
    assert out.mean().item() == pytest.approx(1, abs=0.004)
    assert out.unique().tolist() == pytest.approx([0, 1 / 0.9])


def test_dropout_is_independent_across_rows_columns_places_steps_and_seeds() -> None:
    def zeros(seed: int, step: int, place: str) -> Tensor:
        dropout = Dropout(0.5, keys(torch.tensor([seed]), step), [place])
        return (dropout.factors(torch.arange(300)[None], 300, place)[0] == 0).float()

    first = zeros(1, 1, "a")
    for other in (zeros(2, 1, "a"), zeros(1, 2, "a"), zeros(1, 1, "b")):
        assert (first * other).mean().item() == pytest.approx(0.25, abs=0.01)
    for block in (first, first.T):
        correlation = torch.corrcoef(block).fill_diagonal_(0)
        assert correlation.std().item() == pytest.approx(300**-0.5, rel=0.05)
        assert correlation.abs().max() < 0.35
    assert torch.equal(first, zeros(1, 1, "a"))


# ---------------------------------------------------------------- packing


def test_packing_goes_there_and_back_with_its_gradient() -> None:
    place = layout(np.array([[3, 0, 4], [1, 2, 5]]), 16, 6, "cpu")
    rows = torch.randn(2, 16, 5, requires_grad=True)
    block = padded(rows, place)
    assert block.shape == (6, 6, 5)
    assert torch.equal(block[0, :3], rows[0, :3])
    assert torch.equal(block[5, :5], rows[1, 3:8])
    own, same = blocks(place, place)
    assert own is same
    assert {size for _, size in own.groups} == {8}
    again = own.emptied(own.filled(rows))
    assert torch.equal(again[place.real], rows[place.real])
    (again * place.real[:, :, None]).square().sum().backward()
    expected = 2 * rows.detach() * place.real[:, :, None]
    assert rows.grad is not None
    torch.testing.assert_close(rows.grad, expected)


def test_capacity_holds_every_likely_batch_and_depends_on_the_data_alone() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 30, 29_000)
    room = capacity(lengths, 64)
    assert room % 64 == 0
    assert all(rng.permutation(lengths)[:64].sum() <= room for _ in range(500))
    assert room < 1.4 * 64 * lengths.mean()
    assert capacity(np.full(10, 3), 10) == 64


def test_a_smaller_last_batch_gives_no_nan() -> None:
    model = stack(architecture(positions="relative"), 1)
    (source, source_place), (target, place) = batch([[5, 3, 0, 0]], SOURCE), batch([[2, 4, 0, 0]], TARGET)
    logits = model.output(model.translate(source, source_place, target, place))
    (logits * place.real[:, :, None]).sum().backward()
    for name, weight in model.weights.items():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
def test_a_smaller_last_batch_gives_a_classifier_no_nan(pooling: str) -> None:
    model = stack(architecture(task="classification", pooling=pooling), 1)
    ids, place = batch([[5, 3, 0, 0]], SOURCE)
    logits = model.output(model.classify(ids, place))
    torch.where(torch.tensor([[True, True, False, False]]), logits.square().sum(dim=-1), 0.0).sum().backward()
    for name, weight in model.weights.items():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
def test_a_classifier_pools_each_sentence_on_its_own(pooling: str) -> None:
    model = stack(architecture(task="classification", pooling=pooling), 1)
    ids, place = batch([[5, 3, 9]], SOURCE)
    together = model.output(model.classify(ids, place))[0]
    assert together.shape == (3, 3)
    for i, (start, end) in enumerate([(0, 5), (5, 8), (8, 17)]):
        own = torch.zeros(1, 64, dtype=torch.int64)
        own[0, : end - start] = ids[0, start:end]
        alone = model.output(model.classify(own, layout(np.array([[end - start]]), 64, 14, "cpu")))[0, 0]
        torch.testing.assert_close(alone, together[i], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"heads": 3}, "3 heads do not divide 16 dimensions"),
        ({"heads": 16, "positions": "rotary"}, "rotary positions need an even head dimension"),
        ({"vocabularies": (5,)}, "a translation has 2 vocabularies"),
        ({"dropout": 1.0}, "dropout 1.0; from 0 to below 1"),
        ({"layers": 0}, "layers is 0; at least 1"),
        ({"heads": 0}, "heads is 0; at least 1"),
        ({"positions": "sinusodial"}, "unknown positions 'sinusodial'; did you mean 'sinusoidal'"),
        ({"norm": "prenorm"}, "unknown norm 'prenorm'"),
        ({"task": "classification", "tied": True}, "no target embedding to tie"),
    ],
)
def test_impossible_models_are_told_so(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(EmbinitError, match=sentence):
        architecture(**changes)
