"""Checkpoints: stopped or killed at any moment, a training goes on as if nothing had been."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from embinit.errors import EmbinitError
from embinit.models.model import Member
from embinit.prepared.folder import Prepared
from embinit.training import checkpoint
from embinit.training.loop import Outcome, Stopped, train

from .made import architecture, eventful, member, same, settings

ROOT = Path(__file__).parents[2]
NAME, EARLIER = "checkpoint.safetensors", "earlier.safetensors"


def after(moments: int) -> Callable[[], bool]:
    """Return a function that asks to stop after so many moments."""
    left = iter(range(moments))
    return lambda: next(left, None) is None


def with_stops(training: Callable[..., Outcome], folder: Path, stops: Iterator[int]) -> tuple[Outcome, int]:
    """Return what came out of a training that was stopped after so many moments each time, and how often it was."""
    for count, moments in enumerate(stops):
        try:
            return training(checkpoint=folder, every=1e9, stopping=after(moments)), count
        except Stopped:
            continue
    raise AssertionError("it never came to its end")


def classified(sorting: Prepared, **how: object) -> Outcome:
    """Return a member of a training that takes little time: 13 steps in each of three epochs."""
    a = architecture(sorting)
    return train(sorting, a, [member(a, 1)], settings(), **how)  # type: ignore[arg-type]


def header(path: Path) -> dict[str, dict[str, object]]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    found: dict[str, dict[str, object]] = json.loads(content[8 : 8 + size])
    return found


@pytest.fixture(scope="module")
def undisturbed(copying: Prepared) -> Outcome:
    return eventful(copying)


# ---------------------------------------------------------------- going on


def test_much_happens_in_what_is_disturbed_here(undisturbed: Outcome) -> None:
    first, second, lost = undisturbed.members
    assert [len(one.history) for one in (first, second, lost)] == [3, 3, 1]
    assert (lost.diverged, lost.stopped) == (True, True)
    for one in (first, second):
        assert [record["update, source"] > 0 for record in one.history] == [False, True, True]
        assert one.history[-1]["gain, source"] != 1
        assert one.best_epoch == 3


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("slow_clock")
def test_stopped_at_random_moments_it_gives_the_same_bits(
    seed: int, copying: Prepared, undisturbed: Outcome, tmp_path: Path
) -> None:
    stops = iter(np.random.default_rng(seed).integers(0, 14, 30).tolist())
    outcome, count = with_stops(lambda **how: eventful(copying, **how), tmp_path, stops)
    assert count >= 3
    assert same(outcome, undisturbed)


@pytest.mark.usefixtures("slow_clock", "side_by_side")
def test_members_that_share_a_stack_are_each_restored(copying: Prepared, tmp_path: Path) -> None:
    expected = eventful(copying)
    assert [len(one.history) for one in expected.members] == [3, 3, 1]
    outcome, count = with_stops(lambda **how: eventful(copying, **how), tmp_path, iter([4, 10, 13, 100]))
    assert count == 3
    assert same(outcome, expected)


@pytest.mark.usefixtures("slow_clock")
def test_stopped_after_every_single_step_it_gives_the_same_bits(sorting: Prepared, tmp_path: Path) -> None:
    outcome, count = with_stops(lambda **how: classified(sorting, **how), tmp_path, iter([0] * 40))
    assert count == 3 * 13
    assert same(outcome, classified(sorting))


@pytest.mark.usefixtures("fast_clock")
def test_stopped_before_its_first_step_or_after_its_last_it_goes_on(
    copying: Prepared, undisturbed: Outcome, tmp_path: Path
) -> None:
    assert same(eventful(copying, checkpoint=tmp_path / "never there"), undisturbed)
    with pytest.raises(Stopped, match="stopped in epoch 3 of 3"):
        eventful(copying, checkpoint=tmp_path, stopping=after(2))
    assert same(eventful(copying, checkpoint=tmp_path, progress=lambda _: pytest.fail("a step")), undisturbed)


def test_without_a_checkpoint_it_stops_all_the_same(copying: Prepared) -> None:
    with pytest.raises(Stopped, match="stopped in epoch 1 of 3"):
        eventful(copying, stopping=lambda: True)


def test_killed_in_the_middle_of_a_save_it_gives_the_same_bits(
    copying: Prepared, undisturbed: Outcome, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.killed", copying.path, tmp_path],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    # Each of the first two left half of a file beside the last whole one; the next save cleared it away.
    assert [line.split()[0] for line in lines] == [
        "before_the_second_is_in_place",
        "after_half_of_the_bytes",
        "between_two_steps",
    ]
    assert [line.count(".part") for line in lines] == [1, 1, 0]
    assert (tmp_path / NAME).is_file()
    epochs = set()
    outcome = eventful(copying, checkpoint=tmp_path, progress=lambda moment: epochs.add(moment.epoch))
    assert epochs == {3}
    assert same(outcome, undisturbed)


# ---------------------------------------------------------------- when


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Epoch and step of every save."""
    found: list[tuple[int, int]] = []
    save = checkpoint.save

    def noted(folder: Path, tensors: dict[str, torch.Tensor], facts: dict[str, int]) -> None:
        found.append((facts["epoch"], facts["step"]))
        save(folder, tensors, facts)

    monkeypatch.setattr(checkpoint, "save", noted)
    return found


