"""`python -m tests.training.killed PREPARED CHECKPOINT`: a training that is killed in the middle of its saves.

Three processes after one another go on from where the last one got, and none sees its end: one dies when its second
checkpoint is written but not yet in place, one after half of the bytes of its first, one between two steps.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from embinit.prepared.folder import open_prepared
from embinit.training import checkpoint, loop
from tests.training.made import eventful


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before_the_second_is_in_place() -> None:
    synchronize, calls = os.fsync, []

    def fsync(file: int) -> None:
        calls.append(file)
        synchronize(file)
        if len(calls) == 2:
            die()

    os.fsync = fsync


def after_half_of_the_bytes() -> None:
    kinds = checkpoint.replacing

    class Half:
        def __init__(self, out: object) -> None:
            self._out, self._writes = out, 0

        def write(self, data: bytes) -> None:
            self._writes += 1
            self._out.write(data)  # type: ignore[attr-defined]
            if self._writes == 40:
                self._out.flush()  # type: ignore[attr-defined]
                die()

    class Replacing:
        def __init__(self, path: Path) -> None:
            self._inner = kinds(path)

        def __enter__(self) -> Half:
            return Half(self._inner.__enter__())

        def __exit__(self, *_: object) -> None:
            raise AssertionError("it was to be killed")

    checkpoint.replacing = Replacing  # type: ignore[assignment]


def between_two_steps() -> None:
    step, calls = loop.Trainer.step, []

    def stepped(self: loop.Trainer, *given: object) -> None:
        calls.append(given)
        step(self, *given)  # type: ignore[arg-type]
        if len(calls) == 35:
            die()

    loop.Trainer.step = stepped  # type: ignore[method-assign, assignment]


def killed(prepare: Callable[[], None], prepared: Path, folder: Path) -> None:
    child = os.fork()
    if not child:
        prepare()
        eventful(open_prepared(prepared), checkpoint=folder, every=0.0)
        os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), prepare.__name__
    assert os.WTERMSIG(status) == signal.SIGKILL, prepare.__name__


if __name__ == "__main__":
    torch.set_num_threads(1)
    for one in (before_the_second_is_in_place, after_half_of_the_bytes, between_two_steps):
        killed(one, Path(sys.argv[1]), Path(sys.argv[2]))
        print(one.__name__, *sorted(path.name.partition(".safetensors")[2] for path in Path(sys.argv[2]).iterdir()))
