"""Language models: the same logits and gradients as transformers' classes, and every block on its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.models.conversion import transformers_model, transformers_weights
from embinit.models.model import Stack
from embinit.models.packing import full_layout, layout
from embinit.models.parameters import count
from embinit.models.presets import preset, presets
from tests.models.made import member, stack

TASKS = {"gpt2": "language_model", "llama": "language_model", "bert": "masked_language_model"}


def language_model(name: str, task: str | None = None, **changes: object) -> Architecture:
    sizes = {"dim": 12, "heads": 2, "layers": 2, "feedforward": 20, "length": 9, "vocabularies": (17,), "dropout": 0.0}
    return Architecture(**{"task": task or TASKS[name], **sizes, **preset(name).model, "dropout": 0.0, **changes})  # type: ignore[arg-type]


def ids_of(batch: int, length: int, rows: int = 17, members: int = 1) -> Tensor:
    """Return random ids, none of them <unk> or <pad>: transformers gives <pad> no gradient."""
    return torch.randint(2, rows, (members, batch * length), generator=torch.Generator().manual_seed(batch))


def logits_of(model: Stack, ids: Tensor, length: int, **how: Any) -> Tensor:
    place = full_layout(*ids.view(len(ids), -1, length).shape[:2], length)
    return model.output(model.model_text(ids, place, **how))


def disturbed(model: Stack) -> Stack:
    """Return a stack whose biases and norms are not zeros and ones, so that each of them counts."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.weights.values():
            weight += 0.2 * torch.randn(weight.shape, generator=generator)
    return model


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(sorted(TASKS)),
    st.sampled_from([(8, 1), (12, 2), (24, 3)]),
    st.integers(1, 3),
    st.integers(1, 3),
    st.booleans(),
    st.data(),
)
def test_logits_and_gradients_are_those_of_transformers(
    name: str, width: tuple[int, int], layers: int, batch: int, tied: bool, data: st.DataObject
) -> None:
    import transformers

    changes: dict[str, object] = {"dim": width[0], "heads": width[1], "layers": layers, "tied": tied}
    if name == "llama":
        changes["biases"] = data.draw(st.booleans())
    else:
        changes["activation"] = data.draw(st.sampled_from(["relu", "gelu", "gelu_tanh"]))
    a = language_model(name, **changes)
    ours = disturbed(stack(a, 5))
    made = transformers_model(a)
    theirs = getattr(transformers, made.name)(getattr(transformers, made.name).config_class(**made.config)).eval()
    own = {key: weight[0].detach().clone().requires_grad_() for key, weight in ours.weights.items()}
    named = transformers_weights(a, own)
    assert named.keys() >= dict(theirs.named_parameters()).keys()
    length = data.draw(st.integers(2, a.length))
    ids = ids_of(batch, length)
    mine = logits_of(ours, ids, length)[0]
    expected = torch.func.functional_call(theirs, named, (ids.view(batch, length),)).logits.flatten(0, 1)
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-5)
    weight = torch.linspace(-1, 1, mine.numel()).view_as(mine) / mine.numel()
    (mine * weight).sum().backward()
    (expected * weight).sum().backward()
    for key, parameter in ours.weights.items():
        assert parameter.grad is not None, key
        torch.testing.assert_close(parameter.grad[0], own[key].grad, rtol=0, atol=1e-5, msg=key)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "sinusoidal"])
@pytest.mark.parametrize("task", ["language_model", "masked_language_model"])
def test_whole_blocks_give_what_packed_sentences_give(name: str, task: str) -> None:
    a = language_model(name, task)
    model = disturbed(Stack(a, [member(a, 1), member(a, 2)]))
    ids = ids_of(3, 6, members=2)
    lengths = torch.full((2, 3), 6)
    packed = model.output(model.model_text(ids, layout(lengths.numpy(), 18, 6)))
    torch.testing.assert_close(logits_of(model, ids, 6), packed, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [7, 128, 300])
