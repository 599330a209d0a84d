"""Runs that were made elsewhere, taken in: from a folder, from an archive that is not trusted, or from files of results."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.runs.result import Result, read_result
from embinit.experiments.runs.store import is_done
from embinit.files import replacing_folder

#: The files that a run's folder may have; nothing else is taken.
_FILES = re.compile(r"(spec|history|scores|matrices|run)\.json|output\.[\w-]+\.txt")
_KEY = re.compile(r"[0-9a-f]{16}")
#: No file of a run is larger.
_LARGEST = 1 << 28


@dataclass
class Collected:
    """What was taken in."""

    taken: list[str] = field(default_factory=list)
    already: int = 0
    #: runs that failed there
    failed: int = 0


def collect(source: Path, runs: Path) -> Collected:
    """Return which runs of a folder or archive were taken in; one that is not what its name says is an error."""
    if source.is_dir():
        return _from_folder(source, runs, source)
    if not source.is_file():
        raise EmbinitError(f"no such file or folder: {source}")
    with tempfile.TemporaryDirectory(prefix="embinit-collect-") as folder:
        _unpack(source, Path(folder))
        try:
            return _from_folder(Path(folder), runs, source)
        except EmbinitError as error:  # what is wrong is in the archive, and not where it was unpacked
            raise EmbinitError(str(error).replace(f"{folder}{os.sep}", f"{source}: ")) from None


def take(results: Iterable[Result], runs: Path) -> Collected:
    """Return which of these results were taken in; of several of one run the one that tells most of its matrices."""
    fullest: dict[str, Result] = {}
    for result in results:
        other = fullest.setdefault(result.key, result)
        if len(json.dumps(result.matrices)) > len(json.dumps(other.matrices)):
            fullest[result.key] = result
    if not fullest:
        raise EmbinitError(
            "there are no finished runs in these results; `embinit run` measures anew what trains nothing"
        )
    found = Collected()
    for key, result in fullest.items():
        if is_done(runs / key):
            found.already += 1
            continue
        result.write(runs)
        _taken(key, runs, found)
    return found


def _taken(key: str, runs: Path, found: Collected) -> None:
    found.taken.append(key)
    (runs / f"{key}.failed.json").unlink(missing_ok=True)


def _from_folder(source: Path, runs: Path, given: Path) -> Collected:
    """Return which runs of a folder were taken in; `given` is what was asked for, the archive that it came out of say."""
    found = Collected(failed=sum(1 for _ in source.rglob("*.failed.json")))
    folders = sorted({path.parent for path in source.rglob("run.json")})
    for folder in folders:
        if folder.name.startswith(".") or any(part.startswith(".") for part in folder.relative_to(source).parts):
            continue
        key = _verified(folder)
        if is_done(runs / key):
            found.already += 1
            continue
        with replacing_folder(runs / key) as target:
            for file in sorted(folder.iterdir()):
                if _FILES.fullmatch(file.name) and file.is_file() and not file.is_symlink():
                    shutil.copyfile(file, target / file.name)
        _taken(key, runs, found)
    if not folders:
        raise EmbinitError(f"{given} holds no finished runs")
    return found


def _verified(folder: Path) -> str:
    """Return a run's key; an error where the folder's name, or its files, are not what its spec says."""
    try:
        result = read_result(folder)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise EmbinitError(f"{folder} is damaged: {type(error).__name__}, {error}") from None
    if result.key != folder.name or not _KEY.fullmatch(folder.name):
        raise EmbinitError(f"{folder} is not the run that its name says: its spec's is {result.key}")
    return result.key


def _unpack(archive: Path, folder: Path) -> None:
    """Write the files of runs, and nothing else, below a folder, each under its run's name, whatever paths say."""
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                parts = Path(member.name).parts
                if len(parts) < 2 or not member.isfile() or not _FILES.fullmatch(parts[-1]):
                    continue
                if not _KEY.fullmatch(parts[-2]) or member.size > _LARGEST:
                    continue
                content = tar.extractfile(member)
                if content is not None:
                    target = folder / parts[-2] / parts[-1]
                    target.parent.mkdir(exist_ok=True)
                    with content, target.open("wb") as out:
                        shutil.copyfileobj(content, out)
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        reason = error.strerror if isinstance(error, OSError) else None  # a full disk; none where the file is at fault
        raise EmbinitError(
            f"{archive} cannot be unpacked: {reason or 'it is no tar archive, or a damaged one'}"
        ) from None
