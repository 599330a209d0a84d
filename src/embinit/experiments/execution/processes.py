"""Train groups of jobs in several processes of this machine, each with its share of the cores.

Each process has its own pipe, and processes share nothing, so a killed process blocks no other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.execution.interruption import SIGNALS
from embinit.experiments.execution.observer import ExecutionSummary, Watch
from embinit.experiments.execution.worker import Work
from embinit.experiments.jobs import Group

_POLL_SECONDS = 0.2
_STOP = "stop"
_GUARD = (
    ". A script must be a file and call embinit below `if __name__ == '__main__':`, because every process imports it "
    "first; or give workers=1"
)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(groups: list[Group], work: Work, workers: int) -> None:
    """Train the groups in several processes; `work.summary` gets the outcome.

    The processes end with this one, even if it is killed. If one of them dies, the runs of its group are failed.
    """
    quiet = replace(work, watch=Watch(), stopping=_never, summary=ExecutionSummary())
    threads = max(1, cores() // workers)
    started: list[_WorkerProcess] = []

    def start() -> _WorkerProcess:
        with _signals_ignored():
            started.append(_started(quiet, threads))
        return started[-1]

    try:
        _dispatch(groups, work, [start() for _ in range(workers)], start)
    finally:
        for worker in started:
            worker.process.kill()  # it ignores the signals of SIGNALS
        for worker in started:
            worker.process.join(timeout=5)


@dataclass
class _WorkerProcess:
    """A process, the pipe to it, and the group that it trains."""

    process: Any
    pipe: Connection[Any, Any]
    group: Group | None = None
    #: whether it has asked for a group
    ready: bool = False

    @property
    def end(self) -> str:
        """Return how the process ended: its exit code, or the signal."""
        self.process.join()
        code = self.process.exitcode
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _started(work: Work, threads: int) -> _WorkerProcess:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_worker, args=(theirs, work, threads, os.getpid()), daemon=True)
    process.start()
    theirs.close()  # otherwise the pipe would stay open after the process has ended
    return _WorkerProcess(process, mine)


@contextmanager
def _signals_ignored() -> Iterator[None]:
    """Ignore signals to stop. Processes that are started meanwhile keep ignoring them; the pipe tells them to stop.

    A terminal, `timeout` and batch systems signal every process of a process group, not only the first one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dispatch(
    groups: list[Group], work: Work, workers: list[_WorkerProcess], start: Callable[[], _WorkerProcess]
) -> None:
    """Give groups to the processes and read their messages until all processes have ended."""
    todo = list(reversed(groups))
    by_pipe = {worker.pipe: worker for worker in workers}
    while by_pipe:
        if work.stopping() and not work.summary.stopped:
            work.summary.stopped = True
            for worker in by_pipe.values():
                with suppress(OSError):
                    worker.pipe.send(_STOP)
        for pipe in wait(list(by_pipe), timeout=_POLL_SECONDS):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                kind, value = worker.pipe.recv()
            except (EOFError, OSError):
                del by_pipe[worker.pipe]
                if not worker.ready and not work.summary.stopped:
                    # Another process would end in the same way.
                    raise EmbinitError(f"a worker process ended before it began ({worker.end}){_GUARD}") from None
                if worker.group is not None:
                    work.failed(worker.group, f"the worker process ended ({worker.end})")
                if todo and not work.summary.stopped:
                    other = start()
                    by_pipe[other.pipe] = other
                continue
            if kind == "fatal":
                raise EmbinitError(value)
            if kind == "ready":
                worker.ready = True
                group = todo[-1] if todo and not work.summary.stopped else None
                with suppress(OSError):  # the process is dead; its group stays in `todo`
                    worker.pipe.send(group)
                    worker.group = group and todo.pop()
            elif kind == "done":
                worker.group = None
                work.summary.add(value)
            elif kind == "message":
                work.watch.message(value)
            elif worker.group is not None:
                getattr(work.watch, kind)(*((worker.group,) if value is None else (worker.group, value)))


# ---------------------------------------------------------------- in the process


def _never() -> bool:
    return False


class _PipeObserver(Watch):
    """Sends every callback through the pipe, and receives the order to stop."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self.pipe, self._stop = pipe, False

    def stopping(self) -> bool:
        """Return whether the parent process has sent the order to stop."""
        while not self._stop and self.pipe.poll():
            self._stop = self.pipe.recv() == _STOP
        return self._stop

    def started(self, group: Group) -> None:
        """Send it."""
        self.pipe.send(("started", None))

    def moment(self, group: Group, moment: Any) -> None:
        """Send the progress without its class, which imports torch."""
        self.pipe.send(("moment", SimpleNamespace(**vars(moment))))

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Send it."""
        self.pipe.send(("finished", folders))

    def failed(self, group: Group, reason: str) -> None:
        """Send it."""
        self.pipe.send(("failed", reason))

    def message(self, text: str) -> None:
        """Send it."""
        self.pipe.send(("message", text))


def _worker(pipe: Connection[Any, Any], work: Work, threads: int, parent: int) -> None:
    """Ask for groups and train them until none is left."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import torch

    torch.set_num_threads(threads)
    observer = _PipeObserver(pipe)
    try:
        while True:
            pipe.send(("ready", None))
            group = pipe.recv()
            if group is None or group == _STOP:
                return
            own = replace(work, watch=observer, stopping=observer.stopping, summary=ExecutionSummary())
            own.run(group)
            pipe.send(("done", own.summary))
            if own.summary.stopped:
                return
    except EmbinitError as error:
        pipe.send(("fatal", str(error)))
    except (BrokenPipeError, EOFError, ConnectionResetError):
        return


def _end_with(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
