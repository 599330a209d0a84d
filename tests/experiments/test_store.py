"""The folder of runs: what is whose, what is stale, what was made elsewhere."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from embinit.errors import EmbinitError
from embinit.experiments.clean import removable, remove
from embinit.experiments.execution import checkpoints, locks
from embinit.experiments.execution.engine import execute
from embinit.experiments.execution.locks import holder, locked
from embinit.experiments.experiment import Experiment
from embinit.experiments.inputs.outline import read_experiment
from embinit.experiments.jobs import Group, read_jobs
from embinit.experiments.runs import collect as collecting
from embinit.experiments.runs.collect import collect
from embinit.experiments.runs.registry import experiments_of_runs, record, stale
from embinit.experiments.runs.store import results_of
from embinit.experiments.status import lines_of, state_of
from tests.experiments.made import BLOCK, Places, contents, planned, resolved, written
from tests.refusal import refused


class Made:
    """A small experiment, planned and run."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        self.folder, self.runs = folder, folder / "runs"
        self.jobs = planned(folder)
        execute(self.jobs, self.runs, workers=1)
        self.file = folder / "made.toml"
        self.places = Places(folder / "data", folder / "vectors", folder / "work")

    @property
    def experiment(self) -> Experiment:
        return resolved(self.file, self.places).experiments[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def copied(made: Made, folder: Path) -> Path:
    shutil.copytree(made.runs, folder / "runs")
    return folder / "runs"


# ---------------------------------------------------------------- whose results


def test_results_are_found_by_their_keys(made: Made) -> None:
    found = results_of(made.experiment, made.runs)
    assert list(found) == [run.spec.key for run in made.experiment.blocks[0].runs]
    assert all(result.key == key for key, result in found.items())


def test_results_are_found_without_data_by_what_the_file_says(made: Made) -> None:
    experiment = read_experiment(made.file, Places())
    assert experiment.blocks[0].missing
    found = results_of(experiment, made.runs)
    assert [result.key for result in found.values()] == list(results_of(made.experiment, made.runs))
    assert list(found) == [run.spec.key for run in experiment.blocks[0].runs]
    without = made.file.with_name("without.toml")
    without.write_text(made.file.read_text().replace("dim = 16\n", ""))
    assert len(results_of(read_experiment(without, Places()), made.runs)) == 4


def test_of_runs_that_differ_in_their_data_alone_the_last_counts(made: Made, tmp_path: Path) -> None:
    runs = copied(made, tmp_path)
    old = results_of(made.experiment, runs)
    first = next(iter(old.values()))
    later = replace(
        first,
        spec=replace(first.spec, task=replace(first.spec.task, data="f" * 64)),
        run={**first.run, "finished": "2999-01-01T00:00:00Z"},
    )
    later.write(runs)
    found = results_of(read_experiment(made.file, Places()), runs)
    assert next(iter(found.values())).key == later.key
    assert next(iter(results_of(made.experiment, runs).values())).key == first.key


def test_what_is_not_done_is_not_there(made: Made, tmp_path: Path) -> None:
    runs = copied(made, tmp_path)
    shutil.rmtree(next(path for path in runs.iterdir() if len(path.name) == 16))
    assert len(results_of(made.experiment, runs)) == 3
    assert results_of(made.experiment, tmp_path / "none") == {}


def test_a_run_that_is_there_is_never_written_again(made: Made) -> None:
    result = next(iter(results_of(made.experiment, made.runs).values()))
    replace(result, best_epoch=99).write(made.runs)
    assert next(iter(results_of(made.experiment, made.runs).values())).best_epoch == result.best_epoch


# ---------------------------------------------------------------- state, stale, clean


def test_the_state_tells_done_running_stopped_and_failed(made: Made, tmp_path: Path) -> None:
    runs, plan = copied(made, tmp_path), read_jobs(made.jobs).jobs
    for job in plan[1:]:
        shutil.rmtree(runs / job.key)
    (runs / f"{plan[1].key}.failed.json").write_text(json.dumps({"reason": "it was ill"}))
    stopped = Group((plan[2],))
    checkpoints.announce(checkpoints.folder_of(runs, stopped), stopped)
    running = Group((plan[3],))
    checkpoints.announce(checkpoints.folder_of(runs, running), running)
    with locked(checkpoints.folder_of(runs, running) / "lock"):
        state = state_of(runs)
    assert state.failed == {plan[1].key: "it was ill"}
    assert state.stopped == {plan[2].key: "in its first epoch"}
    assert [owner.pid for owner, _ in state.running.values()] == [os.getpid()]
    assert list(state.running) == [plan[3].key]
    lines = lines_of(made.experiment, runs, state)
    assert [(len(line.done), len(line.running), len(line.failed)) for line in lines] == [(1, 0, 1), (0, 1, 0)]


def plans(made: Made, *files: Path) -> dict[Path, Experiment]:
    return {file: resolved(file, made.places).experiments[0] for file in files}


def recorded(plan: dict[Path, Experiment], runs: Path, **how: bool) -> None:
    for file, experiment in plan.items():
        record(runs, file, experiment.name, [run.spec.key for block in experiment.blocks for run in block.runs], **how)


def test_stale_are_runs_that_their_own_file_does_not_plan_any_more(made: Made, tmp_path: Path) -> None:
    runs = copied(made, tmp_path)
    changed = written(tmp_path, name="changed.toml")
    recorded(plans(made, changed), runs)
    assert stale(plans(made, changed), runs) == []
    written(tmp_path, BLOCK.replace('"xavier", ', ""), name="changed.toml")
    assert len(stale(plans(made, changed), runs)) == 2
    recorded(plans(made, changed), runs)
    assert len(stale(plans(made, changed), runs)) == 2
    # Another experiment plans them as well.
    recorded(plans(made, made.file), runs)
    assert stale(plans(made, changed), runs) == []
    assert {tuple(names) for names in experiments_of_runs(runs).values()} == {("changed", "made")}


def test_runs_of_other_experiments_are_never_stale(made: Made, tmp_path: Path) -> None:
    runs = copied(made, tmp_path)
    other = written(tmp_path, BLOCK.replace("[1, 2]", "[3]"), name="other.toml")
    assert stale(plans(made, other), runs) == []
    recorded(plans(made, other), runs)
    recorded(plans(made, made.file), runs)
    assert stale(plans(made, other), runs) == []
    assert stale(plans(made, made.file), runs) == []


def test_some_blocks_or_seeds_of_a_file_do_not_supersede_the_others(made: Made, tmp_path: Path) -> None:
    runs = copied(made, tmp_path)
    file = written(tmp_path, name="parts.toml")
    recorded(plans(made, file), runs)
    recorded(plans(made, written(tmp_path, BLOCK.replace("[1, 2]", "[1]"), name="parts.toml")), runs, whole=False)
    written(tmp_path, name="parts.toml")
    assert stale(plans(made, file), runs) == []
    quick = plans(made, written(tmp_path, BLOCK.replace("[1, 2]", "[2]"), name="parts.toml"))
    written(tmp_path, BLOCK.replace("[1, 2]", "[1]"), name="parts.toml")
    recorded(plans(made, file), runs)
    recorded(quick, runs, quick=True)
    assert len(stale(plans(made, file), runs)) == 2


def test_runs_are_not_stale_because_their_data_is_not_here(made: Made, tmp_path: Path) -> None:
    runs = copied(made, tmp_path)
    recorded(plans(made, made.file), runs)
    unresolved = {made.file: read_experiment(made.file, Places())}
    assert all(block.missing for block in unresolved[made.file].blocks)
    assert stale(unresolved, runs) == []
    assert removable(unresolved, runs)["stale"] == []


def test_cleaning_leaves_what_is_named_and_what_is_at_work(made: Made, tmp_path: Path) -> None:
    runs, plan = copied(made, tmp_path), read_jobs(made.jobs).jobs
    idle, busy = Group((plan[0],)), Group((plan[1],))
    for group in (idle, busy):
        checkpoints.announce(checkpoints.folder_of(runs, group), group)
    (runs / "x.failed.json").touch()
    (runs / ".abc.part").mkdir()
    with locked(checkpoints.folder_of(runs, busy) / "lock"):
        found = removable({made.file: made.experiment}, runs, others=True)
        assert found["other"] == []
        assert found["stale"] == []
        assert [path.name for path in found["checkpoint"]] == [idle.name]
        assert found["unfinished"] == []
    assert removable({}, runs)["other"] == []
    found = removable({}, runs, others=True)
    assert len(found["other"]) == 4
    assert len(found["checkpoint"]) == 2
    assert len(found["unfinished"]) == 1
    for paths in found.values():
        for path in paths:
            remove(path)
    assert [path.name for path in runs.rglob("*")] == [".checkpoints"]


# ---------------------------------------------------------------- locks


def test_a_lock_is_held_by_the_living_alone(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path) as lock, locked(path) as other:
        assert lock is not None
        assert other is None
        owner = holder(path)
        assert owner is not None
        assert (owner.pid, owner.host) == (os.getpid(), socket.gethostname())
    assert not path.exists()
    code = (
        "import os, sys; from pathlib import Path; from embinit.experiments.execution.locks import locked; "
        "held = locked(Path(sys.argv[1])); held.__enter__(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert path.exists()
    assert holder(path) is None
    with locked(path) as lock:
        assert lock is not None


def test_the_lock_of_a_dead_process_is_taken_over_by_one_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "group" / "lock"
    path.parent.mkdir()
    looked = locks.holder

    def slow(path: Path) -> locks.Owner | None:
        owner = looked(path)
        time.sleep(0.002)  # all of them have seen that the owner is dead before the first one acts on it
        return owner

    monkeypatch.setattr(locks, "holder", slow)
    for _ in range(5):
        path.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "born": "1"}))
        start, end = threading.Barrier(6), threading.Barrier(6)

        def compete(start: threading.Barrier = start, end: threading.Barrier = end) -> bool:
            start.wait()
            with locked(path) as lock:
                end.wait()
                return lock is not None

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(lambda _: compete(), range(6))) == 1
        assert list(path.parent.iterdir()) == []


