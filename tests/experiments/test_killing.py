"""A run that is killed again and again ends with the files of one that was left alone, bit for bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from embinit.experiments.execution.engine import execute
from embinit.experiments.execution.observer import Watch
from embinit.experiments.jobs import Group
from tests.experiments.made import BLOCK, HEAD, contents, environment, planned

ROWS, EPOCHS = 2500, 2


def execute_words(folder: Path, out: Path) -> list[object]:
    """Return the words of an executor that writes checkpoints often."""
    jobs = folder / "work" / "jobs.json"
    return ["embinit.experiments.execute", jobs, "--out", out, "--members", "2", "--every", "0.2"]


def run_words(folder: Path, out: Path) -> list[object]:
    """Return the words of `embinit run`, which prepares, plans and trains."""
    places = ["--data", folder / "data", "--vectors", folder / "vectors", "--work", out / ".work"]
    return ["embinit", "run", folder / "made.toml", "--runs", out, "--members", "2", *places]


def alive(words: list[object]) -> subprocess.Popen[str]:
    """Return a command that has begun to train, or has ended; it leads a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "members begin" in line or "side by side" in line:
            break
    return process


def kill(process: subprocess.Popen[str], alone: bool) -> None:
    """Kill a command: all of its processes, or the parent alone, so that its workers have to notice."""
    with suppress(ProcessLookupError):
        if alone:
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def killed_run(words: list[object], kills: int, seed: int, alone: bool) -> int:
    """Kill a command at random moments, this number of times; then let it finish. Return the kills during its work."""
    rng, hit = random.Random(seed), 0
    while hit < kills:
        process = alive(words)
        killer = threading.Timer(rng.uniform(0, 1.2), kill, (process, alone))
        killer.start()
        _, said = process.communicate()
        killer.cancel()
        if process.returncode == 0:
            break
        assert process.returncode == -9, said
        hit += 1
    last = alive(words)
    _, said = last.communicate(timeout=600)
    assert last.returncode == 0, said
    return hit


def check(tmp_path: Path, kills: int, seed: int, epochs: int, how: str = "execute") -> None:
    head = HEAD.replace("training.epochs = 2", f"training.epochs = {epochs}")
    jobs = planned(tmp_path, BLOCK, head, ROWS)
    assert len(execute(jobs, tmp_path / "quiet", members=2).written) == 4
    words = (run_words if how == "run" else execute_words)(tmp_path, tmp_path / "killed")
    # A fast machine may be through before the last of them.
    assert killed_run(words, kills, seed, alone=how == "parent alone") > kills / 2
    quiet, killed = contents(tmp_path / "quiet"), contents(tmp_path / "killed")
    assert len(quiet) == 4 * 5
    assert sorted(killed) == sorted(quiet)
    assert [name for name in quiet if killed[name] != quiet[name]] == []
    assert not list((tmp_path / "killed").glob("*.failed.json"))
    assert not list((tmp_path / "killed").glob(".*.part"))


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
@pytest.mark.parametrize(("how", "kills"), [("execute", 40), ("run", 20), ("parent alone", 40)])
def test_a_hundred_kills_leave_no_trace(how: str, kills: int, tmp_path: Path) -> None:
    check(tmp_path, kills=kills, seed=2, epochs=20, how=how)
