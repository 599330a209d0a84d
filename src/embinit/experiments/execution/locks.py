"""Who is at work on what: a small file with process and host, whose owner can be seen to be gone."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from embinit.errors import EmbinitError

#: A lock of another host counts as abandoned when it was not touched for so long; its owner touches it while it trains.
_SILENT_SECONDS = 600.0
_TOUCH_SECONDS = 20.0
_TRIES = 5


@dataclass(frozen=True)
class Owner:
    """The process that holds a lock; `born` tells it from a later one with its number."""

    pid: int
    host: str
    born: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Lock:
    """A lock that is held; touch it now and then."""

    def __init__(self, path: Path) -> None:
        self._path, self._touched = path, time.monotonic()

    def touch(self) -> None:
        """Show that the owner is alive, at most every few seconds."""
        if time.monotonic() - self._touched > _TOUCH_SECONDS:
            self._touched = time.monotonic()
            with suppress(OSError):
                os.utime(self._path)


@contextmanager
def locked(path: Path) -> Iterator[Lock | None]:
    """Yield a lock, or None where another living process holds it; what a dead one left is taken over."""
    try:
        taken = _taken(path)
    except OSError as error:
        raise EmbinitError(f"cannot write {path.parent}: {error.strerror or error}") from None
    if not taken:
        yield None
        return
    try:
        yield Lock(path)
    finally:
        path.unlink(missing_ok=True)


def _taken(path: Path) -> bool:
    mine = Owner(os.getpid(), socket.gethostname(), _born(os.getpid()))
    content = json.dumps(vars(mine)).encode()
    for _ in range(_TRIES):
        # Written beside and linked, so that nobody meets a lock without its owner's name.
        part = path.with_name(f".{path.name}.{mine.pid}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(content)
            os.link(part, path)
            return True
        except FileExistsError:
            if not path.exists():
                raise  # not the lock: something else is in the way
            if holder(path) is not None:
                return False
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue  # whoever finished the group just now has removed its folder
        finally:
            part.unlink(missing_ok=True)
    return False


def holder(path: Path) -> Owner | None:
    """Return who holds a lock; None where nobody who lives does."""
    try:
        owner = Owner(**json.loads(path.read_text("utf-8")))
        age = time.time() - path.stat().st_mtime
    except (OSError, ValueError, TypeError):
        return None
    if owner.host != socket.gethostname():
        return owner if age < _SILENT_SECONDS else None
    return owner if _born(owner.pid) == owner.born and _alive(owner.pid) else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _born(pid: int) -> str:
    """Return when a process began, in the kernel's words, where they can be had."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    return ""
