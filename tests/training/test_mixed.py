"""Members that differ in settings that change no shape train side by side, each as it would alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from embinit.models.model import Member
from embinit.prepared.folder import Prepared
from embinit.training import loop
from embinit.training.loop import Moment, Outcome, Stopped, train
from embinit.training.mixed import MixedUpdates
from embinit.training.options import PER_MEMBER, Training

from .made import architecture, member, same, settings

#: One or more values of every setting that members need not share, beside the shared values of `mixture`.
OWN: list[dict[str, object]] = [
    {},
    {"rate": 1e-3},
    {"warmup": 7, "schedule": "linear"},
    {"schedule": "cosine", "final_rate": 0.1},
    {"weight_decay": 0.3},
    {"weight_decay": 0.3, "decay_embeddings": False},
    {"clip": 0.05},
    {"frozen_epochs": 1, "weight_decay": 0.1, "clip": 0.5},
    {"frozen_epochs": -1},
    {"frozen_rows": "found", "weight_decay": 0.1},
    {"embedding_rate": 0.1, "found_rate": 0.3, "rate": 2e-3},
    {"smoothing": 0.2},
    {"dropout": 0.5},
    {"dropout": 0.0, "patience": 1, "rate": 1e-30},
]


def mixture(prepared: Prepared, places: list[int], **how: object) -> Outcome:
    """Return members of these settings, trained side by side; the last epochs have thawed embeddings."""
    a = architecture(prepared)
    members, trainings = [], []
    for place in places:
        own = dict(OWN[place])
        start = member(a, 1 + place % 2)
        found = tuple(np.arange(n) % 2 == 0 for n in a.vocabularies)
        kept = found if own.get("frozen_rows") == "found" else None
        members.append(replace(start, found=found, frozen=kept, dropout=own.pop("dropout", None)))
        trainings.append(settings(**own))
    return train(prepared, a, members, trainings, **how)  # type: ignore[arg-type]


def test_the_list_has_every_setting_of_a_member() -> None:
    assert {name for own in OWN for name in own} == {*PER_MEMBER, "dropout"}


def test_alone_and_beside_members_of_other_settings_the_bits_are_the_same(copying: Prepared) -> None:
    places = list(range(len(OWN)))
    together = mixture(copying, places)
    for place in places:
        alone = mixture(copying, [place])
        assert alone.members[0] == together.members[place]
        for name, weight in alone.stack.weights.items():
            assert torch.equal(weight[0], together.stack.weights[name][place]), (OWN[place], name)
    assert len({repr(one.history) for one in together.members}) == len(OWN)


def weights_of(outcome: Outcome, place: int) -> dict[str, torch.Tensor]:
    return {name: weight[place] for name, weight in outcome.stack.weights.items()}


@pytest.mark.usefixtures("side_by_side")
def test_members_of_other_settings_that_share_a_stack_learn_as_those_apart(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = list(range(len(OWN)))
    together = mixture(copying, places)
    monkeypatch.undo()
    apart = mixture(copying, places)
    a = architecture(copying)
    for place, (one, other) in enumerate(zip(together.members, apart.members, strict=True)):
        assert one.best_epoch == other.best_epoch, OWN[place]
        assert len(one.history) == len(other.history), OWN[place]
        for here, there in zip(one.history, other.history, strict=True):
            assert here == pytest.approx(there, rel=1e-3), OWN[place]
        start = member(a, 1 + place % 2)
        for side, matrix in zip(a.sides, start.matrices, strict=True):
            # A row that does not move in a member that is apart has the bits that it began with.
            still = (weights_of(apart, place)[f"{side}.embedding"].numpy(force=True) == matrix).all(axis=1)
            here = weights_of(together, place)[f"{side}.embedding"].numpy(force=True)
            assert (here[still] == matrix[still]).all(), OWN[place]
    assert any(one.stopped for one in together.members)
    assert together.members[8].history[-1]["update, source"] == 0


@pytest.mark.usefixtures("side_by_side")
def test_equal_settings_that_share_a_stack_take_the_path_of_one_setting(
    copying: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MixedUpdates, "update", lambda *_: pytest.fail("the members do not differ"))
    a = architecture(copying)
    members = [member(a, 1), member(a, 2)]
    one = train(copying, a, members, settings(epochs=2))
    assert same(one, train(copying, a, members, [settings(epochs=2), settings(epochs=2, smoothing=0.0)]))


@pytest.mark.usefixtures("side_by_side")
def test_settings_of_mixed_updates_give_torchs_adam(copying: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more member of another rate sends the first to the other way of updating: the same numbers, but for rounding."""
    for own in ({}, {"weight_decay": 0.3}, {"clip": 0.05}, {"warmup": 9, "schedule": "inverse_sqrt"}):
        a, options = architecture(copying), settings(epochs=2, **own)
        alone = train(copying, a, [member(a, 1)], options)
        beside = train(copying, a, [member(a, 1), member(a, 1)], [options, replace(options, rate=1e-4)])
        for name, weight in alone.stack.weights.items():
            if name.endswith((".qkv.bias", ".kv.bias")):
                continue  # a key's bias changes no share: its gradient is rounding alone, which Adam enlarges
            torch.testing.assert_close(beside.stack.weights[name][0], weight[0], rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("lanes", ["apart", "side_by_side"])
@pytest.mark.usefixtures("slow_clock")
def test_a_mixed_group_goes_on_from_its_checkpoint_to_the_same_bits(
    lanes: str, copying: Prepared, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if lanes == "side_by_side":
        request.getfixturevalue(lanes)
    places = [0, 1, 4, 7, 9]
    whole = mixture(copying, places)
    asked: list[Moment] = []

    def stopping() -> bool:
        # In the first epoch, when the embeddings of one member are frozen, and in the second.
        return len(asked) in (5, 17)

    for _ in range(2):
        with pytest.raises(Stopped):
            mixture(copying, places, checkpoint=tmp_path, progress=asked.append, stopping=stopping)
        asked.append(asked[-1])
    assert same(mixture(copying, places, checkpoint=tmp_path), whole)
    with pytest.raises(loop.checkpoints.Unusable):
        mixture(copying, [0, 1, 4, 8, 9], checkpoint=saved(tmp_path, copying, places))


def saved(folder: Path, prepared: Prepared, places: list[int]) -> Path:
    with pytest.raises(Stopped):
        mixture(prepared, places, checkpoint=folder / "other", stopping=lambda: True)
    return folder / "other"


def test_members_may_not_differ_in_settings_that_change_shapes(copying: Prepared) -> None:
    a = architecture(copying)
    for other in (Training(batch=32), Training(epochs=7)):
        with pytest.raises(ValueError, match="differ only in rate"):
            train(copying, a, [member(a, 1), member(a, 2)], [Training(), other])
    with pytest.raises(ValueError, match="2 members"):
        train(copying, a, [member(a, 1), Member(2, ())], [Training()])
