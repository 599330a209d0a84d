"""Estimates grow as they should, and say what fits."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.experiments.execution import checkpoints, engine
from embinit.experiments.execution import cost as execution_cost
from embinit.experiments.execution.cost import cost, group_cost, groups_at_once, members_that_fit
from embinit.experiments.execution.worker import Work
from embinit.experiments.jobs import Group, read_jobs
from embinit.experiments.spec import Spec
from embinit.experiments.status import estimate
from embinit.prepared.folder import open_prepared
from tests.experiments.made import planned


def changed(spec: Spec, part: str, **values: object) -> Spec:
    settings = {**dict(getattr(spec, part)), **values}
    return replace(spec, **{part: tuple(sorted(settings.items()))})  # type: ignore[arg-type]


def test_more_work_is_more_time_and_memory(tmp_path: Path) -> None:
    job = read_jobs(planned(tmp_path)).jobs[0]
    prepared = open_prepared(job.task)
    for kind in ("cpu", "cuda"):
        base = cost(job.spec, prepared, kind)
        assert base.seconds(2) > base.seconds(1) > 0
        assert cost(changed(job.spec, "training", epochs=4), prepared, kind).seconds(1) > 1.5 * base.seconds(1)
        larger = cost(changed(job.spec, "model", dim=64, feedforward=512), prepared, kind)
        assert larger.each > base.each
        assert larger.memory > base.memory
    assert 1 <= members_that_fit(job, "cpu") <= members_that_fit(job, "cuda")


def test_wide_models_have_faster_products_on_a_card(tmp_path: Path) -> None:
    job = read_jobs(planned(tmp_path)).jobs[0]
    prepared = open_prepared(job.task)
    grown = {
        kind: cost(changed(job.spec, "model", dim=4096), prepared, kind).each
        / cost(changed(job.spec, "model", dim=1024), prepared, kind).each
        for kind in ("cpu", "cuda")
    }
    assert grown["cuda"] < 0.8 * grown["cpu"]


def test_what_is_done_costs_nothing(tmp_path: Path) -> None:
    jobs = read_jobs(planned(tmp_path)).jobs
    whole = estimate(jobs, tmp_path / "runs", None, "cuda")
    assert (whole.runs, whole.groups) == (4, 1)
    done = tmp_path / "runs" / jobs[0].key
    done.mkdir(parents=True)
    (done / "run.json").touch()
    rest = estimate(jobs, tmp_path / "runs", 1, "cuda")
    assert (rest.runs, rest.groups) == (3, 3)
    assert rest.memory == pytest.approx(2 * whole.memory / 4)  # two groups of one member at once


def test_a_card_works_on_two_groups_at_once_if_its_memory_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_jobs(planned(tmp_path)).jobs
    groups = [Group(plan[:2]), Group(plan[2:3]), Group(plan[3:])]
    two, one, _ = (group_cost(group, "cuda")[1] for group in groups)
    monkeypatch.setattr(execution_cost, "_constants", lambda: {"cuda": {**constants, "process": 0.5 * one}})
    constants = tomllib.loads(Path(execution_cost.__file__).with_name("cost.toml").read_text())["cuda"]

    def at_once(memory: float) -> int:
        monkeypatch.setattr(execution_cost, "_memory", lambda _: memory / constants["share"])
        return groups_at_once(groups, "cuda:1")

    # The two largest groups, and half a member's memory for each process.
    assert at_once(1.001 * (two + one + one)) == 2
    assert at_once(0.999 * (two + one + one)) == 1
    assert at_once(0.0) == 1
    assert at_once(1e18) == constants["at_once"] == 2
    assert groups_at_once(groups[:1], "cuda") == 1
    assert groups_at_once(groups, "cpu") == 1


@pytest.mark.parametrize(("memory", "asked", "processes"), [(1e18, None, 2), (0.0, None, 1), (0.0, 2, 2), (1e18, 1, 1)])
def test_execute_shares_a_card_between_groups_unless_it_is_told_otherwise(
    memory: float, asked: int | None, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No card is needed: the groups reach their processes, or the one process, and stop there."""
    jobs = planned(tmp_path)
    monkeypatch.setattr(execution_cost, "_memory", lambda _: memory)
    monkeypatch.setattr(engine, "device_of", lambda _: "cuda")
    monkeypatch.setattr(checkpoints, "members_that_fit", lambda *_: 2)  # so that four runs are two groups
    handed: list[tuple[int, list[int]]] = []

    def in_processes(groups: list[Group], work: Work, workers: int) -> None:
        handed.append((workers, [len(group.jobs) for group in groups]))

    def alone(self: Work, group: Group) -> None:
        handed.append((1, [len(group.jobs)]))

    monkeypatch.setattr(engine, "in_processes", in_processes)
    monkeypatch.setattr(Work, "run", alone)
    engine.execute(jobs, tmp_path / "runs", workers=asked)
    assert {workers for workers, _ in handed} == {processes}
    sizes = [size for _, own in handed for size in own]
    # Groups are divided among workers that were asked for; by default they stay as large as one process makes them.
    assert sizes == ([1] * 4 if asked == 2 else [2, 2])
