"""Estimates grow as they should, and say what fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from embinit.experiments.execution.cost import cost, members_that_fit
from embinit.experiments.jobs import read_jobs
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
    assert rest.memory == pytest.approx(whole.memory / 4)
