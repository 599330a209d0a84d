"""Groups of jobs by several processes of this machine, each with its share of the cores.

Each process has a pipe of its own and nothing is shared, so that one that is killed can hold nobody up.
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
    "; a script of your own must be a file and call embinit below `if __name__ == '__main__':`, "
    "for processes begin by importing it; or give workers=1"
)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(groups: list[Group], work: Work, workers: int) -> None:
    """Make the groups' runs in so many processes; what becomes of them is in the work's summary.

    The processes end with this one, however that ends. One that ends by itself takes its group's runs down as failed.
    """
    quiet = replace(work, watch=Watch(), stopping=_never, summary=ExecutionSummary())
    threads = max(1, cores() // workers)
    staff: list[_Hired] = []

    def hire() -> _Hired:
        with _deaf():
            staff.append(_hired(quiet, threads))
        return staff[-1]

    try:
        _direct(groups, work, [hire() for _ in range(workers)], hire)
    finally:
        for worker in staff:
            worker.process.kill()  # it is deaf to anything less
        for worker in staff:
            worker.process.join(timeout=5)


@dataclass
class _Hired:
    """A process, the pipe to it, and the group that it is at work on."""

    process: Any
    pipe: Connection[Any, Any]
    group: Group | None = None
    #: whether it ever asked for work
    ready: bool = False

    @property
    def end(self) -> str:
        """Return how it ended."""
        self.process.join()
        code = self.process.exitcode
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _hired(work: Work, threads: int) -> _Hired:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_worker, args=(theirs, work, threads, os.getpid()), daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends with the process
    return _Hired(process, mine)


@contextmanager
def _deaf() -> Iterator[None]:
    """Ignore signals to stop for a moment: processes that are started now go on ignoring them, and are told when to stop.

    A terminal, `timeout` and batch systems signal every process of a group, not only the one that was started.
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


def _direct(groups: list[Group], work: Work, staff: list[_Hired], hire: Callable[[], _Hired]) -> None:
    """Hand groups out and hear the processes until all of them have ended."""
    todo = list(reversed(groups))
    by_pipe = {worker.pipe: worker for worker in staff}
    while by_pipe:
        if work.stopping() and not work.summary.stopped:
            work.summary.stopped = True
            for worker in by_pipe.values():
                with suppress(OSError):
                    worker.pipe.send(_STOP)
        for pipe in wait(list(by_pipe), timeout=_POLL_SECONDS):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                what, value = worker.pipe.recv()
            except (EOFError, OSError):
                del by_pipe[worker.pipe]
                if not worker.ready and not work.summary.stopped:
                    # The next one would end likewise, and so on.
                    raise EmbinitError(
                        f"a process that was to train ended before it began ({worker.end}){_GUARD}"
                    ) from None
                if worker.group is not None:
                    work.failed(worker.group, f"the process that trained it ended ({worker.end})")
                if todo and not work.summary.stopped:
                    other = hire()
                    by_pipe[other.pipe] = other
                continue
            if what == "fatal":
                raise EmbinitError(value)
            if what == "ready":
                worker.ready = True
                group = todo[-1] if todo and not work.summary.stopped else None
                with suppress(OSError):  # it is gone, and the group stays to be done
                    worker.pipe.send(group)
                    worker.group = group and todo.pop()
            elif what == "done":
                worker.group = None
                work.summary.add(value)
            elif what == "said":
                work.watch.said(value)
            elif worker.group is not None:
                getattr(work.watch, what)(*((worker.group,) if value is None else (worker.group, value)))


# ---------------------------------------------------------------- in the process


def _never() -> bool:
    return False


class _Telling(Watch):
    """Passes on what it hears, and hears when to stop."""

    def __init__(self, pipe: Connection[Any, Any]) -> None:
        self.pipe, self._stop = pipe, False

    def stopping(self) -> bool:
        """Return whether the one that started this process said so."""
        while not self._stop and self.pipe.poll():
            self._stop = self.pipe.recv() == _STOP
        return self._stop

    def started(self, group: Group) -> None:
        """Pass it on."""
        self.pipe.send(("started", None))

    def moment(self, group: Group, moment: Any) -> None:
        """Pass it on, without the class that only torch's friends know."""
        self.pipe.send(("moment", SimpleNamespace(**vars(moment))))

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Pass it on."""
        self.pipe.send(("finished", folders))

    def failed(self, group: Group, reason: str) -> None:
        """Pass it on."""
        self.pipe.send(("failed", reason))

    def said(self, text: str) -> None:
        """Pass it on."""
        self.pipe.send(("said", text))


def _worker(pipe: Connection[Any, Any], work: Work, threads: int, parent: int) -> None:
    """Ask for groups until there are none."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    import torch

    torch.set_num_threads(threads)
    telling = _Telling(pipe)
    try:
        while True:
            pipe.send(("ready", None))
            group = pipe.recv()
            if group is None or group == _STOP:
                return
            own = replace(work, watch=telling, stopping=telling.stopping, summary=ExecutionSummary())
            own.run(group)
            pipe.send(("done", own.summary))
            if own.summary.stopped:
                return
    except EmbinitError as error:
        pipe.send(("fatal", str(error)))
    except (BrokenPipeError, EOFError, ConnectionResetError):
        return


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
