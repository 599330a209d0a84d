"""Add runs from elsewhere to the folder of runs: from a folder, an untrusted archive, or results files."""

from __future__ import annotations

import json
import lzma
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import IO

from embinit.errors import EmbinitError
from embinit.experiments.runs.result import Result, read_result
from embinit.experiments.runs.store import is_done
from embinit.files import replacing_folder
from embinit.records import Damaged

#: The files of a run's folder that are copied, with the largest accepted size.
_FILES = {
    re.compile(r"(spec|run)\.json"): 1 << 20,
    re.compile(r"(history|scores|matrices)\.json"): 1 << 25,
    re.compile(r"output\.[\w-]+\.txt"): 1 << 28,
    re.compile(r"weights\.safetensors"): 1 << 34,
}
_KEY = re.compile(r"[0-9a-f]{16}")
#: An archive may unpack to this many times its own size, and to the second number of bytes in any case.
_RATIO, _ALWAYS = 100, 1 << 28


@dataclass
class Collected:
    """The runs that were added."""

    taken: list[str] = field(default_factory=list)
    already: int = 0
    #: the number of failed runs in the source
    failed: int = 0


def collect(source: Path, runs: Path) -> Collected:
    """Add the finished runs of a folder or archive; raise EmbinitError if the content of a run differs from its name."""
    if source.is_dir():
        return _from_folder(source, runs, source)
    if not source.is_file():
        raise EmbinitError(f"no such file or folder: {source}")
    with tempfile.TemporaryDirectory(prefix="embinit-collect-") as folder:
        _unpack(source, Path(folder))
        try:
            return _from_folder(Path(folder), runs, source)
        except EmbinitError as error:  # the message names the archive instead of its temporary folder
            raise EmbinitError(str(error).replace(f"{folder}{os.sep}", f"{source}: ")) from None


def take(results: Iterable[Result], runs: Path) -> Collected:
    """Add results; of several results of one run, the one with the most facts about its matrices counts."""
    fullest: dict[str, Result] = {}
    for result in results:
        other = fullest.setdefault(result.key, result)
        if len(json.dumps(result.matrices)) > len(json.dumps(other.matrices)):
            fullest[result.key] = result
    if not fullest:
        raise EmbinitError(
            "these results have no finished runs; experiments that train nothing are measured again by `embinit run`"
        )
    collected = Collected()
    for key, result in fullest.items():
        if is_done(runs / key):
            collected.already += 1
            continue
        result.write(runs)
        _note_taken(key, runs, collected)
    return collected


def _note_taken(key: str, runs: Path, collected: Collected) -> None:
    collected.taken.append(key)
    (runs / f"{key}.failed.json").unlink(missing_ok=True)


def _from_folder(source: Path, runs: Path, given: Path) -> Collected:
    """Add the runs of a folder; `given` is the user's path, for messages."""
    collected = Collected(failed=sum(1 for _ in source.rglob("*.failed.json")))
    folders = sorted({path.parent for path in _walk(source)})
    if not folders:
        raise EmbinitError(f"{given} holds no finished runs")
    for folder in folders:
        if not _KEY.fullmatch(folder.name):
            raise EmbinitError(f"{folder} holds a run, but its name is not the key of a run (16 hexadecimal digits)")
        if is_done(runs / folder.name):
            _check_key(folder, folder.name)
            collected.already += 1
            continue
        # The copy is checked, not the original, so that the checked files are the ones that are kept.
        with replacing_folder(runs / folder.name) as target:
            _copy(folder, target)
            _check_key(target, folder.name, folder)
        _note_taken(folder.name, runs, collected)
    return collected


def _walk(source: Path) -> Iterable[Path]:
    """Yield every run.json below a folder; hidden folders are skipped, links to folders are followed once."""
    seen: set[str] = set()
    for folder, inner, files in os.walk(source, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            inner.clear()
            continue
        seen.add(real)
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        if "run.json" in files:
            yield Path(folder) / "run.json"


def _copy(folder: Path, target: Path) -> None:
    """Copy the files of a run; a symbolic link is replaced by the content of its target."""
    for file in sorted(folder.iterdir()):
        largest = _largest(file.name)
        if largest is None:
            continue
        try:
            with open(file, "rb", opener=_without_waiting) as content, (target / file.name).open("wb") as out:
                if not S_ISREG(os.fstat(content.fileno()).st_mode):
                    raise EmbinitError(f"{file} is not a regular file")
                _copy_bytes(content, out, largest, f"{file} is")
        except OSError as error:
            if isinstance(error, EmbinitError):
                raise
            raise EmbinitError(f"cannot copy {file}: {error.strerror or error}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a named pipe without a writer does not block."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _largest(name: str) -> int | None:
    """Return the largest accepted size of a file of a run; None for any other file."""
    return next((largest for pattern, largest in _FILES.items() if pattern.fullmatch(name)), None)


def _copy_bytes(content: IO[bytes], out: IO[bytes], largest: int, what: str) -> int:
    copied = 0
    while chunk := content.read(1 << 20):
        copied += len(chunk)
        if copied > largest:
            raise EmbinitError(f"{what} larger than {largest:,} bytes, the largest accepted size")
        out.write(chunk)
    return copied


def _check_key(folder: Path, key: str, path: Path | None = None) -> None:
    """Raise EmbinitError if the files in a folder are not those of the run with this key."""
    path = path or folder
    try:
        result = read_result(folder)
    except Damaged as error:
        raise Damaged(str(error).replace(str(folder), str(path))) from None
    if result.key != key:
        raise EmbinitError(f"{path} does not match its name: the key of its spec is {result.key}")


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack only the files of runs, each below a folder of its run's key; paths in the archive are ignored."""
    room = max(_ALWAYS, _RATIO * archive.stat().st_size)
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                parts = Path(member.name).parts
                largest = _largest(parts[-1]) if len(parts) > 1 else None
                if largest is None or not member.isfile() or not _KEY.fullmatch(parts[-2]):
                    continue
                content = tar.extractfile(member)
                if content is not None:
                    target = folder / parts[-2] / parts[-1]
                    target.parent.mkdir(exist_ok=True)
                    with content, target.open("wb") as out:
                        room -= _copy_bytes(content, out, min(largest, room), f"{archive}: {'/'.join(parts[-2:])} is")
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, EmbinitError):
            raise
        reason = error.strerror if isinstance(error, OSError) else None  # a full disk; None if the archive is damaged
        raise EmbinitError(
            f"{archive} cannot be unpacked: {reason or 'it is no tar archive, or a damaged one'}"
        ) from None