@pytest.mark.usefixtures("fast_clock")
def test_zero_seconds_are_every_epoch(sorting: Prepared, tmp_path: Path, saved: list[tuple[int, int]]) -> None:
    classified(sorting, checkpoint=tmp_path, every=0)
    assert saved == [(1, 0), (2, 0), (3, 0)]


@pytest.mark.usefixtures("slow_clock")
def test_zero_seconds_are_no_more_than_every_epoch(
    sorting: Prepared, tmp_path: Path, saved: list[tuple[int, int]]
) -> None:
    classified(sorting, checkpoint=tmp_path, every=0)
    assert saved == [(1, 0), (2, 0), (3, 0)]


@pytest.mark.usefixtures("slow_clock")
def test_so_many_seconds_are_in_the_middle_of_an_epoch_too(
    sorting: Prepared, tmp_path: Path, saved: list[tuple[int, int]]
) -> None:
    classified(sorting, checkpoint=tmp_path, every=25)
    assert any(step for _, step in saved)
    # The loop looks at the clock three or four times a step, and each time a second has passed.
    steps = [13 * epoch + step for epoch, step in saved]
    assert all(6 <= later - earlier <= 9 for earlier, later in pairwise(steps))
    assert len(steps) >= 4


@pytest.mark.usefixtures("slow_clock")
def test_writing_takes_no_more_than_a_twentieth_of_the_time(
    sorting: Prepared, tmp_path: Path, saved: list[tuple[int, int]]
) -> None:
    # A save takes a second by this clock, so that each second would be too often.
    classified(sorting, checkpoint=tmp_path, every=1)
    steps = [13 * epoch + step for epoch, step in saved]
    assert all(5 <= later - earlier <= 7 for earlier, later in pairwise(steps))
    assert len(steps) >= 5


