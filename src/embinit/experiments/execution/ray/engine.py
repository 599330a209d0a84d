"""`execute_on_ray`: train groups of jobs as tasks of a Ray cluster; this process receives the results.

Nodes need no shared disk. If a worker or node is lost, its task starts again on another one and gives the same numbers. This
process holds the lock of every group in training, so that no other process trains it.
"""

from __future__ import annotations

import importlib
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import embinit
from embinit.errors import EmbinitError
from embinit.experiments.execution import checkpoints
from embinit.experiments.execution.locks import Lock, locked
from embinit.experiments.execution.observer import ExecutionSummary, Watch
from embinit.experiments.execution.ray.board import Board, FarBoard
from embinit.experiments.execution.ray.cluster import check, connected, device_and_slots
from embinit.experiments.execution.ray.parcels import order_of, parcel_of
from embinit.experiments.execution.ray.task import WorkerResult, train_group
from embinit.experiments.execution.worker import Work
from embinit.experiments.jobs import Group, Job, read_jobs
from embinit.experiments.runs.collect import collect
from embinit.experiments.runs.store import is_done

#: The number of times that a group starts again after its worker is lost.
_RETRIES = 3
_POLL_SECONDS = 0.5
#: The seconds that workers have to stop and to remove their folders.
_LEAVE_SECONDS = 10.0


