"""Locks of groups: a small file with process and host, so that other processes see whether the owner is alive.

A lock is acquired, taken over and released inside a guard, an `flock` on the folder that holds the groups. Without the
guard, two processes that both see a dead owner could each remove the lock and create their own.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from embinit.errors import EmbinitError
from embinit.records import read_json

#: A lock of another host counts as abandoned after this time without a touch; its owner touches it while it trains.
_SILENT_SECONDS = 600.0
_TOUCH_SECONDS = 20.0
_TRIES = 5


class _OwnerFile(TypedDict):
    pid: int
    host: str
    born: str


@dataclass(frozen=True)
class Owner:
    """The process that holds a lock; `born` tells it from a later process with the same number."""

    pid: int
    host: str
    born: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Lock:
    """A lock that is held; call `touch` from time to time."""

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
    """Yield a lock, or None if another living process holds it; the lock of a dead process is taken over."""
    content = _content()
    try:
        acquired = _acquired(path, content)
    except OSError as error:
        raise EmbinitError(f"cannot write {path.parent}: {error.strerror or error}") from None
    if not acquired:
        yield None
        return
    try:
        yield Lock(path)
    finally:
        with suppress(OSError), _guard(path):
            if path.read_bytes() == content:  # otherwise another process has begun the group again
                path.unlink()


def _content() -> bytes:
    owner = Owner(os.getpid(), socket.gethostname(), _born(os.getpid()))
    # The token distinguishes two locks of one process.
    return json.dumps({**vars(owner), "token": secrets.token_hex(8)}).encode()


def _acquired(path: Path, content: bytes) -> bool:
    for _ in range(_TRIES):
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _guard(path):
                # The lock is written to another file and linked, so that no process reads a lock without its owner.
                part.write_bytes(content)
                try:
                    os.link(part, path)
                except FileExistsError:
                    if not path.is_file():
                        raise  # another file has this name
                    if holder(path) is not None:
                        return False
                    part.replace(path)
                return True
        except FileNotFoundError:
            continue  # the owner finished the group just now and removed its folder
        finally:
            part.unlink(missing_ok=True)
    return False


@contextmanager
def _guard(path: Path) -> Iterator[None]:
    """Hold an exclusive `flock` on the folder above a lock's own, which is never removed.

    A file system or an operating system without `flock` has no guard; creating a lock is atomic there too, and only the
    takeover of a dead process's lock is not.
    """
    try:
        fcntl = importlib.import_module("fcntl")
        descriptor = os.open(path.parent.parent, os.O_RDONLY)
    except (ImportError, PermissionError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def holder(path: Path) -> Owner | None:
    """Return the living owner of a lock; None if there is none."""
    try:
        content = read_json(path, _OwnerFile)
        owner = Owner(content["pid"], content["host"], content["born"])
        age = time.time() - path.stat().st_mtime
    except (OSError, EmbinitError):
        return None
    if owner.host != socket.gethostname():
        return owner if age < _SILENT_SECONDS else None
    return owner if _born(owner.pid) == owner.born and _alive(owner.pid) else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _born(pid: int) -> str:
    """Return the start time of a process as the kernel writes it; empty if it is not known."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    return ""
