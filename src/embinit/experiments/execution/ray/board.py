"""Where workers write how they are doing, and read whether they are still wanted."""

from __future__ import annotations

import importlib
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from embinit.experiments.execution.observer import Watch
from embinit.experiments.jobs import Group

#: the group's number, a method of Watch, and what it is told
Note = tuple[int, str, Any]
_FIRST_SECONDS = 10.0


class Board:
    """Notes until somebody takes them; an actor on the machine of whoever started the work."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._stopped = False

    def tell(self, note: Note) -> bool:
        """Keep a note; return whether the work is to be given up."""
        self._notes.append(note)
        return self._stopped

    def take(self) -> list[Note]:
        """Return the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def stop(self) -> list[Note]:
        """Say to all who write here from now on that the work is to be given up; return the notes until now."""
        self._stopped = True
        return self.take()


class FarBoard:
    """A board on another machine; only the first answer is waited for, and a board that is gone is no trouble."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._answer: Any = None

    def tell(self, note: Note) -> bool:
        """Send a note; return what was answered to the one before, if it is known by now."""
        ray = importlib.import_module("ray")
        first, before = self._answer is None, self._answer
        self._answer = self._actor.tell.remote(note)
        with suppress(ray.exceptions.RayError):
            if first:
                return bool(ray.get(self._answer, timeout=_FIRST_SECONDS))
            return bool(ray.wait([before], timeout=0)[0]) and bool(ray.get(before))
        return False


class GivenUp(BaseException):
    """The work is not wanted any more; no error, so that nobody records it as a failure."""


class Telling(Watch):
    """Writes on a board how far one group is."""

    def __init__(self, board: Board | FarBoard, number: int, members: int) -> None:
        self._board, self._number, self._members = board, number, members
        self._tell("started", f"process {os.getpid()} on {socket.gethostname()}")

    def _tell(self, what: str, value: Any) -> None:
        if self._board.tell((self._number, what, value)):
            raise GivenUp

    def moment(self, group: Group, moment: Any) -> None:
        """Tell how far it is; the records only where they are of all members, not of a half that fits the memory."""
        whole = len(group.jobs) == self._members
        self._tell("moment", vars(moment) if whole else {**vars(moment), "records": None})

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Say nothing: it is finished when its folders have arrived."""

    def said(self, text: str) -> None:
        """Pass on anything else."""
        self._tell("said", text)
