"""What was made from which files, remembered by their names, sizes and times, so that a second look is quick."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import embinit
from embinit.experiments.spec import digest
from embinit.files import replacing


def listing(path: str | Path | None) -> list[list[Any]]:
    """Return every file below a folder, or the file itself, with its size and time; nothing for what is no path."""
    start = Path(str(path).partition("::")[0]) if path is not None else None
    if start is None or not start.exists():
        return [[str(path)]]
    files = sorted(file for file in start.rglob("*") if file.is_file()) if start.is_dir() else [start]
    return [[str(file.resolve()), (stat := file.stat()).st_size, stat.st_mtime_ns] for file in files]


def remembered(
    work: Path, kind: str, about: Any, sound: Callable[[dict[str, Any]], bool], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return what `make` gave for this before, if it is still sound, else what it gives now."""
    path = work / "index" / f"{kind}-{digest([embinit.__version__, about])}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if sound(known):
            return known
    made = make()
    with replacing(path) as out:
        out.write(json.dumps(made).encode())
    return made
