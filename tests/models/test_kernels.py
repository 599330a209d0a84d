"""The CUDA kernels, run by Triton's interpreter: the same numbers and gradients as plain torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import Tensor

os.environ.setdefault("TRITON_INTERPRET", "1")
pytestmark = pytest.mark.long
pytest.importorskip("triton", reason="triton is not installed: `make test-all` installs it")

from embinit.models.kernels import operations, packed_attention
from embinit.models.model import Stack
from embinit.models.packing import full_layout
from embinit.training.step import losses
from tests.models.made import SOURCE, TARGET, architecture, batch, member
from tests.models.test_language_models import disturbed, ids_of, language_model

LENGTHS = [[5, 3, 35], [1, 20, 0]]
TARGET_LENGTHS = [[2, 19, 4], [9, 1, 0]]


def computed(
    monkeypatch: pytest.MonkeyPatch,
    kernels: bool,
    smoothing: float | Tensor = 0.0,
    dtype: torch.dtype = torch.float32,
    dropouts: tuple[float | None, float | None] = (None, None),
    **changes: object,
) -> list[Tensor]:
    """Return every member's loss, and the gradient of every weight."""
    monkeypatch.setattr(operations, "usable", lambda _: kernels)
    a = architecture(**{"dropout": 0.2, "dim": 24, "layers": 1, **changes})
    members = [replace(member(a, seed), dropout=rate) for seed, rate in enumerate(dropouts, 1)]
    model = Stack(a, members, dtype=dtype)
    (source, there), (target, place) = (
        batch(lengths, rows, longest=35) for lengths, rows in ((LENGTHS, SOURCE), (TARGET_LENGTHS, TARGET))
    )
    if model.architecture.task == "translation":
        values = model.translate(source, there, target, place, 3)
        total, count = losses(model, values, target, place.real, smoothing)
    else:
        asked = torch.tensor([[0, 2, 1], [1, 0, 0]])
        total, count = losses(model, model.classify(source, there, 3), asked, there.lengths > 0, smoothing)
    (total / count).sum().backward()
    return [total.detach(), *(weight.grad for weight in model.weights.values() if weight.grad is not None)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "activation": "gelu"},
        {"positions": "rotary"},
        {"positions": "alibi"},
        {"positions": "relative"},
        {"positions": "gained", "embedding_norm": True},
        {"positions": "learned", "tied": True},
        {"task": "classification"},
        {"smoothing": 0.1},
        {"norm_kind": "rms", "biases": False, "output_bias": False},
        {"norm_kind": "rms", "norm": "pre", "positions": "rotary", "biases": False, "activation": "swiglu"},
        {"norm_epsilon": 0.3, "final_norm": False},
    ],
    ids=str,
)
def test_kernels_give_what_plain_torch_gives(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = computed(monkeypatch, False, **changes)  # type: ignore[arg-type]
    kernels = computed(monkeypatch, True, **changes)  # type: ignore[arg-type]
    assert len(plain) == len(kernels) > 15
    for expected, found in zip(plain, kernels, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("tiles", [False, True])
def test_members_have_their_own_dropout_and_smoothing(tiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    smoothing = torch.tensor([0.3, 0.0])
    plain = computed(monkeypatch, False, smoothing, dropouts=(0.4, 0.0))
    if tiles:
        in_small_tiles(monkeypatch)
    kernels = computed(monkeypatch, True, smoothing, dropouts=(0.4, 0.0))
    alone = [
        computed(monkeypatch, True, rate, dropouts=(drop, drop))  # with this rate and this smoothing for both members
        for rate, drop in ((0.3, 0.4), (0.0, 0.0))
    ]
    for expected, found, *own in zip(plain, kernels, *alone, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)
        for place, one in enumerate(own):
            torch.testing.assert_close(found[place], one[place], rtol=1e-5, atol=1e-7)
    assert not torch.allclose(alone[0][0], alone[1][0])


def computed_text(monkeypatch: pytest.MonkeyPatch, kernels: bool, name: str, dropout: float) -> list[Tensor]:
    """Return every member's loss on blocks of text, and the gradient of every weight."""
    monkeypatch.setattr(operations, "usable", lambda _: kernels)
    a = language_model(name, dropout=dropout)
    model = disturbed(Stack(a, [member(a, 1), member(a, 2)]))
    place, ids = full_layout(2, 2, 9), ids_of(2, 9, members=2)
    total, count = losses(model, model.model_text(ids, place, 3), ids.roll(-1, 1), ids < 12)
    (total / count).sum().backward()
    return [total.detach(), *(weight.grad for weight in model.weights.values() if weight.grad is not None)]


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_kernels_give_what_plain_torch_gives_of_text(
    name: str, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = computed_text(monkeypatch, False, name, dropout)
    short = computed_text(monkeypatch, True, name, dropout)
    monkeypatch.setattr(packed_attention, "LONGEST", 8)
    long = computed_text(monkeypatch, True, name, dropout)
    for expected, *found in zip(plain, short, long, strict=True):
        torch.testing.assert_close(found[0], expected, rtol=1e-4, atol=2e-6)
        torch.testing.assert_close(found[1], expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("changes", [{}, {"positions": "alibi"}, {"positions": "rotary"}], ids=str)
def test_wide_heads_are_read_in_parts(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    # A head of 36 has room for 64 numbers: four parts, the last of them empty.
    changes = {**changes, "dim": 72, "heads": 2}
    plain = computed(monkeypatch, False, **changes)  # type: ignore[arg-type]
    monkeypatch.setattr(packed_attention, "_WHOLE", 0)
    monkeypatch.setattr(packed_attention, "_PART", 16)
    kernels = computed(monkeypatch, True, **changes)  # type: ignore[arg-type]
    for expected, found in zip(plain, kernels, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(
    "changes",
    [{}, {"positions": "rotary"}, {"positions": "alibi"}, {"positions": "relative"}, {"task": "classification"}],
    ids=str,
)
def test_long_sentences_are_read_in_tiles(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    # What is longer than 16 is long here: sentences of 19, 20 and 35 have two and three tiles, the others none.
    plain = computed(monkeypatch, False, **changes)  # type: ignore[arg-type]
    in_small_tiles(monkeypatch)
    kernels = computed(monkeypatch, True, **changes)  # type: ignore[arg-type]
    for expected, found in zip(plain, kernels, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-6)


def in_small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_attention, "SIZES", packed_attention.SIZES[:1])
    monkeypatch.setattr(packed_attention, "LONGEST", 16)
    monkeypatch.setattr(packed_attention, "_TILE", 16)


def test_tiles_serve_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = computed(monkeypatch, False, dtype=torch.bfloat16)
    in_small_tiles(monkeypatch)
    for expected, found in zip(plain, computed(monkeypatch, True, dtype=torch.bfloat16), strict=True):
        assert (found - expected).norm() <= 0.1 * expected.norm() + 1e-4


def test_kernels_serve_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, kernels = (computed(monkeypatch, serve, dtype=torch.bfloat16) for serve in (False, True))
    for expected, found in zip(plain, kernels, strict=True):
        assert found.dtype == torch.float32
        assert (found - expected).norm() <= 0.1 * expected.norm() + 1e-4


def test_adam_is_torchs() -> None:
    start, rate, betas, epsilon = torch.randn(3, 700, 2), torch.tensor(0.01), (0.9, 0.98), 1e-9
    theirs, ours = start.clone().requires_grad_(), start.clone().requires_grad_()
    adam = torch.optim.Adam([theirs], lr=0.01, betas=betas, eps=epsilon)
    first, second, step = torch.zeros_like(start), torch.zeros_like(start), torch.tensor(0.0)
    for _ in range(4):
        theirs.grad = torch.randn_like(start)
        theirs.grad[0] = 0.0
        adam.step()
        step += 1
        operations.adam(ours, theirs.grad, first, second, step, rate, betas, epsilon)
        torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=1e-7)
    torch.testing.assert_close(second, adam.state[theirs]["exp_avg_sq"])


@pytest.mark.parametrize("width", [2, 24, 300])
def test_adam_takes_a_rate_for_each_row(width: int) -> None:
    start, rates = torch.randn(3, 17, width), torch.rand(3, 17, 1)
    rates[0], rates[1, ::2], rates[2] = 0.01, 0.0, rates[2] * 0.01
    betas, epsilon = (0.9, 0.98), 1e-9
    ours, uniform = start.clone().requires_grad_(), start.clone().requires_grad_()
    theirs = start.clone().requires_grad_()
    adam = torch.optim.Adam([theirs], lr=1.0, betas=betas, eps=epsilon)
    moments, uniform_moments = ([torch.zeros_like(start), torch.zeros_like(start)] for _ in range(2))
    step = torch.tensor(0.0)
    expected = start.clone()
    for _ in range(4):
        gradient = torch.randn_like(start)
        before = theirs.detach().clone()
        theirs.grad = gradient.clone()
        adam.step()
        expected += rates * (theirs.detach() - before)
        step += 1
        operations.adam(ours, gradient, *moments, step, rates, betas, epsilon)
        operations.adam(uniform, gradient, *uniform_moments, step, torch.tensor(0.01), betas, epsilon)
    torch.testing.assert_close(ours.detach(), expected, rtol=2e-5, atol=2e-6)
    assert torch.equal(ours[1, ::2], start[1, ::2])  # a rate of 0 changes no bit
    assert torch.equal(ours[0], uniform[0])  # a row has the bits that one rate for all rows gives it
    assert not torch.equal(ours[2], uniform[2])


def test_adam_takes_a_rate_and_a_count_of_steps_for_each_member() -> None:
    start, rates, betas, epsilon = torch.randn(3, 17, 24), torch.tensor([0.01, 0.0, 0.3]), (0.9, 0.98), 1e-9
    together, apart = start.clone(), start.clone()
    moments, own_moments = ([torch.zeros_like(start), torch.zeros_like(start)] for _ in range(2))
    steps = torch.tensor([0.0, 0.0, 5.0])
    for _ in range(3):
        gradient = torch.randn_like(start)
        steps += 1
        operations.adam(together, gradient, *moments, steps, rates, betas, epsilon)
        for place in range(3):
            ours = (one[place] for one in (apart, gradient, *own_moments))
            operations.adam(*ours, steps[place], rates[place], betas, epsilon)  # type: ignore[call-arg,arg-type]
    assert torch.equal(together, apart)
    assert torch.equal(together[1], start[1])
    assert not torch.equal(together[2], start[2])


def test_attention_compiles_for_a_card_and_fits_its_shared_memory() -> None:
    line = [sys.executable, "-m", "tests.models.compiled"]
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 52
    assert {tuple(one) for one in found if one[3] > 232_448} == set()  # what a block of a Hopper card may have
    tiles = {tuple(one) for one in found if one[0].startswith("tiles")}
    assert len(tiles) == 12
    assert {one for one in tiles if one[3] > 101_376} == set()  # and of a smaller card
