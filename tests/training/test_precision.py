"""Precision: what bfloat16 changes, what it leaves in float32, and that training comes to the same.

That a model loses its sense of order without protection shows in its numbers, not in its validation loss: at a size
that a test can train, rows of σ 13 hide positions from a float32 model too (losses are those of a model without any).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from embinit.diagnosis.rounding import position_loss
from embinit.models import layers
from embinit.models.architecture import Architecture
from embinit.models.layers import Reader
from embinit.models.model import Member, Stack
from embinit.models.packing import Layout, layout
from embinit.positions import sinusoidal
from embinit.prepared.folder import Prepared
from embinit.training.batches import Batches
from embinit.training.evaluation import translations
from embinit.training.step import Trainer, read

from .made import architecture, member, run, settings

SEEDS = range(4)
LARGE = 13.0  # σ of T5's embedding


def test_tf32_changes_nothing_on_a_cpu(copying: Prepared) -> None:
    one, other = (run(copying, [(1, LARGE)], epochs=1, bleu_every=1, precision=kind) for kind in ("float32", "tf32"))
    assert one.members == other.members
    for name, weight in one.stack.weights.items():
        assert torch.equal(weight, other.stack.weights[name])


def valid_losses(prepared: Prepared, **options: object) -> np.ndarray:
    outcome = run(prepared, [(seed, LARGE) for seed in SEEDS], epochs=4, **options)
    return np.array([one.history[-1]["valid loss"] for one in outcome.members])


def test_protected_bfloat16_comes_to_float32s_validation_loss_within_seed_noise(copying: Prepared) -> None:
    exact, rounded = valid_losses(copying), valid_losses(copying, precision="bfloat16")
    assert exact.mean() < 2.4  # of ln 16 = 2.8: something was learned
    assert (exact != rounded).all()
    error = ((exact.var(ddof=1) + rounded.var(ddof=1)) / len(SEEDS)) ** 0.5
    assert abs(exact.mean() - rounded.mean()) < 2 * error
    assert error < 0.12


@pytest.mark.parametrize("protected", [True, False])
def test_weights_and_adams_state_stay_in_float32(protected: bool, copying: Prepared) -> None:
    a = architecture(copying)
    stack = Stack(a, [member(a, 1)], dtype=torch.bfloat16, protected=protected)
    training = settings(precision="bfloat16", rate=1e-4)
    batches = Batches(copying, "train", 16)
    trainer = Trainer(stack, training, batches, 10)
    orders = batches.orders([1], 0)
    trainer.step(torch.from_numpy(orders[:, 0]), batches.rooms(orders)[0], 0, 0)
    for name, weight in stack.weights.items():
        assert weight.dtype == torch.float32
        state = trainer.adam.state[weight]
        assert {state[key].dtype for key in ("exp_avg", "exp_avg_sq")} == {torch.float32}
        if name.endswith(".embedding"):
            # Steps of 1e-4 that bfloat16 would not hold beside 0.2.
            moved = weight[0].detach() - torch.from_numpy(member(a, 1).matrices[name.startswith("target")])
            assert moved.abs().max().item() == pytest.approx(1e-4, rel=1e-2)


def test_translations_in_bfloat16_are_as_good(copying: Prepared) -> None:
    outcome = run(copying, [(1, 0.2)], epochs=2, bleu_every=1, precision="bfloat16")
    exact = run(copying, [(1, 0.2)], epochs=2, bleu_every=1)
    assert outcome.stack.dtype == torch.bfloat16
    assert len(translations(outcome.stack, copying, "test")[0]) == 30
    here, there = outcome.members[0].history[-1], exact.members[0].history[-1]
    assert here["valid loss"] == pytest.approx(there["valid loss"], rel=0.05)


# ---------------------------------------------------------------- where float32 is kept


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("protected", [True, False])
def test_the_first_projections_and_norms_read_float32(
    norm: str, protected: bool, copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    products: dict[str, torch.dtype] = {}
    norms: dict[str, torch.dtype] = {}
    linear, normalized = layers.linear, Reader.norm

    def noted(values: Tensor, weights: layers.Weights, name: str) -> Tensor:
        products[name] = values.dtype
        return linear(values, weights, name)

    def noted_norm(self: Reader, values: Tensor, name: str, first: bool = False) -> Tensor:
        norms[name] = values.dtype
        return normalized(self, values, name, first)

    monkeypatch.setattr(layers, "linear", noted)
    monkeypatch.setattr(Reader, "norm", noted_norm)
    a = architecture(copying, norm=norm, layers=2)
    stack = Stack(a, [member(a, 1)], dtype=torch.bfloat16, protected=protected)
    batches = Batches(copying, "train", 16)
    values, _, _ = read(stack, next(batches.each(batches.orders([1], 0))), 0)
    assert values.dtype == torch.bfloat16
    first = torch.float32 if protected else torch.bfloat16
    for side in ("encoder", "decoder"):
        assert products[f"{side}.0.self.qkv"] == first
        assert norms[f"{side}.0.self.norm"] == first
        assert products[f"{side}.1.self.qkv"] == torch.bfloat16
        assert products[f"{side}.0.up"] == torch.bfloat16
    assert len(products) == 22


# ---------------------------------------------------------------- what is lost without


DIM, WORDS, LENGTH = 300, 200, 16


def large_model(dtype: torch.dtype, protected: bool) -> Stack:
    a = Architecture("translation", DIM, (WORDS, WORDS), heads=10, layers=1, dropout=0.0, length=64)
    return Stack(a, [Member(1, (rows(), rows()))], dtype=dtype, protected=protected)


def rows() -> np.ndarray:
    return (LARGE * np.random.default_rng(0).standard_normal((WORDS, DIM))).astype(np.float32)


def sentences(words: Sequence[Sequence[int]]) -> tuple[Tensor, Layout]:
    count = len(words)
    ids = torch.tensor(words).view(1, -1)
    return ids, layout(np.full((1, count), LENGTH), count * LENGTH, LENGTH, "cpu")


@torch.no_grad()
def embedded(stack: Stack, words: np.ndarray) -> np.ndarray:
    ids, place = sentences(words.tolist())
    return stack.embed("source", ids, place, stack.reader(None)).float().view(-1, LENGTH, DIM).numpy()


def test_protected_rows_with_positions_are_float32s() -> None:
    words = np.random.default_rng(1).integers(0, WORDS, (20, LENGTH))
    exact, rounded = (embedded(large_model(dtype, True), words) for dtype in (torch.float32, torch.bfloat16))
    assert (exact == rounded).all()


def test_unprotected_rows_lose_as_much_of_their_positions_as_the_diagnosis_says() -> None:
    words = np.arange(WORDS)[:, None].repeat(LENGTH, axis=1)
    table = sinusoidal(LENGTH, DIM)
    at_every_position = rows().repeat(LENGTH, axis=0), np.tile(table, (WORDS, 1))
    predicted = position_loss(*at_every_position, DIM**0.5, "bfloat16")
    bare = torch.from_numpy(rows() * np.float32(DIM**0.5)).bfloat16().float().numpy()
    remains = (embedded(large_model(torch.bfloat16, False), words) - bare[:, None]).astype(np.float64)
    added = np.broadcast_to(table.astype(np.float64), remains.shape)
    lost = 1 - (remains * added).sum() ** 2 / ((remains**2).sum() * (added**2).sum())
    assert lost > 0.1
    assert lost == pytest.approx(predicted, abs=0.03)


def test_without_protection_what_order_does_in_the_first_layer_is_drowned() -> None:
    rng = np.random.default_rng(2)
    words = np.stack([rng.permutation(WORDS)[:LENGTH] for _ in range(20)])
    order = rng.permutation(LENGTH)
    ids, place = sentences(np.concatenate([words, words[:, order]]).tolist())

    @torch.no_grad()
    def effect(stack: Stack) -> Tensor:
        """Return how much each word's vector changes when its sentence is put into another order."""
        reader = stack.reader(None)
        values = reader.encode(stack.embed("source", ids, place, reader), place)
        one, other = values.float().view(2, len(words), LENGTH, DIM)
        return other[:, np.argsort(order)] - one

    exact = effect(large_model(torch.float32, True))
    error = {
        protected: float((effect(large_model(torch.bfloat16, protected)) - exact).std() / exact.std())
        for protected in (True, False)
    }
    assert error[True] < 0.2
    assert error[False] > 1  # what is left is noise
