"""A group of jobs into run folders: trained, scored, written; halved where memory is short; failures recorded."""

from __future__ import annotations

import gc
import json
import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.execution import checkpoints
from embinit.experiments.execution.groups import results_of_group
from embinit.experiments.execution.locks import Lock, locked
from embinit.experiments.execution.members import discard_checkpoint, stopped, unusable
from embinit.experiments.execution.observer import ExecutionSummary, Watch
from embinit.experiments.jobs import Group
from embinit.experiments.runs.store import is_done
from embinit.files import replacing

#: What torch says where memory is short and it is not an OutOfMemoryError.
_SHORT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


@dataclass
class Work:
    """Makes groups' runs, one group after another, in this process."""

    out: Path
    device: str
    #: seconds between checkpoints
    every: float
    commit: str
    watch: Watch = field(default_factory=Watch)
    stopping: Callable[[], bool] = lambda: False
    summary: ExecutionSummary = field(default_factory=ExecutionSummary)
    #: whether run folders get the weights of the best epoch
    keep_weights: bool = False

    def run(self, group: Group) -> None:
        """Make a group's runs; where memory is short, its halves'."""
        folder = checkpoints.folder_of(self.out, group)
        with locked(folder / "lock") as lock:
            if lock is None:
                self.summary.elsewhere += group.keys
                self.watch.said(f"{len(group.jobs)} runs are left to the process that is at work on them")
                return
            halve = self._made(group, folder, lock)
        if halve:
            # Only now, when the frames that held the members are gone, is their memory free.
            _release()
            for half in group.halves():
                if not self.summary.stopped:
                    self.run(half)

    def _made(self, group: Group, folder: Path, lock: Lock) -> bool:
        """Train, score and write; return whether the group is too large and is to be halved."""
        self.watch.started(group)
        checkpoints.announce(folder, group)

        def progress(moment: Any) -> None:
            lock.touch()
            checkpoints.note(folder, moment)
            self.watch.moment(group, moment)

        try:
            results = results_of_group(
                group,
                self.device,
                progress,
                folder / "state",
                self.every,
                self.stopping,
                self.commit,
                self.keep_weights,
            )
        except stopped():
            self.summary.stopped = True
            return False
        except unusable() as error:
            earlier = discard_checkpoint(folder / "state")
            how = "goes on from the checkpoint before it" if earlier else "begins again from the start"
            self.watch.said(f"{error.problem}; the group {how}")
            return self._made(group, folder, lock)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise EmbinitError(f"stopped: {error.strerror or error}{where}") from None
        except Exception as error:
            if isinstance(error.__context__, OSError) and isinstance(error, EmbinitError):
                raise  # a disk that is full or gone is no run's fault: nothing is recorded as failed
            shutil.rmtree(folder, ignore_errors=True)
            if _short_of_memory(error) and len(group.jobs) > 1:
                sizes = " and ".join(str(len(half.jobs)) for half in group.halves())
                self.watch.said(f"{len(group.jobs)} members do not fit the memory of {self.device}; {sizes} now")
                return True
            self._fail(group, error)
            return False
        self._write(group, results)
        shutil.rmtree(folder, ignore_errors=True)
        self.watch.finished(group, [self.out / key for key in group.keys])
        return False

    def _write(self, group: Group, results: list[Any]) -> None:
        self.summary.written += [result.write(self.out) for result in results if not is_done(self.out / result.key)]
        for key in group.keys:
            (self.out / f"{key}.failed.json").unlink(missing_ok=True)

    def _fail(self, group: Group, error: Exception) -> None:
        text = str(error).strip().partition("\n")[0]
        reason = text if isinstance(error, EmbinitError) else f"{type(error).__name__}: {text}"
        self.failed(group, reason, "".join(traceback.format_exception(error)))

    def failed(self, group: Group, reason: str, details: str = "") -> None:
        """Record why a group's runs failed, beside where their folders would be."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for key in group.keys:
            if not is_done(self.out / key):
                self.summary.failed[key] = reason
                content = {"key": key, "reason": reason, "when": when, "traceback": details}
                with replacing(self.out / f"{key}.failed.json") as out:
                    out.write(json.dumps(content, indent=1).encode() + b"\n")
        self.watch.failed(group, reason)


def _short_of_memory(error: Exception) -> bool:
    import torch

    said = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in said for words in _SHORT_OF_MEMORY)
    )


def _release() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
