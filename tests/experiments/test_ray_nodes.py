"""Two nodes on loopback, as in docs/how-to/cluster.md: a lost worker or node leaves no trace in the results."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from embinit.experiments.execution.engine import execute
from embinit.experiments.plan import specs_of, write_plan
from tests.experiments.made import BLOCK, HEAD, contents, environment, places, resolved, written

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'embinit[ray]'"),
]

ROWS, EPOCHS, SECONDS = 1500, 5, 120.0


def until(what: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> Any:
    """Return what is true at last; a process that ends before is an error."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def titles(parent: int) -> dict[int, str]:
    """Return the children of a process with their titles."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if int((path / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found[int(path.name)] = (path / "cmdline").read_text().rstrip("\0").replace("\0", " ")
        except OSError:
            continue
    return found


class Nodes:
    """A head and a second node, one core each, with a token of their own."""

    def __init__(self, folder: Path) -> None:
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment = {**environment(), **token, "RAY_USAGE_STATS_ENABLED": "0"}
        # Where workers that are killed leave their folders.
        self.environment["TMPDIR"] = str(folder)
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> None:
        """Start both, as docs/how-to/cluster.md says; further words are the second's."""
        port = self.address.partition(":")[2]
        self._start("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self._folder}")
        self._start(f"--address={self.address}", "--node-ip-address=127.0.0.2", *words)

    def _start(self, *words: str) -> None:
        line = [sys.executable, "-m", "ray.scripts.scripts", "start", *words]
        line += ["--num-cpus=1", "--object-store-memory=100000000", "--block"]
        log = self._folder / f"node{len(self.started)}.log"
        with log.open("w") as out:
            process = subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT, text=True, env=self.environment)
        self.started.append(process)
        until(lambda: "Ray runtime started" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()

    def raylet(self, node: int) -> int:
        """Return the process that manages a node."""
        children = titles(self.started[node].pid).items()
        return next(pid for pid, title in children if "raylet/raylet" in title.split(" ")[0])

    def workers(self, node: int) -> dict[int, str]:
        """Return a node's processes at work on a group."""
        return {pid: title for pid, title in titles(self.raylet(node)).items() if title.startswith("ray::embinit ")}

    def end(self) -> None:
        """End what was started, the head last."""
        for process in reversed(self.started):
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture
def short() -> Iterator[Path]:
    """Yield a folder for Ray's sockets, whose paths must be short."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def nodes(request: pytest.FixtureRequest, short: Path) -> Iterator[Nodes]:
    made = Nodes(short)
    try:
        made.start(*getattr(request, "param", ()))
        yield made
    finally:
        made.end()


@dataclass
class Small:
    """A small experiment, what the local engine makes of it, and the runs of the test."""

    words: list[str]
    expected: dict[str, bytes]
    runs: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *words: str, env: dict[str, str]) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        line = [*self.words, "--runs", str(self.runs), *words]
        self.started.append(subprocess.Popen(line, env=env, start_new_session=True, **pipes))
        return self.started[-1]

    def in_training(self) -> list[str]:
        """Return the groups of which an epoch is known."""
        return [path.parent.name for path in self.runs.glob(".checkpoints/*/progress.json")]

    def finished(self) -> list[Path]:
        return list(self.runs.glob("*/run.json"))

    def check(self) -> None:
        found = contents(self.runs)
        assert sorted(found) == sorted(self.expected)
        assert [name for name in found if found[name] != self.expected[name]] == []
        assert not list(self.runs.glob("*.failed.json"))
        assert not list(self.runs.glob(".checkpoints/*"))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], dict[str, bytes]]:
    """Return the command that runs the experiment, and the local engine's files."""
    folder = tmp_path_factory.mktemp("planned")
    where = places(folder, ROWS)
    file = written(folder, BLOCK, HEAD.replace("training.epochs = 2", f"training.epochs = {EPOCHS}"))
    made = resolved(file, where)
    jobs = write_plan(made, specs_of(made), where.work, where.work)
    assert len(execute(jobs, folder / "local", device="cpu").written) == 4
    expected = contents(folder / "local")
    assert len(expected) == 20
    words = [sys.executable, "-m", "embinit", "run", file, "--work", where.work, "--data", where.data]
    return [*map(str, words), "--vectors", str(where.vectors), "--device", "cpu"], expected


@pytest.fixture
def small(planned: tuple[list[str], dict[str, bytes]], tmp_path: Path) -> Iterator[Small]:
    made = Small(*planned, tmp_path / "runs")
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


def test_a_worker_that_is_killed_in_the_middle_leaves_no_trace(nodes: Nodes, small: Small) -> None:
    process = small.start("--engine", "ray", "--address", nodes.address, env=nodes.environment)
    until(lambda: len(small.in_training()) == 2, process)
    (second,) = nodes.workers(1).items()
    assert len(nodes.workers(0)) == 1
    assert not small.finished()
    os.kill(second[0], signal.SIGKILL)
    out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "4 runs finished" in out
    assert f"process {second[0]} on " in said
    assert "was lost; its 2 runs begin again on process " in said
    small.check()


def test_the_work_of_a_node_that_is_lost_is_done_by_the_other(nodes: Nodes, small: Small) -> None:
    process = small.start("--engine", "ray", "--address", nodes.address, env=nodes.environment)
    until(lambda: len(small.in_training()) == 2 and nodes.workers(1), process)
    assert not small.finished()
    os.kill(nodes.raylet(1), signal.SIGKILL)
    out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "4 runs finished" in out
    assert "was lost; its 2 runs begin again" in said
    small.check()


def test_ctrl_c_keeps_what_is_done_and_the_local_engine_goes_on(small: Small, short: Path) -> None:
    words = ["--engine", "ray", "--members", "1", "--workers", "1"]
    process = small.start(*words, env={**environment(), "TMPDIR": str(short)})
    until(small.finished, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process that was started from here
    out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, said
    assert "finished runs are kept" in said
    assert "stopped; to continue: embinit run" in out
    assert 1 <= len(small.finished()) < 4
    assert not list(small.runs.glob(".checkpoints/*"))
    assert list(short.iterdir())
    assert not list(short.glob("embinit-*"))
    kept = {path: path.stat().st_mtime_ns for path in small.finished()}
    after = small.start(env=environment())
    out, said = after.communicate(timeout=SECONDS)
    assert after.returncode == 0, said
    assert f"{len(kept)} finished before" in out
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    small.check()


def test_a_cluster_that_wants_a_token_says_so(nodes: Nodes, small: Small) -> None:
    stranger = {**nodes.environment, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    process = small.start("--engine", "ray", "--address", nodes.address, env=stranger)
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert f"embinit: cannot join the Ray cluster at {nodes.address}: it needs a token" in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU; this is about one that is only claimed")
@pytest.mark.parametrize("nodes", [("--num-gpus=1",)], indirect=True)
def test_groups_go_to_the_node_that_has_a_gpu(nodes: Nodes, small: Small) -> None:
    words = ["--engine", "ray", "--address", nodes.address, "--device", "auto"]
    process = small.start(*words, env=nodes.environment)
    out, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 1, said
    assert "failed, 4 runs: this machine has no device 'cuda'" in out
    assert not small.finished()