def execute_on_ray(
    jobs: Path,
    out: Path,
    *,
    address: str | None = None,
    device: str = "auto",
    members: int | None = None,
    workers: int | None = None,
    watch: Watch | None = None,
    stopping: Callable[[], bool] = lambda: False,
    keep_weights: bool = False,
) -> ExecutionSummary:
    """Train the jobs of a file on a Ray cluster and return their outcome.

    Parameters are those of `execute`, with two differences. Every finished run is a folder below `out` on this machine.
    Without an `address`, a cluster is started on this machine, with `workers` cores.
    """
    check(address, device)
    plan = read_jobs(jobs)
    keys = {job.key for job in plan.jobs}
    already = sum(is_done(out / key) for key in keys)
    if already == len(keys):
        return ExecutionSummary(already=already)
    with connected(address, workers) as ray:
        chosen, slots = device_and_slots(ray, device)
        share = -(-(len(keys) - already) // slots)  # so that every slot of the cluster has work
        groups = checkpoints.groups_of(plan.jobs, out, min(share, members or share), chosen)
        summary = ExecutionSummary(already=already)
        work = Work(out, chosen, 0.0, plan.commit, watch or Watch(), stopping, summary, keep_weights)
        work.watch.planned(groups, already)
        driver = _Driver(ray, work)
        try:
            driver.submit(jobs, groups)
            driver.listen()
        finally:
            driver.leave()
    return work.summary


@dataclass
class _Task:
    """A group in training, and its lock."""

    number: int
    group: Group
    folder: Path
    lock: Lock
    held: ExitStack
    #: the worker that reported last
    worker: str = ""


@dataclass
class _Driver:
    """Submits groups to the cluster and receives the results."""

    ray: Any
    work: Work
    board: Any = None
    pending: dict[Any, _Task] = field(default_factory=dict)

    def submit(self, jobs: Path, groups: list[Group]) -> None:
        """Submit every group as a task; files that several groups read are sent once."""
        content = json.loads(jobs.read_text("utf-8"))
        self.board = self._board()
        board = FarBoard(self.board)
        sent: dict[str, Any] = {}
        needs = {"num_gpus": 1, "num_cpus": 0} if self.work.device == "cuda" else {"num_cpus": 1}
        # Each group has a process of its own, so that no memory of an earlier group is kept.
        task = self.ray.remote(max_calls=1, max_retries=_RETRIES, retry_exceptions=False, **needs)(train_group)
        for number, group in enumerate(groups):
            order = order_of(content, group.keys)
            for path in order.paths:
                if path not in sent:
                    sent[path] = self.ray.put(parcel_of(jobs.parent, path))
            files = [sent[path] for path in order.paths]
            held = self._locked(number, group)
            if held is not None:
                named = task.options(name=f"embinit {group.name}")
                head = (number, embinit.__version__, order.jobs, self.work.device, board)
                ref = named.remote(*head, *files, keep_weights=self.work.keep_weights)
                self.pending[ref] = held

    def _board(self) -> Any:
        """Return a board on this node, so that the loss of another node does not affect it."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(self.ray.get_runtime_context().get_node_id(), soft=False)
        return self.ray.remote(num_cpus=0, scheduling_strategy=here)(Board).remote()

    def _locked(self, number: int, group: Group) -> _Task | None:
        folder = checkpoints.folder_of(self.work.out, group)
        held = ExitStack()
        lock = held.enter_context(locked(folder / "lock"))
        if lock is None:
            self.work.summary.elsewhere += group.keys
            self.work.watch.message(f"{len(group.jobs)} runs are left to another process, which trains them")
            return None
        return _Task(number, group, folder, lock, held)

    def listen(self) -> None:
        """Receive results until all groups are done, or until it is asked to stop."""
        while self.pending:
            ready, _ = self.ray.wait(list(self.pending), timeout=_POLL_SECONDS)
            self._read_board()
            for ref in ready:
                self._take(ref)
            if self.pending and self.work.stopping():
                self.work.summary.stopped = True
                return

    def _read_board(self, last: bool = False) -> None:
        """Pass the notes of workers to the observer; the last time, also tell the workers to stop."""
        tasks = {task.number: task for task in self.pending.values()}
        for task in tasks.values():
            task.lock.touch()
        try:
            notes = self.ray.get((self.board.stop if last else self.board.take).remote(), timeout=_LEAVE_SECONDS)
        except self.ray.exceptions.RayError:
            return  # the progress is unknown, and the results do not depend on it
        for number, callback, value in notes:
            if number in tasks:
                self._pass_on(tasks[number], callback, value)

    def _pass_on(self, task: _Task, callback: str, value: Any) -> None:
        watch = self.work.watch
        if callback == "started":
            if task.worker:
                watch.message(f"{task.worker} was lost; its {len(task.group.jobs)} runs begin again on {value}")
            task.worker = value
            checkpoints.announce(task.folder, task.group)
            watch.started(task.group)
        elif callback == "moment":
            moment = SimpleNamespace(**value)
            checkpoints.note(task.folder, moment)
            watch.moment(task.group, moment)
        else:
            watch.message(value)

    def _take(self, ref: Any) -> None:
        task = self.pending.pop(ref)
        with task.held:
            try:
                result = self.ray.get(ref)
            except self.ray.exceptions.RayTaskError as error:
                cause = getattr(error, "cause", error)
                kind = "" if isinstance(cause, EmbinitError) else f"{type(cause).__name__}: "
                self.work.failed(task.group, kind + str(cause).strip().partition("\n")[0], str(error))
            except self.ray.exceptions.RayError as error:
                sentence = str(error).strip().partition("\n")[0].partition(". ")[0]
                self.work.failed(task.group, f"its worker was lost {_RETRIES + 1} times: {sentence}", str(error))
            else:
                if not result.stopped:
                    self._write(task.group, result)
            self._clear(task)

    def _write(self, group: Group, result: WorkerResult) -> None:
        """Write the finished runs, and record why the others failed."""
        out, taken = self.work.out, []
        if result.archive:
            with tempfile.NamedTemporaryFile(prefix="embinit-", suffix=".tar.gz") as file:
                file.write(result.archive)
                file.flush()
                taken = collect(Path(file.name), out).taken
        self.work.summary.written += [out / key for key in taken]
        lost: dict[tuple[str, str], list[Job]] = {}
        for job in group.jobs:
            if not is_done(out / job.key):
                why = result.failed.get(job.key, ("its worker sent no result", ""))
                lost.setdefault(why, []).append(job)
        for (reason, details), jobs in lost.items():
            self.work.failed(Group(tuple(jobs)), reason, details)
        if taken:
            self.work.watch.finished(group, [out / key for key in group.keys if is_done(out / key)])

    def leave(self) -> None:
        """Stop the tasks in training, keep those that finish meanwhile, and release the locks.

        Workers are told to stop, and the others end when this process disconnects. `ray.cancel` is not used, because Ray
        2.60 aborted this process if a task completed meanwhile.
        """
        try:
            if self.pending:
                self._read_board(last=True)
                active = [ref for ref, task in self.pending.items() if task.worker]
                ready = self.ray.wait(active, num_returns=len(active), timeout=_LEAVE_SECONDS)[0] if active else []
                for ref in ready:
                    self._take(ref)
        finally:
            for task in self.pending.values():
                with task.held:
                    self._clear(task)

    def _clear(self, task: _Task) -> None:
        """Remove the folder of the group; it stays if it has a checkpoint of the local engine and unfinished runs."""
        if all(is_done(self.work.out / key) for key in task.group.keys) or not (task.folder / "state").exists():
            shutil.rmtree(task.folder, ignore_errors=True)