def test_a_lock_that_is_not_ours_any_more_stays(tmp_path: Path) -> None:
    path = tmp_path / "group" / "lock"
    with locked(path):
        path.write_text("of somebody else")
    assert path.read_text() == "of somebody else"


def test_a_number_that_another_process_has_now_is_not_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "born": "1"}))
    assert holder(path) is None


def test_a_lock_of_another_host_counts_while_it_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": 1, "host": "elsewhere", "born": "1"}))
    owner = holder(path)
    assert owner is not None
    assert str(owner) == "process 1 on elsewhere"
    os.utime(path, (time.time() - 3600, time.time() - 3600))
    assert holder(path) is None


# ---------------------------------------------------------------- collecting


def test_runs_are_collected_from_a_folder_and_an_archive(made: Made, tmp_path: Path) -> None:
    found = collect(made.runs, tmp_path / "one")
    assert (len(found.taken), found.already) == (4, 0)
    assert contents(tmp_path / "one") == contents(made.runs)
    assert collect(made.runs, tmp_path / "one").already == 4
    with tarfile.open(tmp_path / "runs.tar.gz", "w:gz") as tar:
        tar.add(made.runs, "some/where/runs")
    assert len(collect(tmp_path / "runs.tar.gz", tmp_path / "two").taken) == 4
    assert contents(tmp_path / "two") == contents(made.runs)