@pytest.mark.usefixtures("fast_clock")
def test_a_short_training_writes_none(sorting: Prepared, tmp_path: Path) -> None:
    classified(sorting, checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the file


def test_it_is_a_plain_safetensors_file(sorting: Prepared, tmp_path: Path) -> None:
    classified(sorting, checkpoint=tmp_path, every=0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, EARLIER]
    entries = header(tmp_path / NAME)
    facts = json.loads(entries.pop("__metadata__")["facts"])  # type: ignore[arg-type]
    assert facts["epoch"] == 3
    assert {entry["dtype"] for entry in entries.values()} <= {"F32", "F64", "I64"}
    for entry in entries.values():
        first, _ = entry["data_offsets"]  # type: ignore[misc]
        assert first % {"F32": 4}.get(str(entry["dtype"]), 8) == 0
    with safe_open(tmp_path / NAME, framework="numpy") as file:
        assert set(file.keys()) == set(entries)
        assert file.get_tensor("0 weight output.bias").shape == (2,)


def test_tensors_and_facts_come_back(tmp_path: Path) -> None:
    tensors = {
        "odd": torch.arange(3, dtype=torch.float32) / 7,
        "wide": torch.tensor([[1.0, torch.pi]], dtype=torch.float64),
        "turned": torch.arange(6, dtype=torch.float32).view(2, 3).T,
        "whole": torch.tensor([2**60 + 1]),
    }
    checkpoint.save(tmp_path / "new" / "folder", tensors, {"a": [1, 0.1, float("inf")], "σ": None})
    found = checkpoint.load(tmp_path / "new" / "folder")
    assert found is not None
    assert found[1] == {"a": [1, 0.1, float("inf")], "σ": None}
    assert set(found[0]) == set(tensors)
    for name, tensor in tensors.items():
        assert found[0][name].dtype == tensor.dtype
        assert torch.equal(found[0][name], tensor)


def test_where_there_is_none_none_is_found(tmp_path: Path) -> None:
    assert checkpoint.load(tmp_path) is None
    assert checkpoint.load(tmp_path / "nowhere") is None


# ---------------------------------------------------------------- what is refused


def other(copying: Prepared, what: str, folder: Path) -> Outcome:
    """Return a training of two members that differs from the plain one in something."""
    a = architecture(copying, dropout=0.2) if what == "model" else architecture(copying)
    members = [member(a, 1), replace(member(a, 2), seed=1)]
    kept = (None, np.arange(a.vocabularies[1]) > 5)
    if what == "seed":
        members[1] = replace(members[1], seed=2)
    if what == "matrices":
        members[1] = Member(1, (members[1].matrices[0], members[1].matrices[1] + np.float32(1)))
    if what == "places":
        members.reverse()
    if what == "frozen rows":
        members[1] = replace(members[1], frozen=kept)
    if what == "found rows":
        members[1] = replace(members[1], found=kept)
    training = [settings(epochs=1, rate=1e-3 if what == "training" else 2e-3) for _ in members]
    if what == "a member's rate":
        training[1] = replace(training[1], embedding_rate=0.5)
    if what == "a member's rate of found rows":
        training[1] = replace(training[1], found_rate=0.5)
    if what == "fewer members":
        members.pop()
        training.pop()
    return train(copying, a, members, training, checkpoint=folder, every=0)


@pytest.mark.parametrize(
    "what",
    [
        "model", "training", "seed", "matrices", "places", "frozen rows", "found rows", "a member's rate",
        "a member's rate of found rows", "fewer members",
    ],
)  # fmt: skip
def test_a_checkpoint_of_another_training_is_refused(what: str, copying: Prepared, checkpointed: Path) -> None:
    before = (checkpointed / NAME).read_bytes()
    other(copying, "none", checkpointed)
    with pytest.raises(EmbinitError, match="has a checkpoint of other members or settings; remove it to begin again"):
        other(copying, what, checkpointed)
    assert (checkpointed / NAME).read_bytes() == before


def test_members_that_differ_only_in_rates_of_rows_have_the_identity_of_earlier_versions(
    copying: Prepared, tmp_path: Path
) -> None:
    other(copying, "a member's rate", tmp_path)
    stored = checkpoint.load(tmp_path)
    assert stored is not None
    identity = stored[1]["identity"]
    assert set(identity) == {"architecture", "training", "seeds", "rates", "prepared", "starts"}
    assert identity["rates"] == [[1.0, 1.0], [0.5, 1.0]]


@pytest.fixture(scope="module")
def checkpointed(copying: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint of the plain training."""
    folder = tmp_path_factory.mktemp("checkpointed")
    other(copying, "none", folder)
    return folder


def framed(text: str) -> bytes:
    return len(text).to_bytes(8, "little") + text.encode()


@pytest.mark.parametrize(
    "left", [0, 7, 100, 0.5, 0.999, framed("{}"), framed('{"__metadata__":{"facts":"[1]"}}'), b"x" * 99]
)
def test_a_damaged_file_is_told_so(left: float | bytes, copying: Prepared, checkpointed: Path, tmp_path: Path) -> None:
    whole = (checkpointed / NAME).read_bytes()
    if not isinstance(left, bytes):
        left = whole[: int(left * len(whole)) if isinstance(left, float) else left]
    (tmp_path / NAME).write_bytes(left)
    with pytest.raises(EmbinitError, match=f"{tmp_path / NAME} is damaged .*; remove it to begin again"):
        other(copying, "none", tmp_path)
    assert (tmp_path / NAME).read_bytes() == left


@pytest.mark.parametrize("place", [4, 40, 150, 0.1, 0.5, 0.9, -1])
def test_one_changed_bit_is_seen(place: float, copying: Prepared, checkpointed: Path, tmp_path: Path) -> None:
    content = bytearray((checkpointed / NAME).read_bytes())
    content[int(place * len(content)) if isinstance(place, float) else place] ^= 1
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(checkpoint.Unusable):
        other(copying, "none", tmp_path)


def test_changed_facts_are_seen(copying: Prepared, checkpointed: Path, tmp_path: Path) -> None:
    content = (checkpointed / NAME).read_bytes()
    changed = content.replace(b'\\"best_epoch\\": 1', b'\\"best_epoch\\": 2', 1)
    assert changed != content
    (tmp_path / NAME).write_bytes(changed)
    with pytest.raises(checkpoint.Unusable):
        other(copying, "none", tmp_path)


@pytest.mark.usefixtures("fast_clock")
def test_the_checkpoint_before_a_damaged_one_gives_the_same_bits(
    copying: Prepared, undisturbed: Outcome, tmp_path: Path
) -> None:
    with pytest.raises(Stopped):
        eventful(copying, checkpoint=tmp_path, every=0, stopping=after(2))
    last = tmp_path / NAME
    last.write_bytes(last.read_bytes()[:-9])
    with pytest.raises(checkpoint.Unusable):
        eventful(copying, checkpoint=tmp_path)
    assert checkpoint.discard(tmp_path)
    epochs: set[int] = set()
    assert same(eventful(copying, checkpoint=tmp_path, progress=lambda moment: epochs.add(moment.epoch)), undisturbed)
    assert min(epochs) > 1
    checkpoint.discard(tmp_path)
    assert not checkpoint.discard(tmp_path)
    assert checkpoint.load(tmp_path) is None


def test_no_more_than_two_checkpoints_are_kept(tmp_path: Path) -> None:
    for number in range(4):
        checkpoint.save(tmp_path, {"a": torch.ones(3)}, {"number": number})
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, EARLIER]
    for number in (3, 2):
        found = checkpoint.load(tmp_path)
        assert found is not None
        assert found[1] == {"number": number}
        checkpoint.discard(tmp_path)


# ---------------------------------------------------------------- writes that fail


@contextmanager
def files_of_at_most(count: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_old_checkpoint(copying: Prepared, undisturbed: Outcome, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        eventful(copying, checkpoint=tmp_path, stopping=lambda: True)
    before = (tmp_path / NAME).read_bytes()
    with files_of_at_most(len(before) // 2), pytest.raises(EmbinitError, match=f"cannot write {tmp_path / NAME}: File"):
        eventful(copying, checkpoint=tmp_path, every=0)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).read_bytes() == before
    assert same(eventful(copying, checkpoint=tmp_path), undisturbed)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_leaves_the_old_checkpoint(copying: Prepared, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        eventful(copying, checkpoint=tmp_path, stopping=lambda: True)
    before = (tmp_path / NAME).read_bytes()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(EmbinitError, match=f"cannot write {tmp_path / NAME}: Permission denied"):
            eventful(copying, checkpoint=tmp_path, every=0)
    finally:
        tmp_path.chmod(0o700)
    assert (tmp_path / NAME).read_bytes() == before


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    tensors = {"a": torch.ones(3)}
    (tmp_path / "file").write_text("mine")
    with pytest.raises(EmbinitError, match=r"cannot write .*file"):
        checkpoint.save(tmp_path / "file", tensors, {})
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / NAME).mkdir()
    with pytest.raises(EmbinitError, match="is a folder"):
        checkpoint.save(tmp_path, tensors, {})
    assert (tmp_path / NAME).is_dir()


def test_a_tensor_of_another_kind_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"a": torch.ones(3)}, {})
    with pytest.raises(KeyError):
        checkpoint.save(tmp_path, {"a": torch.ones(3, dtype=torch.bfloat16)}, {})
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert torch.equal(found[0]["a"], torch.ones(3))
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
