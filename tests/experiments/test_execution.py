"""Jobs into run folders: whole, once, the same whoever trains beside whom; failures leave the others alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from embinit.errors import EmbinitError
from embinit.experiments import execute as module
from embinit.experiments.execution import checkpoints, engine, groups, worker
from embinit.experiments.execution.locks import holder, locked
from embinit.experiments.execution.observer import ExecutionSummary, Watch
from embinit.experiments.execution.provenance import code_of
from embinit.experiments.execution.starts import start_of
from embinit.experiments.inputs.row_files import no_rows
from embinit.experiments.jobs import Group, read_jobs
from embinit.experiments.runs.result import read_result
from embinit.experiments.runs.weights import read_weights
from embinit.experiments.spec import digest
from embinit.prepared.folder import open_prepared
from embinit.recipes.recipe import recipe
from embinit.seeds import stream
from tests.experiments.made import HEAD, contents, environment, planned
from tests.refusal import refused


def execute(jobs: Path, out: Path, **options: Any) -> ExecutionSummary:
    """Execute in this process, where a test can reach in."""
    return engine.execute(jobs, out, **{"workers": 1, **options})


class Heard(Watch):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.texts: list[str] = []
        self.failures: list[str] = []

    def started(self, group: Group) -> None:
        self.sizes.append(len(group.jobs))

    def failed(self, group: Group, reason: str) -> None:
        self.failures.append(reason)

    def message(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return planned(tmp_path_factory.mktemp("planned"))


@pytest.fixture(scope="module")
def done(jobs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    summary = execute(jobs, out)
    assert len(summary.written) == 4
    assert not summary.failed
    return out


def test_a_run_is_a_folder_of_plain_files(jobs: Path, done: Path) -> None:
    for job in read_jobs(jobs).jobs:
        names = {path.name for path in (done / job.key).iterdir()}
        assert names == {
            "spec.json", "history.json", "scores.json", "matrices.json", "run.json", "output.test.txt"
        }  # fmt: skip
        result = read_result(done / job.key)
        assert result.spec == job.spec
        assert len(result.history) == 2
        assert set(result.scores["test"]) == {"bleu", "sacrebleu", "chrf"}
        assert result.signatures["bleu"].endswith("|text:own tokens")
        assert "tok:none" in result.signatures["bleu"]
        assert result.signatures["sacrebleu"].endswith("|text:joined")
        assert len(result.outputs["test"]) == 10
        assert 1 <= result.best_epoch <= 2
        assert set(result.run) >= {"device", "versions", "seconds", "members", "commit", "finished"}
        assert result.run["members"] == 4


def test_a_sweep_trains_as_one_group_and_leaves_the_files_of_runs_alone(tmp_path: Path) -> None:
    values = ("model.dropout = [0.0, 0.4]", "training.rate = [5e-3, 1e-3]", "training.frozen_epochs = [1, -1]")
    blocks = "".join(
        f'[[block]]\nname = "{value[:12]}"\nrecipe = "pretrained"\nseed = 1\ngrid.{value}\n' for value in values
    )
    jobs = planned(tmp_path, blocks)
    heard = Heard()
    together = execute(jobs, tmp_path / "together", watch=heard, keep_weights=True)
    assert heard.sizes == [6]
    assert not together.failed
    assert len(execute(jobs, tmp_path / "alone", members=1, keep_weights=True).written) == 6
    found, expected = (
        # The header of a safetensors file has its metadata in any order.
        {name: content for name, content in contents(tmp_path / way).items() if not name.endswith("safetensors")}
        for way in ("together", "alone")
    )
    assert found == expected
    for folder in together.written:
        weights, alone = read_weights(folder), read_weights(tmp_path / "alone" / folder.name)
        assert weights.facts == alone.facts
        assert weights.facts["architecture"]["dropout"] == dict(read_result(folder).spec.model)["dropout"]
        for name, tensor in alone.tensors.items():
            assert weights.tensors[name].tobytes() == tensor.tobytes()


def test_rows_of_the_output_layer_train_beside_drawn_ones_and_survive_a_stop(tmp_path: Path) -> None:
    blocks = "".join(
        f'[[block]]\nname = "{name}"\nrecipe = "xavier"\nseed = 1\n{lines}'
        for name, lines in (("drawn", ""), ("rows", 'output.source = "small"\noutput.recipe = "pretrained"\n'))
    )
    jobs = planned(tmp_path, blocks)
    drawn, given = (start_of(job, open_prepared(job.task)) for job in read_jobs(jobs).jobs)
    assert drawn.output is None
    assert given.output is not None
    assert given.output.shape == given.matrices[1].shape
    assert given.facts["output"]["coverage"] == {"types": pytest.approx(0.8), "tokens": pytest.approx(0.8, abs=0.1)}
    watch = Heard()
    summary = execute(jobs, tmp_path / "together", watch=watch)
    assert watch.sizes == [2]
    assert len(summary.written) == 2
    assert set(read_result(tmp_path / "together" / read_jobs(jobs).jobs[1].key).matrices) == {
        "source",
        "target",
        "output",
    }

    asked = []
    stopping = Heard()
    stopping.moment = lambda group, moment: asked.append(moment)  # type: ignore[method-assign]
    assert execute(jobs, tmp_path / "again", watch=stopping, stopping=lambda: bool(asked)).stopped
    assert len(execute(jobs, tmp_path / "again", members=2).written) == 2
    assert contents(tmp_path / "again") == contents(tmp_path / "together")


def test_rows_for_a_tied_output_layer_are_refused_before_anything_starts(tmp_path: Path) -> None:
    jobs = planned(tmp_path, '[[block]]\nname = "rows"\noutput.recipe = "xavier"\nmodel.tied = false\n')
    content = json.loads(jobs.read_text())
    job = content["jobs"][0]
    job["spec"]["model"]["tied"] = True
    job["key"] = digest(job["spec"])
    (tmp_path / "jobs.json").write_text(json.dumps(content))
    with refused("jobs.json", job["key"], "output layer", "tied"):
        execute(tmp_path / "jobs.json", tmp_path / "runs")


def test_matrices_are_described(jobs: Path, done: Path) -> None:
    random, trained = (read_result(done / read_jobs(jobs).jobs[i].key).matrices["source"] for i in (0, 2))
    assert random["coverage"] is None
    assert trained["coverage"]["types"] == pytest.approx(0.8)
    assert trained["kinds"] == {"exact": 8, "special": 4, "missing": 2}
    assert trained["std"] == pytest.approx(1, rel=0.2)
    for facts in (random, trained):
        assert facts["rows"] == 14
        assert facts["dim"] == 16
        assert len(facts["histogram"]["counts"]) == 60
        assert len(facts["histogram"]["edges"]) == 61
        assert sum(facts["histogram"]["counts"]) == 14 * 16


def test_recipes_of_one_seed_draw_from_one_stream_and_seeds_do_not(jobs: Path) -> None:
    plan = read_jobs(jobs).jobs
    prepared = open_prepared(plan[0].task)
    one, two, trained = (start_of(plan[i], prepared) for i in (0, 1, 2))
    assert not np.array_equal(one.matrices[0], two.matrices[0])
    assert not np.array_equal(one.matrices[0], one.matrices[1])
    for place, side in enumerate(("source", "target")):
        rows = no_rows(prepared.vocabularies[side], 16)
        assert np.array_equal(one.matrices[place], recipe("xavier")(rows, stream(1, f"{side} matrix")))
    assert one.found == (None, None)
    assert trained.found[0] is not None
    assert trained.found[0].sum() == 8


def test_what_is_there_is_not_done_again(jobs: Path, done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in done.rglob("*")}
    summary = execute(jobs, done)
    assert (summary.written, summary.already) == ([], 4)
    assert {path: path.stat().st_mtime_ns for path in done.rglob("*")} == before


@pytest.mark.parametrize("members", [1, 3])
def test_runs_are_the_same_whoever_trains_beside_whom(jobs: Path, done: Path, tmp_path: Path, members: int) -> None:
    heard = Heard()
    execute(jobs, tmp_path, members=members, watch=heard)
    assert heard.sizes == {1: [1, 1, 1, 1], 3: [2, 2]}[members]
    assert contents(tmp_path) == contents(done)
    assert len(contents(done)) == 20


def test_several_processes_give_the_same_runs(jobs: Path, done: Path, tmp_path: Path) -> None:
    heard = Heard()
    summary = execute(jobs, tmp_path, workers=2, watch=heard)
    assert heard.sizes == [2, 2]
    assert len(summary.written) == 4
    assert contents(tmp_path) == contents(done)
    assert read_result(summary.written[0]).run["device"].endswith(", 1 thread")


def test_a_process_that_is_killed_takes_its_own_group_down_and_no_other(tmp_path: Path) -> None:
    jobs = planned(tmp_path, rows=1200)
    victims: list[int] = []

    class Killing(Heard):
        def moment(self, group: Group, moment: Any) -> None:
            if not victims:
                owner = holder(checkpoints.folder_of(tmp_path / "runs", group) / "lock")
                assert owner is not None
                victims.append(owner.pid)
                os.kill(owner.pid, signal.SIGKILL)

    summary = execute(jobs, tmp_path / "runs", workers=2, members=1, watch=Killing())
    assert victims
    assert len(summary.written) == 3
    assert list(summary.failed.values()) == ["the worker process ended (signal SIGKILL)"]
    assert len(execute(jobs, tmp_path / "runs").written) == 1
    assert not list((tmp_path / "runs").glob("*.failed.json"))


def test_processes_that_cannot_begin_are_one_sentence_and_not_hired_again(jobs: Path, tmp_path: Path) -> None:
    # A script without a guard, or from standard input, cannot be imported by the processes that it starts.
    script = "from pathlib import Path\nfrom embinit.experiments.execution.engine import execute\n"
    script += f"execute(Path({str(jobs)!r}), Path({str(tmp_path / 'out')!r}), workers=2, members=1)\n"
    done = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, env=environment(), timeout=120, check=False
    )
    assert done.returncode == 1
    assert "ended before it began (exit code 1)" in done.stderr
    assert "__name__" in done.stderr.splitlines()[-1]


def test_where_memory_is_short_a_group_is_halved(
    jobs: Path, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = groups.train_members

    def small(prepared: Any, specs: Any, *rest: Any) -> Any:
        if len(specs) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(prepared, specs, *rest)

    monkeypatch.setattr(groups, "train_members", small)
    heard = Heard()
    summary = execute(jobs, tmp_path, watch=heard)
    assert heard.sizes == [4, 2, 1, 1, 2, 1, 1]
    assert heard.texts[0].startswith("4 members do not fit the memory of cpu; ") and "2 and 2" in heard.texts[0]
    assert not summary.failed
    assert contents(tmp_path) == contents(done)


def test_one_that_does_not_fit_alone_has_failed(jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(groups, "train_members", large)
    summary = execute(jobs, tmp_path, members=1)
    assert len(summary.failed) == 4
    assert set(summary.failed.values()) == {"OutOfMemoryError: CUDA out of memory"}


def test_runs_that_do_not_fit_the_memory_beside_others_are_trained_alone(
    jobs: Path, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crowded(groups: list[Group], work: worker.Work, workers: int) -> None:
        first, *rest = groups
        work.failed(first, "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
        for group in rest:
            work.failed(group, "RuntimeError: it is broken")

    monkeypatch.setattr(engine, "in_processes", crowded)
    summary = execute(jobs, tmp_path, workers=2, members=1)
    (alone,) = summary.written
    assert (alone / "scores.json").read_bytes() == (done / alone.name / "scores.json").read_bytes()
    assert set(summary.failed.values()) == {"RuntimeError: it is broken"}
    assert {path.name.partition(".")[0] for path in tmp_path.glob("*.failed.json")} == set(summary.failed)


def test_a_group_that_fails_is_recorded_and_the_others_go_on(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = groups.train_members
    first = read_jobs(jobs).jobs[0]

    def broken(prepared: Any, specs: Any, *rest: Any) -> Any:
        if first.spec in specs:
            raise ValueError("this one is broken\nat length")
        return real(prepared, specs, *rest)

    monkeypatch.setattr(groups, "train_members", broken)
    heard = Heard()
    summary = execute(jobs, tmp_path, members=2, watch=heard)
    failed = [job.key for job in read_jobs(jobs).jobs[:2]]
    assert summary.failed == dict.fromkeys(failed, "ValueError: this one is broken")
    assert heard.failures == ["ValueError: this one is broken"]
    assert len(summary.written) == 2
    content = json.loads((tmp_path / f"{first.key}.failed.json").read_text())
    assert content["reason"] == "ValueError: this one is broken"
    assert "Traceback" in content["traceback"]
    monkeypatch.setattr(groups, "train_members", real)
    assert len(execute(jobs, tmp_path).written) == 2
    assert not list(tmp_path.glob("*.failed.json"))


def test_a_run_that_diverges_is_a_result(tmp_path: Path) -> None:
    head = HEAD.replace("training.rate = 5e-3", "training.rate = 1e30")
    blocks = '[[block]]\nname = "x"\nrecipe = "normal std=1e18"\nmodel.norm = "pre"\n'
    summary = execute(planned(tmp_path, blocks, head), tmp_path / "runs")
    (path,) = summary.written
    result = read_result(path)
    assert result.diverged
    assert any(value is None for record in result.history for value in record.values())
    if result.best_epoch == 0:
        assert (result.scores, result.outputs) == ({}, {})


def test_a_classification_has_its_own_scores(tmp_path: Path) -> None:
    blocks = '[[block]]\nname = "x"\ntask = "sorting"\ntraining.epochs = 8\nrecipe = "pretrained_xavier"\n'
    (path,) = execute(planned(tmp_path, blocks, rows=200), tmp_path / "runs").written
    result = read_result(path)
    assert set(result.scores) == {"valid"}
    assert set(result.scores["valid"]) == {"accuracy", "macro_f1", "matthews"}
    assert 0.5 < result.scores["valid"]["accuracy"] <= 1
    labels = Path(tmp_path / "data" / "sorting" / "valid.tsv").read_text().splitlines()[1:]
    truth = [line.split("\t")[1] for line in labels]
    right = sum(one == other for one, other in zip(truth, result.outputs["valid"], strict=True))
    assert result.scores["valid"]["accuracy"] == pytest.approx(right / len(truth))
    assert set(result.outputs["valid"]) <= {"low", "high"}
    assert result.history[result.best_epoch - 1]["accuracy"] == pytest.approx(right / len(truth))


def test_it_stops_when_asked_and_goes_on_to_the_same_files(jobs: Path, done: Path, tmp_path: Path) -> None:
    class Once(Heard):
        asked = False

        def moment(self, group: Group, moment: Any) -> None:
            self.asked = True

    watch = Once()
    summary = execute(jobs, tmp_path, members=2, watch=watch, stopping=lambda: watch.asked)
    assert summary.stopped
    assert not summary.written
    (folder,) = tmp_path.glob(".checkpoints/*")
    assert (folder / "state").is_dir()
    assert not (folder / "lock").exists()
    resumed: list[int] = []

    class Listening(Heard):
        def moment(self, group: Group, moment: Any) -> None:
            resumed.append(moment.epoch)

    assert len(execute(jobs, tmp_path, members=2, watch=Listening()).written) == 4
    assert resumed[0] == 2
    assert contents(tmp_path) == contents(done)
    assert not list(tmp_path.glob(".checkpoints/*"))


def test_a_checkpoint_that_cannot_be_read_is_said_and_the_group_begins_anew(
    jobs: Path, done: Path, tmp_path: Path
) -> None:
    group = Group(read_jobs(jobs).jobs[:2])
    folder = checkpoints.folder_of(tmp_path, group)
    checkpoints.announce(folder, group)
    (folder / "state").mkdir()
    (folder / "state" / "checkpoint.safetensors").write_bytes(b"not one")
    heard: list[str] = []

    class Listening(Heard):
        def message(self, text: str) -> None:
            heard.append(text)

    assert len(execute(jobs, tmp_path, members=2, watch=Listening()).written) == 4
    assert any("is damaged" in text and "from the start" in text for text in heard)
    assert contents(tmp_path) == contents(done)


def test_after_a_damaged_checkpoint_a_group_goes_on_from_the_one_before(jobs: Path, done: Path, tmp_path: Path) -> None:
    moments: list[Any] = []

    class Counting(Heard):
        def moment(self, group: Group, moment: Any) -> None:
            moments.append(moment)

    # With a checkpoint after each of its two epochs.
    assert execute(jobs, tmp_path, members=4, every=0, watch=Counting(), stopping=lambda: len(moments) == 2).stopped
    (state,) = tmp_path.glob(".checkpoints/*/state")
    assert len(list(state.iterdir())) == 2
    last = state / "checkpoint.safetensors"
    content = bytearray(last.read_bytes())
    content[-1] ^= 1
    last.write_bytes(content)
    heard = Heard()
    assert len(execute(jobs, tmp_path, members=4, watch=heard).written) == 4
    assert any("is damaged" in text and "the checkpoint before it" in text for text in heard.texts)
    assert contents(tmp_path) == contents(done)


def test_a_second_ctrl_c_ends_the_module_without_a_traceback(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(module, "execute", interrupted)
    assert module.main([str(jobs), "--out", str(tmp_path)]) == 130
    assert "run the same command again to continue" in capsys.readouterr().err


def test_a_run_says_where_other_code_made_it_than_planned_it(jobs: Path) -> None:
    plan = read_jobs(jobs)
    assert plan.code == code_of()
    same, other = replace(plan, commit="abc"), replace(plan, commit="abc", code="other")
    assert [engine._planned(one) for one in (same, other, replace(other, commit=""))] == ["abc", "abc?", ""]


def test_runs_that_another_process_is_at_work_on_are_left_to_it(jobs: Path, tmp_path: Path) -> None:
    group = Group(read_jobs(jobs).jobs)
    with locked(checkpoints.folder_of(tmp_path, group) / "lock") as lock:
        assert lock is not None
        summary = execute(jobs, tmp_path)
    assert summary.elsewhere == group.keys
    assert not summary.written
    assert len(execute(jobs, tmp_path).written) == 4


# ---------------------------------------------------------------- what may go wrong around it


def broken(jobs: Path, folder: Path) -> Path:
    shutil.copytree(jobs.parent, folder / "plan")
    return folder / "plan" / "jobs.json"


def reasons(summary: ExecutionSummary) -> set[str]:
    return set(summary.failed.values())


def test_a_changed_task_or_row_is_not_taken_for_the_planned_one(jobs: Path, tmp_path: Path) -> None:
    path = broken(jobs, tmp_path)
    (file,) = path.parent.glob("prepared/*/train.source.ids.npy")
    content = np.load(file)
    content[0] = 3
    np.save(file, content)
    summary = execute(path, tmp_path / "runs")
    assert len(summary.failed) == 4
    assert all("differs from the plan" in reason for reason in reasons(summary))
    other = broken(jobs, tmp_path / "other")
    for rows in (other.parent / "sources").iterdir():
        rows.write_bytes(rows.read_bytes()[:-1] + b"\1")
    summary = execute(other, tmp_path / "more", members=2)
    assert (len(summary.written), len(summary.failed)) == (2, 2)
    assert all("differs from the plan" in reason for reason in reasons(summary))


def test_a_full_disk_or_vanished_data_is_one_sentence_and_no_failure(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished(*_: Any) -> Any:
        raise FileNotFoundError(2, "No such file or directory", "train.source.ids.npy")

    def full(*_: Any) -> Any:
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            raise EmbinitError("cannot write checkpoint: No space left on device") from None

    for wrong, said in ((vanished, "No such file or directory"), (full, "No space left on device")):
        monkeypatch.setattr(worker, "results_of_group", wrong)
        with pytest.raises(EmbinitError, match=said) as raised:
            execute(jobs, tmp_path)
        assert "\n" not in str(raised.value)
        assert not list(tmp_path.glob("*.failed.json"))


def test_a_folder_that_cannot_be_written_is_one_sentence(jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EmbinitError, match="cannot write"):
        execute(jobs, tmp_path / "file" / "runs")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.update(version=9), "version 9"),
        (lambda content: content["jobs"][0].update(key="0" * 16), "0" * 16),
        (lambda content: content["jobs"][0].pop("spec"), "has no 'spec'"),
        (lambda content: content["jobs"][0].update(task="none"), "'none'"),
        (lambda content: content["sources"].update(dict.fromkeys(content["sources"], "../out")), "'../out'"),
        (lambda content: content["tasks"].update(dict.fromkeys(content["tasks"], "/etc")), "'/etc'"),
        (lambda content: content.update(jobs=3), "jobs is 3"),
        (lambda content: content.pop("jobs"), "give the jobs.json of a folder"),
        (lambda content: content.pop("version"), "give the jobs.json"),
    ],
)
def test_a_wrong_list_of_jobs_is_one_sentence(change: Any, said: str, jobs: Path, tmp_path: Path) -> None:
    content = json.loads(jobs.read_text())
    change(content)
    (tmp_path / "jobs.json").write_text(json.dumps(content))
    with refused("jobs.json", said):
        execute(tmp_path / "jobs.json", tmp_path / "runs")


@pytest.mark.parametrize(
    ("part", "name", "value", "words"),
    [
        ("model", "flux", 1, ["model.flux", "install the version that planned"]),
        ("training", "flux", 1, ["training.flux", "install the version that planned"]),
        ("model", "layers", 1_000_000, ["model.layers", "1,000,000"]),
        ("model", "layers", 0, ["layers", "0"]),
        ("model", "norm", "middle", ["norm", "'middle'"]),
        ("training", "batch", "many", ["training.batch", "'many'", "a whole number"]),
        ("training", "betas", [0.9], ["training.betas"]),
    ],
)
def test_a_job_that_cannot_be_trained_here_is_refused_before_anything_starts(
    jobs: Path, tmp_path: Path, part: str, name: str, value: Any, words: list[str]
) -> None:
    content = json.loads(jobs.read_text())
    job = content["jobs"][1]
    job["spec"][part][name] = value
    job["key"] = digest(job["spec"])
    (tmp_path / "jobs.json").write_text(json.dumps(content))
    with refused("jobs.json", job["key"], *words):
        execute(tmp_path / "jobs.json", tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [b"", b"no JSON", b"\x93\xff\x00", b"[1]", b"3", b"[" * 100_000])
def test_a_file_that_is_no_list_of_jobs_is_one_plain_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with refused(path, "give the jobs.json of a folder that `embinit run --plan` wrote"):
        execute(path, tmp_path / "runs")


def test_an_unknown_device_is_one_sentence(jobs: Path, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match="no device 'gpu': a GPU is called cuda"):
        execute(jobs, tmp_path, device="gpu")
    with pytest.raises(EmbinitError, match="no device 'tpu9'"):
        execute(jobs, tmp_path, device="tpu9")