def test_a_run_that_is_not_what_it_says_is_not_taken(made: Made, tmp_path: Path) -> None:
    path = next(path for path in made.runs.iterdir() if len(path.name) == 16)
    shutil.copytree(path, tmp_path / "other" / ("0" * 16))
    with pytest.raises(EmbinitError, match="does not match its name: the key of its spec is"):
        collect(tmp_path / "other", tmp_path / "runs")
    shutil.copytree(path, tmp_path / "cut" / path.name)
    (tmp_path / "cut" / path.name / "scores.json").write_text("{")
    with pytest.raises(EmbinitError, match="is damaged"):
        collect(tmp_path / "cut", tmp_path / "runs")
    (tmp_path / "cut" / path.name / "scores.json").write_text("[]")
    with pytest.raises(EmbinitError, match="is damaged"):
        collect(tmp_path / "cut", tmp_path / "runs")
    with tarfile.open(tmp_path / "runs.tgz", "w:gz") as tar:
        tar.add(tmp_path / "cut", "runs")
    with pytest.raises(EmbinitError, match=f"^{tmp_path / 'runs.tgz'}: {path.name}/?.* is damaged") as raised:
        collect(tmp_path / "runs.tgz", tmp_path / "runs")
    assert ".part" not in str(raised.value)
    assert not list((tmp_path / "runs").glob("*"))


