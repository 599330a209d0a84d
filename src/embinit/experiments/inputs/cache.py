"""A cache of results that depend on files. A file is identified by its name, size and time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import embinit
from embinit.errors import EmbinitError
from embinit.experiments.inputs.locations import Places
from embinit.experiments.spec import digest
from embinit.files import replacing


def listing(path: str | Path | None) -> list[list[Any]]:
    """Return every file below a folder, or the file itself, with its size and time; only the text if it is no path."""
    start = Path(str(path).partition("::")[0]) if path is not None else None
    if start is None or not start.exists():
        return [[str(path)]]
    files = sorted(file for file in start.rglob("*") if file.is_file()) if start.is_dir() else [start]
    return [[str(file.resolve()), (stat := file.stat()).st_size, stat.st_mtime_ns] for file in files]


class Unprepared(EmbinitError):
    """Something is not prepared yet, and `Places.read_only` forbids preparing it."""


def cached(
    where: Places,
    kind: str,
    inputs: Any,
    usable: Callable[[dict[str, Any]], bool],
    make: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Return the result of an earlier `make`, or else of a new one.

    Parameters
    ----------
    where
        Its `work` folder holds the cache.
    kind
        The first part of the cache file's name.
    inputs
        Everything that the result depends on, as JSON.
    usable
        Whether an earlier result can still be used.
    make
        Makes the result.

    Raises
    ------
    Unprepared
        If there is no usable result and `where.read_only` is set.
    """
    path = where.work / "index" / f"{kind}-{digest([embinit.__version__, inputs])}.json"
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        entry: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if usable(entry):
            return entry
    if where.read_only:
        raise Unprepared(f"{kind} is not prepared yet")
    result = make()
    with replacing(path) as out:
        out.write(json.dumps(result).encode())
    return result
