"""Every check on every kind of task: members are independent, trainings go on bit for bit, Ray gives the same files."""

from __future__ import annotations

import io
import itertools
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import torch

import embinit
from embinit.experiments.execution.engine import execute
from embinit.experiments.execution.ray.board import Board
from embinit.experiments.execution.ray.parcels import order_of, parcel_of
from embinit.experiments.execution.ray.task import train_group
from embinit.experiments.jobs import read_jobs
from embinit.models.model import Member
from embinit.prepared.folder import Prepared
from embinit.training import loop
from embinit.training.loop import Stopped, train
from embinit.types import TaskKind
from tests.experiments.made import HEAD, WORDS, planned
from tests.training.made import (
    architecture,
    copying_task,
    eventful,
    member,
    run,
    same,
    settings,
    sorting_task,
    text_task,
)

KINDS: tuple[TaskKind, ...] = get_args(TaskKind)
EVERY = pytest.mark.parametrize("kind", KINDS)
LANES = pytest.mark.parametrize("together", [False, True], ids=["apart", "side by side"])
_EXPERIMENT = """
[tasks.text]
name = "files"
kind = "language_model"
path = "counting"
tokenizer = "whitespace"
[tasks.masked]
name = "files"
kind = "masked_language_model"
path = "counting"
tokenizer = "whitespace"
[[block]]
name = "one"
task = "{task}"
grid.recipe = ["xavier", "pretrained"]
grid.seed = [1, 2]
"""
_TASKS = {
    "translation": "copying", "classification": "sorting", "language_model": "text", "masked_language_model": "masked",
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Prepared]:
    folder = tmp_path_factory.mktemp("tasks")
    return {
        "translation": copying_task(folder),
        "classification": sorting_task(folder),
        "language_model": text_task(folder),
        "masked_language_model": text_task(folder, masked=True),
    }


def shared(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all members share one stack, as on CUDA."""
    if together:
        monkeypatch.setattr(loop, "_lanes", lambda members, _: [list(range(members))])


def test_every_kind_is_checked(tasks: dict[str, Prepared]) -> None:
    assert {kind: prepared.task for kind, prepared in tasks.items()} == {kind: kind for kind in KINDS}


@EVERY
def test_a_member_alone_and_among_others_gives_the_same_bits(kind: str, tasks: dict[str, Prepared]) -> None:
    members = [(1, 0.2), (2, 0.2), (1, 2.0)]
    together = run(tasks[kind], members, epochs=2)
    for place, one in enumerate(members):
        alone = run(tasks[kind], [one], epochs=2)
        assert alone.members[0].history == together.members[place].history
        for name, weight in alone.stack.weights.items():
            assert torch.equal(weight[0], together.stack.weights[name][place])


@EVERY
@LANES
def test_a_member_that_is_lost_leaves_the_others_alone(
    kind: str, together: bool, tasks: dict[str, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared(together, monkeypatch)
    a = architecture(tasks[kind])
    lost = Member(2, tuple(np.full((n, a.dim), np.nan, dtype=np.float32) for n in a.vocabularies))
    outcome = train(tasks[kind], a, [member(a, 1), lost], settings(epochs=2))
    healthy = train(tasks[kind], a, [member(a, 1), member(a, 2)], settings(epochs=2))
    assert [one.diverged for one in outcome.members] == [False, True]
    assert outcome.members[1].best_epoch == 0
    assert outcome.members[0] == healthy.members[0]


@EVERY
@LANES
def test_stopped_and_resumed_it_gives_the_same_bits(
    kind: str, together: bool, tasks: dict[str, Prepared], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared(together, monkeypatch)
    expected = eventful(tasks[kind])
    asked = iter([False, True, False, False, True])  # after these moments
    ticks = itertools.count()
    monkeypatch.setattr(
        loop, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    )  # every step is a moment
    stops = 0
    while True:
        try:
            outcome = eventful(
                tasks[kind], checkpoint=tmp_path / "state", every=1e9, stopping=lambda: next(asked, False)
            )
            break
        except Stopped:
            stops += 1
    assert stops == 2
    assert same(outcome, expected)


@EVERY
def test_on_ray_a_group_gives_the_files_of_the_local_engine(kind: str, tmp_path: Path) -> None:
    (tmp_path / "data" / "counting").mkdir(parents=True)
    for split in ("train", "valid", "test"):
        lines = [" ".join(WORDS[: 1 + i % 9]) for i in range(30)]
        (tmp_path / "data" / "counting" / f"{split}.txt").write_text("\n".join(lines) + "\n")
    jobs = planned(tmp_path, _EXPERIMENT.format(task=_TASKS[kind]), HEAD)
    keys = [job.key for job in read_jobs(jobs).jobs]
    assert len(keys) == 4
    execute(jobs, tmp_path / "runs", device="cpu", workers=1)
    local = {path.name: path for path in (tmp_path / "runs").iterdir() if path.name in keys}
    order = order_of(json.loads(jobs.read_text()), keys)
    parcels = [parcel_of(jobs.parent, path) for path in order.paths]
    made = train_group(0, embinit.__version__, order.jobs, "cpu", Board(), *parcels)
    with tarfile.open(fileobj=io.BytesIO(made.archive)) as tar:
        tar.extractall(tmp_path / "ray", filter="data")
    for key, folder in local.items():
        for file in folder.iterdir():
            if file.name != "run.json":
                assert (tmp_path / "ray" / key / file.name).read_bytes() == file.read_bytes()
    assert local.keys() == set(keys)
