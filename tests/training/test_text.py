"""Running text in training: blocks, masks, losses, and the weight decay that language models are trained with."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.model import Member, Stack
from embinit.models.packing import full_layout
from embinit.prepared.folder import Prepared
from embinit.training import cross_entropy as entropies
from embinit.training import step
from embinit.training.batches import END
from embinit.training.blocks import TextBatches, sequence
from embinit.training.evaluation import evaluate, text_sums
from embinit.training.loop import train
from embinit.training.masking import FIRST_TOKEN, MASK, masked
from embinit.training.options import Training
from embinit.training.step import Trainer, decays

from .made import architecture, member, run, settings, text_task


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return text_task(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def masked_text(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return text_task(tmp_path_factory.mktemp("masked"), masked=True)


def scored(batches: TextBatches) -> list[tuple[int, int]]:
    """Return each scored token with the token before it, in the order in which they are scored."""
    found = []
    for batch in batches.each(batches.straight(1)):
        side = batch.sides[0]
        assert batch.scored is not None
        pairs = torch.stack((side.ids[0], side.following[0]), dim=1)[batch.scored[0]]
        found += [(int(a), int(b)) for a, b in pairs]
    return found


# ---------------------------------------------------------------- blocks


def test_a_text_is_its_lines_with_an_end_after_each(text: Prepared) -> None:
    tokens, packed = sequence(text, "valid").tolist(), text.packed("valid", "text")
    expected = [END]
    for i in range(len(packed)):
        expected += [*packed[i].tolist(), END]
    assert tokens == expected
    assert (packed.lengths == 0).any(), "blank lines are lines"


@pytest.mark.parametrize("stride", [0, 1, 3, 7])
@pytest.mark.parametrize("length", [7, 10, 10_000])
@pytest.mark.parametrize("batch", [1, 4])
def test_every_token_is_scored_once_and_in_order(text: Prepared, stride: int, length: int, batch: int) -> None:
    tokens = sequence(text, "valid").tolist()
    assert scored(TextBatches(text, "valid", batch, length, stride=stride)) == list(pairwise(tokens))


def test_with_a_stride_of_one_every_token_but_the_first_block_has_a_full_context(text: Prepared) -> None:
    batches = TextBatches(text, "valid", 1, 9, stride=1)
    counts = [int(batch.scored.sum()) for batch in batches.each(batches.straight(1)) if batch.scored is not None]
    assert counts[0] == 9
    assert set(counts[1:]) == {1}


def test_an_epoch_reads_no_token_twice_and_the_seed_decides_where_it_begins(text: Prepared) -> None:
    batches = TextBatches(text, "train", 4, 9)
    tokens = sequence(text, "train")
    orders = batches.orders([1, 2, 1], 0)
    assert np.array_equal(orders[0], orders[2])
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], batches.orders([1], 1)[0])
    size = len(tokens) - 1
    for own in orders:
        starts = own[own >= 0]
        places = Counter(int(place) % size for start in starts for place in range(start, start + 9))
        assert len(starts) == size // 9
        assert set(places.values()) == {1}
    batch = next(batches.each(orders))
    first = int(orders[0, 0, 0])
    assert batch.sides[0].ids[0, :9].tolist() == [int(tokens[(first + i) % size]) for i in range(9)]
    assert batch.sides[0].following[0, :9].tolist() == [int(tokens[(first + i) % size + 1]) for i in range(9)]


def test_the_loss_is_that_of_the_model_token_by_token(text: Prepared) -> None:
    a = architecture(text, length=11)
    stack = Stack(a, [member(a, 1), member(a, 2)])
    sums = text_sums(stack, text, "valid", settings(stride=4))
    tokens = torch.from_numpy(sequence(text, "valid"))
    expected = torch.zeros(2, dtype=torch.float64)
    for place in range(1, len(tokens)):
        # The block that scores a token is the first one that has it.
        first = max(0, -(-(place - 11) // 4) * 4)
        first = min(first, len(tokens) - 1 - 11)
        ids = tokens[first:place]
        with torch.no_grad():
            values = stack.model_text(ids.expand(2, -1), full_layout(2, 1, len(ids)))
        logs = stack.output(values)[:, -1].log_softmax(dim=-1)
        expected -= logs[:, tokens[place]].detach().double()
    torch.testing.assert_close(sums[0], expected, rtol=1e-5, atol=0)
    assert sums[1].tolist() == [len(tokens) - 1] * 2


def test_what_is_measured_does_not_depend_on_the_size_of_batches(text: Prepared, masked_text: Prepared) -> None:
    for prepared in (text, masked_text):
        a = architecture(prepared, length=11)
        stack = Stack(a, [member(a, 1)])
        one, other = (evaluate(stack, TextBatches(prepared, "test", size, 11, stride=0)) for size in (3, 50))
        assert torch.equal(one[1:], other[1:])
        torch.testing.assert_close(one[0], other[0], rtol=1e-5, atol=0)


# ---------------------------------------------------------------- masks


def test_masks_of_training_are_the_seeds_and_the_steps_alone(masked_text: Prepared) -> None:
    batches = TextBatches(masked_text, "train", 8, 16)
    order = batches.orders([1], 0)
    batch = next(batches.each(np.concatenate((order, order))))
    ids, real = batch.sides[0].ids, batch.scored
    assert real is not None
    vocabulary = len(masked_text.vocabularies["text"])

    def made(seeds: list[int], step: int) -> Tensor:
        return masked(ids[: len(seeds)], real[: len(seeds)], torch.tensor(seeds), step, 19, vocabulary).ids

    assert torch.equal(made([1, 2], 5)[0], made([1], 5)[0])
    assert torch.equal(made([1, 1], 5)[0], made([1, 1], 5)[1])
    assert not torch.equal(made([1, 2], 5)[0], made([1, 2], 5)[1])
    assert not torch.equal(made([1], 5), made([1], 6))


def test_a_step_masks_the_share_that_was_asked_for_as_bert_does() -> None:
    ids = torch.randint(0, 200, (2, 20_000), generator=torch.Generator().manual_seed(0))
    made = masked(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([3, 4]), 7, 3000, 200)
    assert made.chosen.shape == (2, 3000)
    assert all(len(set(row.tolist())) == 3000 for row in made.chosen)
    assert made.there.all()
    assert torch.equal(made.asked, ids.gather(1, made.chosen))
    assert (made.asked >= FIRST_TOKEN).all(), "special tokens are never masked"
    read = made.ids.gather(1, made.chosen)
    assert (read == MASK).double().mean().item() == pytest.approx(0.8, abs=0.02)
    assert (read == made.asked).double().mean().item() == pytest.approx(0.1, abs=0.02)
    others = read[(read != MASK) & (read != made.asked)]
    assert others.min() == FIRST_TOKEN
    assert others.max() == 199
    untouched = torch.ones_like(ids, dtype=torch.bool).scatter(1, made.chosen, False)
    assert torch.equal(made.ids[untouched], ids[untouched])


def test_fewer_tokens_than_places_are_all_masked() -> None:
    ids = torch.tensor([[END, 9, END, 8, END, END]])
    made = masked(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([1]), 0, 4, 20)
    assert sorted(made.asked[made.there].tolist()) == [8, 9]
    assert made.ids[0, [0, 2, 4, 5]].tolist() == [END] * 4


def test_the_mask_of_a_split_is_fixed(masked_text: Prepared) -> None:
    seen = []
    for size in (3, 50):
        batches = TextBatches(masked_text, "valid", size, 11, stride=0)
        asked = []
        for batch in batches.each(batches.straight(2)):
            assert batch.masked is not None
            assert torch.equal(batch.masked.ids[0], batch.masked.ids[1])
            there = batch.masked.there[0]
            asked += sorted(
                zip(batch.masked.chosen[0][there].tolist(), batch.masked.asked[0][there].tolist(), strict=True)
            )
        seen.append(Counter(token for _, token in asked))
    assert seen[0] == seen[1]
    tokens = sequence(masked_text, "valid")
    assert seen[0].total() == pytest.approx(0.15 * (tokens >= FIRST_TOKEN).sum(), rel=0.3)


# ---------------------------------------------------------------- learning


def test_a_language_model_learns_what_follows(text: Prepared) -> None:
    outcome = run(text, [(1, 0.2)], epochs=12)
    history = outcome.members[0].history
    assert history[-1]["valid loss"] < 1.5 < 2.3 < history[0]["valid loss"]
    assert outcome.members[0].best_epoch == 1 + min(range(12), key=lambda i: history[i]["valid loss"])


def test_a_masked_model_learns_from_both_sides_and_is_chosen_by_its_loss(masked_text: Prepared) -> None:
    a = architecture(masked_text, length=10, dropout=0.0)
    outcome = train(masked_text, a, [member(a, 1)], settings(epochs=25, batch=4))
    history = outcome.members[0].history
    assert max(record["masked accuracy"] for record in history) > 0.5
    assert outcome.members[0].best_epoch == 1 + min(range(25), key=lambda i: history[i]["valid loss"])


def test_a_text_of_special_tokens_alone_has_a_loss_of_zero(masked_text: Prepared) -> None:
    a = architecture(masked_text)
    own = member(a, 1)
    stack = Stack(a, [own])
    batches = TextBatches(masked_text, "train", 2, 8)
    batches._tokens[:] = END
    trainer = Trainer(stack, settings(batch=2), batches, 1, [own])
    orders = batches.orders([1], 0)
    trainer.step(torch.from_numpy(orders[:, 0]), batches.rooms(orders)[0], 0, 0)
    assert all(weight.isfinite().all() for weight in stack.weights.values())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_in_bfloat16_and_its_gradient_are_torchs(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropies, "_LOGITS", 3 * 11)  # three rows at a time, and one that is left
    generator = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(7, 11, generator=generator)).bfloat16().requires_grad_()
    asked, weight = torch.randint(11, (7,), generator=generator), torch.rand(7, generator=generator)
    exact = logits.detach().float().requires_grad_()
    theirs = torch.nn.functional.cross_entropy(exact, asked, reduction="none", label_smoothing=smoothing)
    ours = entropies.cross_entropy(logits, asked, smoothing)
    torch.testing.assert_close(ours, theirs)
    (theirs * weight).sum().backward()
    (ours * weight).sum().backward()
    assert exact.grad is not None
    torch.testing.assert_close(logits.grad, exact.grad.bfloat16(), rtol=1e-2, atol=1e-4)


def test_the_loss_in_parts_is_for_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def note(logits: torch.Tensor, asked: torch.Tensor, smoothing: float) -> torch.Tensor:
        taken.append(logits.device.type)
        return logits.new_zeros(len(logits), dtype=torch.float32)

    monkeypatch.setattr(step, "cross_entropy", note)
    for device in ("cpu", "meta"):  # meta stands for a card without Triton, on which many small steps are slow
        values = torch.zeros(2, 3, 11, dtype=torch.bfloat16, device=device)
        asked = torch.zeros(2, 3, dtype=torch.int64, device=device)
        total, _ = step.losses(SimpleNamespace(output=lambda logits: logits), values, asked, asked == 0)  # type: ignore[arg-type]
        assert total.dtype == torch.float32
    assert taken == ["cpu"]


# ---------------------------------------------------------------- weight decay and rates


def trained(prepared: Prepared, own: Member, steps: int = 3, tied: bool = False, **options: object) -> Stack:
    a = architecture(prepared, tied=tied, norm="pre", positions="learned", dropout=0.0)
    stack, training = Stack(a, [own]), settings(**options)
    batches = TextBatches(prepared, "train", training.batch, 12)
    trainer = Trainer(stack, training, batches, 10, [own])
    orders = batches.orders([own.seed], 0)
    for number in range(steps):
        trainer.step(torch.from_numpy(orders[:, number]), batches.rooms(orders)[number], number, 0)
    return stack


def test_matrices_decay_and_norms_and_biases_do_not() -> None:
    kinds = {
        "decoder.0.self.qkv.weight": True, "decoder.0.up.weight": True, "output.weight": True, "output.block.weight": True,
        "text.embedding": True, "text.positions": True, "decoder.0.self.norm.weight": False, "decoder.norm.weight": False,
        "text.norm.weight": False, "decoder.0.up.bias": False, "output.bias": False, "decoder.bias": False,
        "text.gain": False,
    }  # fmt: skip
    assert {name: decays(name, embeddings=True) for name in kinds} == kinds
    without = {name: decay and not name.startswith("text.") for name, decay in kinds.items()}
    assert {name: decays(name, embeddings=False) for name in kinds} == without


def test_one_step_of_decay_shrinks_by_rate_times_decay(text: Prepared) -> None:
    a = architecture(text, norm="pre", positions="learned", dropout=0.0)
    own = member(a, 1)
    start = Stack(a, [own]).weights
    options = {"rate": 0.01, "steps": 1}
    plain, decayed, fixed = (
        trained(text, own, **options, **more).weights  # type: ignore[arg-type]
        for more in ({}, {"weight_decay": 0.5}, {"weight_decay": 0.5, "decay_embeddings": False})
    )
    for name, before in start.items():
        shrunk = before * 0.01 * 0.5 if decays(name, True) else torch.zeros_like(before)
        torch.testing.assert_close(plain[name] - decayed[name], shrunk, rtol=1e-3, atol=1e-7)
        if name in ("text.embedding", "text.positions"):
            assert torch.equal(fixed[name], plain[name])
        else:
            assert torch.equal(fixed[name], decayed[name])


@pytest.mark.parametrize("tied", [False, True])
def test_found_rows_at_rate_zero_stay_and_slower_ones_move_by_their_share(text: Prepared, tied: bool) -> None:
    a = architecture(text, tied=tied)
    even = np.arange(a.vocabularies[0]) % 2 == 0
    own = replace(member(a, 1), found=(even,))
    start = torch.from_numpy(own.matrices[0])
    still = trained(text, own, tied=tied, found_rate=0.0, weight_decay=0.1).weights["text.embedding"][0].detach()
    assert torch.equal(still[even], start[even])
    assert (still[~even] != start[~even]).any(dim=1)[2:].all()
    # Adam's first step is as long as its rate where the gradient is not tiny.
    slow = trained(text, own, steps=1, tied=tied, rate=1e-3, found_rate=0.1).weights["text.embedding"][0].detach()
    moved = (slow - start).abs()
    assert moved[even].max().item() == pytest.approx(1e-4, rel=5e-3)
    assert moved[~even].max().item() == pytest.approx(1e-3, rel=5e-3)


def test_frozen_rows_do_not_decay(text: Prepared) -> None:
    a = architecture(text)
    even = np.arange(a.vocabularies[0]) % 2 == 0
    own = replace(member(a, 1), frozen=(even,))
    after = trained(text, own, weight_decay=0.1).weights["text.embedding"][0].detach()
    assert torch.equal(after[even], torch.from_numpy(own.matrices[0])[even])


# ---------------------------------------------------------------- what does not fit


def test_what_does_not_fit_is_one_sentence(text: Prepared, masked_text: Prepared, tmp_path: Path) -> None:
    a = architecture(text)

    def refused(prepared: Prepared, training: Training, **changes: object) -> str:
        made = replace(a, **changes)  # type: ignore[arg-type]
        with pytest.raises(EmbinitError) as error:
            train(prepared, made, [member(made, 1)], training)
        return str(error.value)

    size = len(sequence(text, "train")) - 1
    assert f"set model.length to {size:,} or less" in refused(text, settings(), length=size + 1)
    assert "training.order" in refused(text, settings(order="bucketed"))
    assert "masked_language_model" in refused(text, settings(), task="masked_language_model")
    manifest = {**text.manifest, "task": "masked_language_model"}
    assert "<mask>" in refused(replace(text, manifest=manifest), settings(), task="masked_language_model")
    lacking = {**text.manifest, "splits": {"train": text.manifest["splits"]["train"]}}
    assert "validation" in refused(replace(text, manifest=lacking), settings())


def test_perplexity_of_a_uniform_model_is_its_vocabulary(text: Prepared) -> None:
    a = architecture(text)
    stack = Stack(a, [member(a, 1)])
    with torch.no_grad():
        for weight in stack.weights.values():
            weight.zero_()
    loss, count, _ = text_sums(stack, text, "test", settings())[:, 0].tolist()
    assert math.exp(loss / count) == pytest.approx(len(text.vocabularies["text"]), rel=1e-6)