def test_what_links_lead_to_is_copied_and_checked(made: Made, tmp_path: Path) -> None:
    path = next(path for path in made.runs.iterdir() if len(path.name) == 16)
    linked = tmp_path / "linked" / path.name
    linked.mkdir(parents=True)
    for file in path.iterdir():
        (linked / file.name).symlink_to(file)
    (tmp_path / "linked" / "loop").symlink_to(tmp_path / "linked")
    assert collect(tmp_path / "linked", tmp_path / "one").taken == [path.name]
    one = contents(tmp_path / "one")
    assert one
    assert one == {name: content for name, content in contents(made.runs).items() if name.startswith(path.name)}
    assert not any(file.is_symlink() for file in (tmp_path / "one" / path.name).iterdir())
    (tmp_path / "folders").mkdir()
    (tmp_path / "folders" / path.name).symlink_to(path)
    assert collect(tmp_path / "folders", tmp_path / "two").taken == [path.name]
    assert contents(tmp_path / "two") == one
    (linked / "scores.json").unlink()
    (linked / "scores.json").symlink_to(tmp_path / "nowhere")
    with refused(linked, "scores.json"):
        collect(tmp_path / "linked", tmp_path / "three")
    assert not list((tmp_path / "three").glob("*"))


def test_bombs_are_refused(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_ALWAYS", 3 << 20)
    path = next(path for path in made.runs.iterdir() if len(path.name) == 16)
    for name, size, times in (("spec.json", 2 << 20, 1), ("output.x.txt", 1 << 20, 4)):
        archive = tmp_path / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for number in range(times):
                entry = tarfile.TarInfo(f"{path.name}/{name.replace('.x.', f'.x{number}.')}")
                entry.size = size
                tar.addfile(entry, Zeros(size))
        with refused(archive, "larger than"):
            collect(archive, tmp_path / "runs")
    folder = tmp_path / "folder" / path.name
    shutil.copytree(path, folder)
    (folder / "run.json").write_bytes(b" " * (2 << 20))
    with refused("run.json", "larger than"):
        collect(folder.parent, tmp_path / "runs")
    (folder / "run.json").write_bytes((path / "run.json").read_bytes())
    os.mkfifo(folder / "output.pipe.txt")
    with refused("output.pipe.txt", "not a regular file"):
        collect(folder.parent, tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("*"))


class Zeros(io.RawIOBase):
    """An endless file of zeros, as far as it is read."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int = -1) -> bytes:
        size = min(size, self.left)
        self.left -= size
        return bytes(size)


def test_an_archive_writes_nothing_but_runs(made: Made, tmp_path: Path) -> None:
    path = next(path for path in made.runs.iterdir() if len(path.name) == 16)
    archive = tmp_path / "hostile.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(path, f"runs/{path.name}")
        for name in (
            "../../outside.json",
            "/tmp/outside.json",
            f"runs/{path.name}/evil.py",
            f"runs/{path.name}/../x.json",
        ):
            entry = tarfile.TarInfo(name)
            entry.size = 4
            tar.addfile(entry, io.BytesIO(b"evil"))
        link = tarfile.TarInfo(f"runs/{path.name}/output.link.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    found = collect(archive, tmp_path / "deep" / "runs")
    assert found.taken == [path.name]
    assert {file.name for file in (tmp_path / "deep" / "runs" / path.name).iterdir()} == {
        file.name for file in path.iterdir()
    }
    assert sorted(file.name for file in tmp_path.iterdir()) == ["deep", "hostile.tar.gz"]


def _archive() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        entry = tarfile.TarInfo(f"runs/{'0' * 16}/run.json")
        entry.size = 1 << 16
        tar.addfile(entry, io.BytesIO(np.random.default_rng(0).bytes(entry.size)))
    return content.getvalue()


WHOLE = _archive()


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", b"\x1f\x8b\x08\x00cut", WHOLE[:30_000], WHOLE[:30_000] + bytes(99) + WHOLE[30_000:]],
)
def test_what_is_no_archive_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "runs.tar.gz"
    path.write_bytes(content)
    said = f"^{path} cannot be unpacked: it is no tar archive, or a damaged one$"
    with pytest.raises(EmbinitError, match=said):
        collect(path, tmp_path / "runs")


def test_what_holds_no_runs_or_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("other.txt"))
    for source in (path, tmp_path):
        with pytest.raises(EmbinitError, match=f"^{source} holds no finished runs$"):
            collect(source, tmp_path / "runs")
    with pytest.raises(EmbinitError, match=r"^no such file or folder: .*none$"):
        collect(tmp_path / "none", tmp_path / "runs")
