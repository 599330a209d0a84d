"""Training in lockstep: members are independent to the end, each keeps its own best, and scores are the known ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from embinit.corpora.examples import Corpus, Reading, split_of
from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack
from embinit.prepared.preparing import Settings, prepare
from embinit.prepared.reading import Prepared
from embinit.training.batches import BEGIN, END, Batches
from embinit.training.evaluation import translations
from embinit.training.loop import Outcome, train
from embinit.training.options import Training
from embinit.training.scoring import bleu, chrf, confusion, macro_f1, matthews
from embinit.training.step import Trainer, clip

WORDS = [f"w{i}" for i in range(12)]


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Sentences to be copied in capital letters: a translation that a tiny model learns in a few epochs."""
    rng = np.random.default_rng(0)

    def rows(count: int) -> list[list[str]]:
        texts = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(count)]
        return [texts, [text.upper() for text in texts]]

    splits = {
        name: split_of(rows(n), None, Reading([name])) for name, n in (("train", 203), ("valid", 40), ("test", 30))
    }
    corpus = Corpus("copying", "translation", splits, languages=("xx", "xx"))
    return prepare(
        corpus, Settings("copying", ("whitespace",) * 2, False, 1, ("xx", "xx")), tmp_path_factory.mktemp("p")
    )[0]