@pytest.mark.parametrize("task", ["language_model", "masked_language_model"])
def test_blocks_in_bfloat16_are_near_those_in_float32(task: str, length: int) -> None:
    a = language_model("gpt2", task, length=length)
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        model = disturbed(Stack(a, [member(a, 1), member(a, 2)], dtype=dtype, protected=False))
        logits = logits_of(model, ids_of(2, length, members=2), length).float()
        logits.mul(torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum().backward()
        found.append([logits.detach(), *(weight.grad for weight in model.weights.values() if weight.grad is not None)])
    assert len(found[0]) == len(found[1]) > 10
    for exact, rounded in zip(*found, strict=True):
        assert (rounded - exact).norm() < 0.05 * exact.norm() + 1e-3
    ids = ids_of(2, length, members=2)
    other = ids.clone()
    other[:, 5] = 2 + (other[:, 5] - 1) % 15
    before, after = (logits_of(model, one, length)[0] for one in (ids, other))
    changed = (before != after).any(dim=1)
    assert not changed[length:].any(), "the second block does not read the first"
    assert changed[:5].any() == (task == "masked_language_model")


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "relative", "sinusoidal", "none"])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_only_a_masked_model_sees_later_tokens(positions: str, dropout: float) -> None:
    for task in ("language_model", "masked_language_model"):
        a = language_model("gpt2", task, positions=positions, dropout=dropout)
        model = disturbed(stack(a, 1))
        ids = ids_of(2, 8)
        other = ids.clone()
        other[0, 5] = 2 + (other[0, 5] - 1) % 15
        before, after = (logits_of(model, one, 8, step=3)[0] for one in (ids, other))
        changed = (before != after).any(dim=1)
        assert not changed[8:].any(), "the second block does not read the first"
        assert changed[5:8].all()
        assert changed[:5].any() == (task == "masked_language_model")


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_a_member_among_others_computes_the_same_bits(name: str) -> None:
    a = language_model(name, dropout=0.2)
    together = Stack(a, [member(a, 1), member(a, 2)])
    ids = ids_of(2, 8).expand(2, -1)
    both = logits_of(together, ids, 8, step=2)
    for place, seed in enumerate((1, 2)):
        alone = logits_of(stack(a, seed), ids[:1], 8, step=2)
        assert torch.equal(alone[0], both[place])
    assert not torch.equal(both[0], both[1])


def test_chosen_places_alone_are_read() -> None:
    model = disturbed(stack(language_model("bert"), 1))
    ids, chosen = ids_of(2, 8), torch.tensor([[1, 9, 15]])
    torch.testing.assert_close(logits_of(model, ids, 8, chosen=chosen), logits_of(model, ids, 8)[:, chosen[0]])


def test_gpt2_of_its_own_size_has_as_many_parameters() -> None:
    sizes = {"dim": 768, "heads": 12, "layers": 12, "feedforward": 3072, "length": 1024, "vocabularies": (50257,)}
    assert count(language_model("gpt2", **sizes)) == 124_439_808


def test_weights_begin_as_gpt2s_do() -> None:
    a = language_model("gpt2", dim=64, heads=4, layers=8, feedforward=128)
    weights = stack(a, 1).weights
    inner, residual = weights["decoder.0.up.weight"], weights["decoder.0.down.weight"]
    assert inner.std().item() == pytest.approx(0.02, rel=0.05)
    assert residual.std().item() == pytest.approx(0.02 / 4, rel=0.05)
    assert not weights["decoder.0.up.bias"].any()


def test_presets_are_models() -> None:
    for name in presets():
        for task in ("language_model", "masked_language_model"):
            assert language_model(name, task).task == task
    with pytest.raises(EmbinitError, match="gpt2"):
        preset("gpt-2")


@pytest.mark.parametrize(
    ("name", "changes", "named"),
    [
        ("sinusoidal", {"task": "language_model"}, "positions"),
        ("gpt2", {"scaled": True}, "scaled false instead of true"),
        ("gpt2", {"positions": "alibi"}, "positions learned instead of alibi"),
        ("llama", {"task": "masked_language_model"}, "task language_model"),
        ("bert", {"final_norm": True}, "final_norm false instead of true"),
    ],
)
def test_a_model_without_a_class_is_refused(name: str, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(EmbinitError, match=named):
        transformers_model(language_model(name, **changes))
