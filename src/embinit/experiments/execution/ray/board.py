"""The board on which workers report their progress, and read whether to stop."""

from __future__ import annotations

import importlib
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from embinit.experiments.execution.observer import Watch
from embinit.experiments.jobs import Group

#: the number of the group, the name of a callback of Watch, and its value
Note = tuple[int, str, Any]
_FIRST_SECONDS = 10.0


class Board:
    """Notes of workers that wait to be read; an actor on the machine that started the work."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._stopped = False

    def tell(self, note: Note) -> bool:
        """Keep a note; return whether the worker must stop."""
        self._notes.append(note)
        return self._stopped

    def take(self) -> list[Note]:
        """Return the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def stop(self) -> list[Note]:
        """Tell every worker that writes from now on to stop; return the notes since the last call."""
        self._stopped = True
        return self.take()


class FarBoard:
    """A board on another machine. Only the first answer is awaited, and a lost board is no error."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._answer: Any = None

    def tell(self, note: Note) -> bool:
        """Send a note; return the answer to the note before, if it has arrived."""
        ray = importlib.import_module("ray")
        first, before = self._answer is None, self._answer
        self._answer = self._actor.tell.remote(note)
        with suppress(ray.exceptions.RayError):
            if first:
                return bool(ray.get(self._answer, timeout=_FIRST_SECONDS))
            return bool(ray.wait([before], timeout=0)[0]) and bool(ray.get(before))
        return False


class StopRequested(BaseException):
    """The worker was told to stop. This is no Exception, so that nothing records it as a failure."""


class BoardObserver(Watch):
    """Writes the progress of one group on a board."""

    def __init__(self, board: Board | FarBoard, number: int, members: int) -> None:
        self._board, self._number, self._members = board, number, members
        self._tell("started", f"process {os.getpid()} on {socket.gethostname()}")

    def _tell(self, callback: str, value: Any) -> None:
        if self._board.tell((self._number, callback, value)):
            raise StopRequested

    def moment(self, group: Group, moment: Any) -> None:
        """Write the progress. The records are left out if the group was halved, because they lack members."""
        whole = len(group.jobs) == self._members
        self._tell("moment", vars(moment) if whole else {**vars(moment), "records": None})

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Write nothing: a group is finished once its folders have arrived."""

    def message(self, text: str) -> None:
        """Write any other message."""
        self._tell("message", text)
