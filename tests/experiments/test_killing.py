"""A run that is killed again and again ends with the files of one that was left alone, bit for bit."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from embinit.experiments.execution.engine import execute
from embinit.experiments.execution.observer import Watch
from embinit.experiments.jobs import Group
from tests.experiments.made import BLOCK, HEAD, contents, environment, planned

ROWS, EPOCHS = 2500, 2


def alive(jobs: Path, out: Path) -> subprocess.Popen[str]:
    """Return an executor that has begun to train, or has ended."""
    words = ["-m", "embinit.experiments.execute", jobs, "--out", out, "--members", "2", "--every", "0.2"]
    process = subprocess.Popen(
        [sys.executable, *map(str, words)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "members begin" in line:
            break
    return process


def killed_run(jobs: Path, out: Path, kills: int, seed: int) -> int:
    """Kill executors at random moments, so often; then let one finish. Return how many were killed in their work."""
    rng, hit = random.Random(seed), 0
    while hit < kills:
        process = alive(jobs, out)
        killer = threading.Timer(rng.uniform(0, 1.2), process.kill)
        killer.start()
        _, said = process.communicate()
        killer.cancel()
        if process.returncode == 0:
            break
        assert process.returncode == -9, said
        hit += 1
    assert alive(jobs, out).wait(timeout=300) == 0
    return hit


def check(tmp_path: Path, kills: int, seed: int, epochs: int) -> None:
    head = HEAD.replace("training.epochs = 2", f"training.epochs = {epochs}")
    jobs = planned(tmp_path, BLOCK, head, ROWS)
    assert len(execute(jobs, tmp_path / "quiet", members=2).written) == 4
    # A fast machine may be through before the last of them.
    assert killed_run(jobs, tmp_path / "killed", kills, seed) > kills / 2
    quiet, killed = contents(tmp_path / "quiet"), contents(tmp_path / "killed")
    assert len(quiet) == 4 * 5
    assert sorted(killed) == sorted(quiet)
    assert [name for name in quiet if killed[name] != quiet[name]] == []
    assert not list((tmp_path / "killed").glob("*.failed.json"))


def test_a_stop_in_the_middle_of_an_epoch_leaves_no_trace(tmp_path: Path) -> None:
    jobs = planned(tmp_path, rows=ROWS // 2)
    execute(jobs, tmp_path / "quiet", workers=1)
    steps: list[int] = []

    class Listening(Watch):
        def moment(self, group: Group, moment: Any) -> None:
            steps.append(moment.step if moment.records is None else 0)

    assert execute(jobs, tmp_path / "stopped", workers=1, watch=Listening(), stopping=lambda: bool(steps)).stopped
    assert steps[0] > 0
    assert len(execute(jobs, tmp_path / "stopped", workers=1).written) == 4
    assert contents(tmp_path / "stopped") == contents(tmp_path / "quiet")


def test_two_kills_leave_no_trace(tmp_path: Path) -> None:
    check(tmp_path, kills=2, seed=1, epochs=EPOCHS)


@pytest.mark.long
def test_twenty_kills_leave_no_trace(tmp_path: Path) -> None:
    check(tmp_path, kills=20, seed=2, epochs=8)
