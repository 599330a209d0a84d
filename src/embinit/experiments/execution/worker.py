"""Train one group after another and write its run folders. A group that does not fit the memory is halved."""

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

#: Parts of torch's messages for a lack of memory in errors other than OutOfMemoryError.
_SHORT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")


@dataclass
class Work:
    """Trains groups in this process, one after another."""

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
        """Train a group; if it does not fit the memory, train its halves."""
        folder = checkpoints.folder_of(self.out, group)
        with locked(folder / "lock") as lock:
            if lock is None:
                self.summary.elsewhere += group.keys
                self.watch.message(f"{len(group.jobs)} runs are left to another process, which trains them")
                return
            halve = self._train(group, folder, lock)
        if halve:
            # The memory is free only after the frames that held the members are gone.
            _release()
            for half in group.halves():
                if not self.summary.stopped:
                    self.run(half)

    def _train(self, group: Group, folder: Path, lock: Lock) -> bool:
        """Train, score and write a group; return whether it must be halved because it does not fit the memory."""
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
            how = "continues from the checkpoint before it" if earlier else "begins again from the start"
            self.watch.message(f"{error.problem}; the group {how}")
            return self._train(group, folder, lock)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise EmbinitError(f"stopped: {error.strerror or error}{where}") from None
        except Exception as error:
            if isinstance(error.__context__, OSError) and isinstance(error, EmbinitError):
                raise  # a full or lost disk is not the fault of a run, so no failure is recorded
            shutil.rmtree(folder, ignore_errors=True)
            if _short_of_memory(error) and len(group.jobs) > 1:
                sizes = " and ".join(str(len(half.jobs)) for half in group.halves())
                self.watch.message(f"{len(group.jobs)} members do not fit the memory of {self.device}; trying {sizes}")
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
            self.summary.failed.pop(key, None)
            (self.out / f"{key}.failed.json").unlink(missing_ok=True)

    def _fail(self, group: Group, error: Exception) -> None:
        text = str(error).strip().partition("\n")[0]
        reason = text if isinstance(error, EmbinitError) else f"{type(error).__name__}: {text}"
        self.failed(group, reason, "".join(traceback.format_exception(error)))

    def failed(self, group: Group, reason: str, details: str = "") -> None:
        """Record why the runs of a group failed, in a file beside each missing folder."""
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

    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and names_memory(str(error))
    )


def names_memory(reason: str) -> bool:
    """Return whether the reason of a failure is a lack of memory."""
    return reason.startswith("MemoryError") or any(words in reason.lower() for words in _SHORT_OF_MEMORY)


def _release() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
