"""The progress of runs in a terminal without a live display: one line for each event."""

from __future__ import annotations

from pathlib import Path

import pytest

from embinit.cli.progress import Progress
from embinit.experiments.jobs import Group, read_jobs
from tests.experiments.made import planned


def test_each_group_says_how_many_runs_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = read_jobs(planned(tmp_path)).jobs
    first, second, last = groups = [Group(jobs[:2]), Group(jobs[2:3]), Group(jobs[3:])]
    with Progress() as progress:
        progress.planned(groups, 0)
        progress.started(first)
        progress.finished(first, [tmp_path, tmp_path])
        progress.started(second)
        progress.failed(second, "no memory")
        progress.started(last)
    lines = [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "2 runs side by side; 2 runs to follow",
        "2 runs done, 2 of 4",
        "1 run begins; 1 run to follow",
        "failed: no memory",
        "1 run begins",
    ]


def test_a_group_that_is_halved_does_not_count_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = read_jobs(planned(tmp_path)).jobs
    whole, other = groups = [Group(jobs[:2]), Group(jobs[2:])]
    first, second = whole.halves()
    with Progress() as progress:
        progress.planned(groups, 0)
        progress.started(whole)
        progress.started(first)
        progress.finished(first, [tmp_path])
        progress.started(second)
    lines = [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "2 runs side by side; 2 runs to follow",
        "1 run begins; 3 runs to follow",
        "1 run done, 1 of 4",
        "1 run begins; 2 runs to follow",
    ]
    assert len(other.jobs) == 2