@pytest.fixture(scope="module")
def sorting(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Sentences labelled by whether words of the first half are in the majority."""
    rng = np.random.default_rng(1)

    def rows(count: int) -> tuple[list[list[str]], list[int]]:
        picked = [rng.integers(0, 12, 5) for _ in range(count)]
        return [[" ".join(WORDS[i] for i in one) for one in picked]], [int((one < 6).sum() > 2) for one in picked]

    splits = {name: split_of(*rows(n), Reading([name])) for name, n in (("train", 200), ("valid", 60))}
    corpus = Corpus("sorting", "classification", splits, ("low", "high"), ("xx",))
    return prepare(corpus, Settings("sorting", ("whitespace",), False, 1, ("xx",)), tmp_path_factory.mktemp("s"))[0]


def architecture(prepared: Prepared, **changes: object) -> Architecture:
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    values = {"dim": 24, "heads": 2, "layers": 1, "feedforward": 32, "length": 40, **changes}
    return Architecture(task=prepared.task, vocabularies=sizes, **values)  # type: ignore[arg-type]


def member(a: Architecture, seed: int, std: float = 0.2) -> Member:
    rng = np.random.default_rng(seed)
    return Member(seed, tuple((std * rng.standard_normal((n, a.dim))).astype(np.float32) for n in a.vocabularies))


def run(prepared: Prepared, members: list[tuple[int, float]], epochs: int = 3, **options: object) -> Outcome:
    a = architecture(prepared)
    settings = Training(**{"epochs": epochs, "batch": 16, "rate": 5e-3, **options})  # type: ignore[arg-type]
    return train(prepared, a, [member(a, seed, std) for seed, std in members], settings)


def test_a_member_trained_alone_and_among_others_has_the_same_history(copying: Prepared) -> None:
    together = run(copying, [(1, 0.2), (2, 0.2), (1, 2.0)])
    for place, one in enumerate([(1, 0.2), (2, 0.2), (1, 2.0)]):
        alone = run(copying, [one])
        assert alone.members[0].history == together.members[place].history
        for name, weight in alone.stack.weights.items():
            assert torch.equal(weight[0], together.stack.weights[name][place])


def test_it_learns_and_translates(copying: Prepared) -> None:
    outcome = run(copying, [(1, 0.2)], epochs=25)
    history = outcome.members[0].history
    assert history[-1]["train loss"] < 0.3 * history[0]["train loss"]
    found = [" ".join(words) for words in translations(outcome.stack, copying, "test")[0]]
    assert bleu(found, copying.references("test"), "none").value > 60
    assert len(found) == 30


def test_the_best_epoch_is_kept(copying: Prepared) -> None:
    outcome = run(copying, [(1, 0.2), (2, 0.2)], epochs=6, rate=5e-2)
    for one in outcome.members:
        losses = [record["valid loss"] for record in one.history]
        assert one.best_epoch == losses.index(min(losses)) + 1
    a = architecture(copying)
    again = train(copying, a, [member(a, 1)], Training(epochs=outcome.members[0].best_epoch, batch=16, rate=5e-2))
    for name, weight in again.stack.weights.items():
        assert torch.equal(weight[0], outcome.stack.weights[name][0])


def test_classification_learns_and_is_selected_by_accuracy(sorting: Prepared) -> None:
    outcome = run(sorting, [(3, 0.2)], epochs=12)
    accuracies = [record["accuracy"] for record in outcome.members[0].history]
    assert max(accuracies) > 0.9
    assert outcome.members[0].best_epoch == accuracies.index(max(accuracies)) + 1


def test_a_member_that_diverges_is_marked_and_the_others_finish(copying: Prepared) -> None:
    a = architecture(copying)
    broken = Member(2, tuple(np.full((n, a.dim), np.nan, dtype=np.float32) for n in a.vocabularies))
    settings = Training(epochs=2, batch=16)
    outcome = train(copying, a, [member(a, 1), broken], settings)
    assert [one.diverged for one in outcome.members] == [False, True]
    assert outcome.members[0].history == train(copying, a, [member(a, 1)], settings).members[0].history


def test_frozen_embeddings_stay_bit_for_bit(copying: Prepared) -> None:
    a = architecture(copying)
    own = member(a, 1)
    frozen = train(copying, a, [own], Training(epochs=2, batch=16, frozen_epochs=-1)).stack
    assert (frozen.weights["source.embedding"][0].detach().numpy() == own.matrices[0]).all()
    thawed = train(copying, a, [own], Training(epochs=2, batch=16, frozen_epochs=1)).stack
    assert (thawed.weights["source.embedding"][0].detach().numpy() != own.matrices[0]).any()


def test_a_diverged_classifier_keeps_sound_weights(sorting: Prepared) -> None:
    outcome = run(sorting, [(3, 0.2), (4, 0.2)], epochs=3, rate=1e30)
    for one in outcome.members:
        assert one.diverged
        assert one.best_epoch == 0
    assert all(weight.isfinite().all() for weight in outcome.stack.weights.values())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocabularies": (5, 5)}, "with vocabularies of"),
        ({"length": 5}, "the model's length is 5"),
    ],
)
def test_a_model_that_does_not_fit_the_task_is_told_so(
    changes: dict[str, object], sentence: str, copying: Prepared
) -> None:
    a = replace(architecture(copying), **changes)  # type: ignore[arg-type]
    with pytest.raises(EmbinitError, match=sentence):
        train(copying, a, [member(a, 1)], Training(epochs=1))


def test_a_classifier_needs_as_many_classes_as_labels(sorting: Prepared) -> None:
    a = architecture(sorting, classes=3)
    with pytest.raises(EmbinitError, match="has 2 labels, the model 3 classes"):
        train(sorting, a, [member(a, 1)], Training(epochs=1))


# ---------------------------------------------------------------- batches


def test_an_epoch_holds_every_sentence_once_in_an_order_of_the_seeds_own(copying: Prepared) -> None:
    batches = Batches(copying, "train", 16)
    seen = batches.orders([1, 1, 2], 0).reshape(3, -1)
    assert len(batches) == 13
    assert (seen[:, 203:] == -1).all()
    seen = seen[:, :203]
    assert (np.sort(seen, axis=1) == np.arange(203)).all()
    assert (seen[0] == seen[1]).all()
    assert (seen[0] != seen[2]).any()
    assert (batches.orders([1], 1).ravel()[:203] != seen[0]).any()


def test_a_target_is_read_from_bos_and_asked_up_to_eos(copying: Prepared) -> None:
    batches = Batches(copying, "train", 16)
    orders = batches.orders([1, 2], 0)
    for number, batch in enumerate(batches.each(orders)):
        source, target = batch.sides
        for i in range(2):
            at = [0, 0]
            for row in orders[i, number][orders[i, number] >= 0]:
                words = [copying.packed("train", side)[int(row)].tolist() for side in ("source", "target")]
                size = len(words[0]) + 2
                assert source.ids[i, at[0] : at[0] + size].tolist() == [BEGIN, *words[0], END]
                size = len(words[1]) + 1
                assert target.ids[i, at[1] : at[1] + size].tolist() == [BEGIN, *words[1]]
                assert target.following[i, at[1] : at[1] + size].tolist() == [*words[1], END]
                at = [at[0] + len(words[0]) + 2, at[1] + size]
            assert at == [int(side.place.real[i].sum()) for side in (source, target)]


# ---------------------------------------------------------------- options, clipping, scores


def test_rates() -> None:
    warm = Training(rate=1.0, warmup=4)
    assert [warm.rate_at(step, 100) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    linear = Training(rate=1.0, schedule="linear")
    assert [linear.rate_at(step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]
    root = Training(rate=1.0, warmup=4, schedule="inverse_sqrt")
    assert root.rate_at(15, 100) == pytest.approx(0.5)
    for wrong in (
        {"epochs": 0},
        {"rate": 0.0},
        {"smoothing": 1.0},
        {"batch": 0},
        {"warmup": -5},
        {"schedule": "cosine"},
    ):
        with pytest.raises(EmbinitError, match=next(iter(wrong))):
            Training(**wrong)  # type: ignore[arg-type]


def test_clipping_is_each_members_own(copying: Prepared) -> None:
    a = architecture(copying)
    stack = Stack(a, [member(a, 1), member(a, 2)])
    batches = Batches(copying, "train", 16)
    trainer = Trainer(stack, Training(batch=16), batches, 10)
    orders = batches.orders([1, 2], 0)
    trainer.step(torch.from_numpy(orders[:, 0]), batches.rooms(orders)[0], 0, 0)
    with torch.no_grad():
        for weight in stack.parameters():
            assert weight.grad is not None
            weight.grad[1] *= 100
    before = [w.grad.clone() for w in stack.parameters() if w.grad is not None]
    norms = torch.stack([g.flatten(1).square().sum(dim=1) for g in before]).sum(dim=0).sqrt()
    clip(stack, float(norms[0]) * 2)
    after = [w.grad for w in stack.parameters() if w.grad is not None]
    assert all(torch.equal(x[0], y[0]) for x, y in zip(before, after, strict=True))
    clipped = torch.stack([g.flatten(1).square().sum(dim=1) for g in after]).sum(dim=0).sqrt()
    assert clipped[1].item() == pytest.approx(2 * norms[0].item(), rel=1e-4)


def test_scores_are_the_known_ones() -> None:
    same = ["a b c d e f", "g h i j k"]
    assert bleu(same, same, "none").value == pytest.approx(100)
    assert "tok:none" in bleu(same, same, "none").signature
    assert chrf(same, same).value == pytest.approx(100)
    table = confusion(np.array([0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 1]), 2)
    assert table.tolist() == [[1, 1], [1, 2]]
    assert macro_f1(table) == pytest.approx((0.5 + 2 / 3) / 2)
    assert matthews(table) == pytest.approx((1 * 2 - 1 * 1) / (2 * 3 * 2 * 3) ** 0.5)
    assert matthews(confusion(np.array([1, 1]), np.array([0, 1]), 2)) == 0
    assert matthews(np.array([[1, 1], [1, 2]]) * 1_000_000) == pytest.approx(matthews(table))
