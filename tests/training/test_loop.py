"""Training in lockstep: members are independent to the end, each keeps its own best, and records are what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.model import Member, Stack
from embinit.prepared.folder import Prepared
from embinit.training.batches import Batches, Rooms
from embinit.training.evaluation import evaluate, translations
from embinit.training.loop import Moment, train
from embinit.training.options import Training
from embinit.training.scoring import bleu
from embinit.training.step import Trainer

from .made import architecture, member, run, same, settings


def test_a_member_trained_alone_and_among_others_has_the_same_history(copying: Prepared) -> None:
    together = run(copying, [(1, 0.2), (2, 0.2), (1, 2.0)], epochs=2, bleu_every=1)
    for place, one in enumerate([(1, 0.2), (2, 0.2), (1, 2.0)]):
        alone = run(copying, [one], epochs=2, bleu_every=1)
        assert alone.members[0].history == together.members[place].history
        for name, weight in alone.stack.weights.items():
            assert torch.equal(weight[0], together.stack.weights[name][place])


@pytest.mark.usefixtures("side_by_side")
def test_members_that_share_a_stack_have_the_history_of_those_apart(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [(1, 0.2), (2, 0.2), (1, 2.0)]
    together = run(copying, members, epochs=2)
    monkeypatch.undo()
    apart = run(copying, members, epochs=2)
    for one, other in zip(together.members, apart.members, strict=True):
        assert one.best_epoch == other.best_epoch
        for here, there in zip(one.history, other.history, strict=True):
            assert here == pytest.approx(there, rel=1e-3)


def test_nothing_that_others_draw_or_leave_behind_changes_it(copying: Prepared) -> None:
    expected = run(copying, [(1, 0.2)], epochs=1)
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    torch.rand(100)
    assert same(run(copying, [(1, 0.2)], epochs=1), expected)


def test_it_learns_and_translates(copying: Prepared) -> None:
    outcome = run(copying, [(1, 0.2)], epochs=25)
    history = outcome.members[0].history
    assert history[-1]["train loss"] < 0.3 * history[0]["train loss"]
    found = [" ".join(words) for words in translations(outcome.stack, copying, "test")[0]]
    assert bleu(found, copying.references("test"), "none").value > 60
    assert len(found) == 30


@pytest.mark.parametrize("lanes", ["apart", "side_by_side"])
def test_each_members_best_epoch_is_kept(lanes: str, copying: Prepared, request: pytest.FixtureRequest) -> None:
    if lanes == "side_by_side":
        request.getfixturevalue(lanes)
    members = [(1, 0.2), (2, 0.2)]
    outcome = run(copying, members, epochs=3, rate=0.1)
    assert [one.best_epoch for one in outcome.members] == [1, 2]
    for place, one in enumerate(outcome.members):
        losses = [record["valid loss"] for record in one.history]
        assert one.best_epoch == losses.index(min(losses)) + 1
        again = run(copying, members, epochs=one.best_epoch, rate=0.1)
        for name, weight in again.stack.weights.items():
            assert torch.equal(weight[place], outcome.stack.weights[name][place])


def test_classification_learns_and_is_selected_by_accuracy(sorting: Prepared) -> None:
    outcome = run(sorting, [(3, 0.2)], epochs=12)
    accuracies = [record["accuracy"] for record in outcome.members[0].history]
    assert max(accuracies) > 0.9
    assert outcome.members[0].best_epoch == accuracies.index(max(accuracies)) + 1


# ---------------------------------------------------------------- members that diverge


@pytest.mark.parametrize("lanes", ["apart", "side_by_side"])
def test_a_member_that_diverges_is_marked_and_the_others_finish(
    lanes: str, copying: Prepared, request: pytest.FixtureRequest
) -> None:
    if lanes == "side_by_side":
        request.getfixturevalue(lanes)
    a = architecture(copying)
    broken = Member(2, tuple(np.full((n, a.dim), np.nan, dtype=np.float32) for n in a.vocabularies))
    outcome = train(copying, a, [member(a, 1), broken], settings(epochs=2))
    healthy = train(copying, a, [member(a, 1), member(a, 2)], settings(epochs=2))
    assert [one.diverged for one in outcome.members] == [False, True]
    assert outcome.members[1].best_epoch == 0
    assert outcome.members[0] == healthy.members[0]


def test_a_diverged_classifier_keeps_sound_weights(sorting: Prepared) -> None:
    outcome = run(sorting, [(3, 0.2), (4, 0.2)], epochs=3, rate=1e30)
    for one in outcome.members:
        assert one.diverged
        assert one.best_epoch == 0
    assert all(weight.isfinite().all() for weight in outcome.stack.weights.values())


def test_a_member_that_is_lost_in_its_very_last_step_is_marked(sorting: Prepared) -> None:
    outcome = run(sorting, [(3, 0.2)], epochs=1, batch=200, rate=1e30)
    assert np.isfinite(outcome.members[0].history[0]["train loss"])
    assert outcome.members[0].diverged


# ---------------------------------------------------------------- stopping early


@pytest.mark.parametrize("lanes", ["apart", "side_by_side"])
@pytest.mark.usefixtures("fast_clock")
def test_a_member_that_stops_early_leaves_the_others_as_they_would_be(
    lanes: str, sorting: Prepared, request: pytest.FixtureRequest
) -> None:
    if lanes == "side_by_side":
        request.getfixturevalue(lanes)
    members = [(seed, 0.2) for seed in range(1, 6)]
    moments: list[Moment] = []
    a = architecture(sorting)
    patient = settings(epochs=7, rate=2e-2, patience=2)
    outcome = train(sorting, a, [member(a, *one) for one in members], patient, progress=moments.append)
    forever = run(sorting, members, epochs=7, rate=2e-2)
    lengths = [len(one.history) for one in outcome.members]
    # Which member stops when depends on the rounding of the machine. Some stop before others.
    assert len(set(lengths)) > 1
    assert any(one.stopped for one in outcome.members)
    for one, whole in zip(outcome.members, forever.members, strict=True):
        assert one.history == whole.history[: len(one.history)]
        scores = [record["accuracy"] for record in one.history]
        assert one.best_epoch == scores.index(max(scores)) + 1
        assert one.stopped == (len(one.history) - one.best_epoch == 2)
        assert one.stopped or len(one.history) == 7
    assert len(moments) == max(lengths)
    for moment in moments:
        assert moment.records is not None
        for one, record in zip(outcome.members, moment.records, strict=True):
            assert record == one.history[min(moment.epoch, len(one.history)) - 1]


@pytest.mark.usefixtures("fast_clock")
def test_when_all_have_stopped_it_is_over(sorting: Prepared) -> None:
    moments: list[Moment] = []
    a = architecture(sorting)
    still = settings(epochs=50, rate=1e-30, patience=3)
    outcome = train(sorting, a, [member(a, 1), member(a, 2)], still, progress=moments.append)
    # Nothing is learned, so the first epoch stays the best.
    assert [(one.best_epoch, len(one.history), one.stopped) for one in outcome.members] == [(1, 4, True)] * 2
    assert [moment.epoch for moment in moments] == [1, 2, 3, 4]


def test_members_apart_do_not_work_on_once_they_have_stopped(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: dict[int, list[int]] = {1: [], 2: []}
    step = Trainer.step

    def noted(self: Trainer, rows: Tensor, rooms: Rooms, number: int, epoch: int) -> None:
        steps[int(self.stack.seeds[0])].append(number)
        step(self, rows, rooms, number, epoch)

    monkeypatch.setattr(Trainer, "step", noted)
    a = architecture(copying)
    lost = Member(2, tuple(np.full((n, a.dim), np.nan, dtype=np.float32) for n in a.vocabularies))
    train(copying, a, [member(a, 1), lost], settings(patience=1))
    # What is dropped and how high the rate is go by a step's number, which counts on from epoch to epoch.
    assert steps == {1: list(range(3 * 13)), 2: list(range(13))}


# ---------------------------------------------------------------- records


def spread(stack: Stack, side: str) -> float:
    return float(stack.weights[f"{side}.embedding"].detach().numpy().astype(np.float64).std(ddof=1))


def distance(one: Tensor, other: Tensor) -> float:
    return float(np.linalg.norm((one - other).detach().numpy().astype(np.float64)))


def test_statistics_of_embeddings_and_positions_are_what_they_say(copying: Prepared) -> None:
    a = architecture(copying, positions="gained")
    start = Stack(a, [member(a, 1)])
    # Each of the first epochs is better than the last here, so that training for so many ends with its weights.
    after = [train(copying, a, [member(a, 1)], settings(epochs=epochs)) for epochs in (1, 2)]
    assert [outcome.members[0].best_epoch for outcome in after] == [1, 2]
    first, second = after[1].members[0].history
    assert after[0].members[0].history == [first]
    for record, before, now in ((first, start, after[0].stack), (second, after[0].stack, after[1].stack)):
        for side in ("source", "target"):
            moved = distance(now.weights[f"{side}.embedding"], before.weights[f"{side}.embedding"])
            assert moved > 0
            assert record[f"update, {side}"] == pytest.approx(moved, rel=1e-5)
            assert record[f"σ, {side}"] == pytest.approx(spread(now, side), rel=1e-5)
            assert record[f"gain, {side}"] == now.weights[f"{side}.gain"][0, 0].item() != 1


def test_a_classification_has_the_statistics_of_its_one_side(sorting: Prepared) -> None:
    record = run(sorting, [(1, 0.2)], epochs=1).members[0].history[0]
    assert list(record) == ["train loss", "valid loss", "accuracy", "σ, text", "update, text"]


def test_the_training_loss_is_the_mean_over_all_tokens_of_the_epoch(copying: Prepared) -> None:
    a = architecture(copying, dropout=0.0)
    # At this rate no weight moves, so that every step sees the same model.
    outcome = train(copying, a, [member(a, 1)], settings(epochs=2, rate=1e-30))
    total, count, _, _ = evaluate(outcome.stack, Batches(copying, "train", 50))
    for record in outcome.members[0].history:
        assert record["train loss"] == pytest.approx(float(total / count), rel=1e-6)
        assert record["update, source"] == 0


# ---------------------------------------------------------------- moments


@pytest.mark.usefixtures("slow_clock")
def test_moments_say_how_far_it_is(copying: Prepared) -> None:
    moments: list[Moment] = []
    a = architecture(copying)
    outcome = train(copying, a, [member(a, 1), member(a, 2)], settings(epochs=2), progress=moments.append)
    assert [(one.epoch, one.step) for one in moments] == [(epoch, step) for epoch in (1, 2) for step in range(1, 14)]
    assert {(one.epochs, one.steps) for one in moments} == {(2, 13)}
    assert [one.seconds for one in moments] == sorted({one.seconds for one in moments})
    assert all(one.sentences_per_second > 0 for one in moments)
    for one in moments:
        assert (one.records is None) == (one.step < 13)
    ends = [one.records for one in moments if one.records is not None]
    assert ends == [[member.history[epoch] for member in outcome.members] for epoch in range(2)]


def test_sentences_a_second_are_those_of_all_members(copying: Prepared) -> None:
    moments: list[Moment] = []
    a = architecture(copying)
    outcome = train(copying, a, [member(a, 1), member(a, 2)], settings(epochs=2), progress=moments.append)
    ends = [moment for moment in moments if moment.records is not None]
    seconds = [ends[0].seconds, ends[1].seconds - ends[0].seconds]
    for moment, own in zip(ends, seconds, strict=True):
        # The time that passes between the epochs is not counted.
        assert 2 * 203 / own <= moment.sentences_per_second < 3 * 2 * 203 / own
    assert outcome.seconds >= sum(seconds)


# ---------------------------------------------------------------- what does not fit


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"vocabularies": (5, 5)}, "with vocabularies of"),
        ({"length": 5}, "model.length is 5; set it to 7"),
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
