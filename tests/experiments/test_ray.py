"""The engine Ray on one node: the files of the local engine, failures that leave the others alone, and clear sentences."""

from __future__ import annotations

import io
import json
import secrets
import shutil
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import embinit
from embinit.errors import EmbinitError, MissingExtra
from embinit.experiments.execution.engine import execute
from embinit.experiments.execution.observer import Watch
from embinit.experiments.execution.ray.board import Board, BoardObserver
from embinit.experiments.execution.ray.cluster import check
from embinit.experiments.execution.ray.engine import execute_on_ray
from embinit.experiments.execution.ray.parcels import order_of, parcel_of, unpack
from embinit.experiments.execution.ray.task import WorkerResult, train_group
from embinit.experiments.jobs import Group, read_jobs
from embinit.experiments.runs.collect import collect
from tests.experiments.made import BLOCK, command, contents, places, planned, written

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'embinit[ray]'")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planned(tmp_path_factory.mktemp("planned"))


@pytest.fixture(scope="module")
def done(jobs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("runs")
    assert len(execute(jobs, out, device="cpu", workers=1).written) == 4
    return contents(out)


@needs_ray
def test_a_cluster_that_is_started_for_it_gives_the_files_of_the_local_engine(
    done: dict[str, bytes], tmp_path: Path
) -> None:
    where, runs = places(tmp_path), tmp_path / "runs"
    words = ["run", written(tmp_path), "--runs", runs, "--work", where.work, "--data", where.data]
    words += ["--vectors", where.vectors, "--device", "cpu", "--engine", "ray"]
    ran = command(*words)
    assert ran.returncode == 0, ran.stderr
    assert "4 runs finished, 0 finished before" in ran.stdout
    assert len(done) == 20
    assert contents(runs) == done
    assert not list(runs.glob(".checkpoints/*"))
    assert "4 runs finished" not in command(*words).stdout


class Heard(Watch):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.started_groups: list[list[str]] = []
        self.moments: list[Any] = []
        self.finished_groups: list[list[str]] = []
        self.failures: list[tuple[list[str], str]] = []

    def started(self, group: Group) -> None:
        self.started_groups.append(group.keys)

    def moment(self, group: Group, moment: Any) -> None:
        self.moments.append(moment)

    def finished(self, group: Group, folders: list[Path]) -> None:
        self.finished_groups.append(group.keys)

    def failed(self, group: Group, reason: str) -> None:
        self.failures.append((group.keys, reason))


@needs_ray
@pytest.mark.long
def test_a_group_that_fails_is_recorded_and_the_others_go_on(
    jobs: Path, done: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    shutil.copytree(jobs.parent, tmp_path / "plan")
    for rows in (tmp_path / "plan" / "sources").iterdir():
        rows.write_bytes(rows.read_bytes()[:-1] + b"\1")
    random, pretrained = (Group(read_jobs(jobs).jobs[a:b]).keys for a, b in ((0, 2), (2, 4)))
    runs, heard = tmp_path / "runs", Heard()
    summary = execute_on_ray(
        tmp_path / "plan" / "jobs.json", runs, device="cpu", members=2, workers=1, watch=heard
    )  # fmt: skip
    assert sorted(path.name for path in summary.written) == sorted(random)
    assert contents(runs) == {name: content for name, content in done.items() if name.partition("/")[0] in random}
    assert sorted(summary.failed) == sorted(pretrained)
    assert heard.started_groups == [random, pretrained]
    assert heard.finished_groups == [random]
    ((keys, reason),) = heard.failures
    assert keys == pretrained
    assert "differs from the plan" in reason
    for key in pretrained:
        recorded = json.loads((runs / f"{key}.failed.json").read_text())
        assert recorded["reason"] == reason
        assert "Traceback" in recorded["traceback"]
    assert [moment.epoch for moment in heard.moments if moment.records is not None] == [1, 2]


# ---------------------------------------------------------------- what travels, and what a worker does with it


def sent(jobs: Path, keys: list[str]) -> list[Any]:
    order = order_of(json.loads(jobs.read_text()), keys)
    return [order.jobs, "cpu", Board(), *(parcel_of(jobs.parent, path) for path in order.paths)]


def test_a_worker_gets_what_its_jobs_read_and_nothing_else(jobs: Path, tmp_path: Path) -> None:
    content = json.loads(jobs.read_text())
    keys = [job["key"] for job in content["jobs"]]
    random, whole = order_of(content, keys[:2]), order_of(content, keys)
    assert [job["key"] for job in json.loads(random.jobs)["jobs"]] == keys[:2]
    assert sorted(whole.paths) == sorted([*content["tasks"].values(), *content["sources"].values()])
    assert list(random.paths) == list(content["tasks"].values())
    for path in whole.paths:
        unpack(parcel_of(jobs.parent, path), tmp_path)
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert all((tmp_path / file).read_bytes() == (jobs.parent / file).read_bytes() for file in files)


def test_a_worker_leaves_nothing_behind_and_hands_back_the_runs(
    jobs: Path, done: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "own"))
    keys = [job.key for job in read_jobs(jobs).jobs]
    words = sent(jobs, keys)
    made = train_group(3, embinit.__version__, *words)
    assert not list((tmp_path / "own").iterdir())
    assert not made.failed
    (tmp_path / "back.tar.gz").write_bytes(made.archive)
    assert sorted(collect(tmp_path / "back.tar.gz", tmp_path / "runs").taken) == sorted(keys)
    assert contents(tmp_path / "runs") == done
    notes = words[2].take()
    assert {number for number, _, _ in notes} == {3}
    assert notes[0][1] == "started"
    assert [len(value["records"]) for _, what, value in notes if what == "moment" and value["records"]] == [4, 4]
    assert not words[2].take()


def test_records_of_a_half_are_not_taken_for_the_groups() -> None:
    board = Board()
    telling = BoardObserver(board, 0, members=4)
    moment = SimpleNamespace(epoch=1, epochs=2, records=[{"bleu": 1.0}])
    telling.moment(Group(()), moment)
    assert board.take()[-1] == (0, "moment", {"epoch": 1, "epochs": 2, "records": None})


def test_a_worker_that_is_not_wanted_any_more_gives_up(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(Board):
        heard: ClassVar[list[str]] = []

        def tell(self, note: Any) -> bool:
            self.heard.append(note[1])
            if note[1] == "moment":
                self.stop()
            return super().tell(note)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    words = sent(jobs, [job.key for job in read_jobs(jobs).jobs])
    words[2] = Stopping()
    made = train_group(0, embinit.__version__, *words)
    assert made == WorkerResult(b"", {}, stopped=True)
    assert Stopping.heard == ["started", "moment"]
    assert not list(tmp_path.iterdir())


def test_a_node_with_another_version_is_said(jobs: Path) -> None:
    with pytest.raises(EmbinitError, match=f"has embinit {embinit.__version__}, but the work was started by 9.9"):
        train_group(0, "9.9", *sent(jobs, [read_jobs(jobs).jobs[0].key]))


def test_data_that_vanished_is_one_sentence(jobs: Path) -> None:
    with pytest.raises(EmbinitError, match=r"cannot read .*gone: No such file"):
        parcel_of(jobs.parent, "gone")


def test_archives_hold_plain_files_alone(jobs: Path) -> None:
    made = train_group(0, embinit.__version__, *sent(jobs, [read_jobs(jobs).jobs[0].key]))
    with tarfile.open(fileobj=io.BytesIO(made.archive)) as tar:
        members = tar.getmembers()
    assert sum(member.isfile() for member in members) == 6
    assert all(member.isfile() or member.isdir() for member in members)


# ---------------------------------------------------------------- what is said when it cannot begin


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(MissingExtra, match=r"the engine ray needs ray: pip install 'embinit\[ray\]'"):
        check(None)


@needs_ray
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1: Connection refused"),
        ("nobody.invalid:6379", "no Ray cluster answers at nobody.invalid:6379: "),
        ("127.0.0.1", "'127.0.0.1' is no address of a Ray cluster; give HOST:PORT"),
        ("ray://127.0.0.1:10001", "is no address of a Ray cluster; give HOST:PORT"),
        ("127.0.0.1:99999", "no Ray cluster answers at 127.0.0.1:99999: "),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_one_sentence_with_its_address(address: str, said: str) -> None:
    with pytest.raises(EmbinitError) as raised:
        check(address)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "rya"], "unknown engine 'rya'; did you mean 'ray'?"),
        (["--address", "a:1"], "`--address` needs `--engine ray`"),
        (["--engine", "ray", "--address", "a:1", "--workers", "2"], "`--workers` sets the processes of this machine"),
        (["--engine", "ray", "--device", "cuda:1"], "--device cuda:1 does not fit the engine ray"),
    ],
)
def test_options_that_do_not_go_together_are_one_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    ran = command("run", written(tmp_path, BLOCK), "--runs", tmp_path / "runs", *words)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert not (tmp_path / "runs").exists()
