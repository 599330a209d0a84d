"""Downloads: explicit, resumable, checked, and whole or absent."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.files import BUFFER, replacing
from embinit.sources.catalogue import Entry

#: Called with (what is being done, bytes done, bytes in all or None).
Progress = Callable[[str, int, int | None], None]

_TRIES = 5
_TIMEOUT = 60


@dataclass(frozen=True)
class Fetched:
    """A file that is on disk now, and how it was checked."""

    path: Path
    sha256: str
    #: `published`: equal to a published checksum; `recorded`: equal to that of the first download; `first`: recorded now
    checked: str
    new: bool


def fetch(entry: Entry, folder: Path, progress: Progress = lambda *_: None, pause: float = 1.0) -> Fetched:
    """Return the file of an entry, downloaded where it is not there; an interrupted download goes on."""
    path = folder / entry.file
    note = folder / f"{entry.file}.json"
    recorded = _recorded(note)
    if path.is_file() and recorded:
        if recorded.get("size") != path.stat().st_size:
            raise EmbinitError(f"{path} has changed since it was fetched; remove it and fetch again")
        return Fetched(path, recorded["sha256"], recorded["checked"], new=False)
    download = folder / entry.url.rpartition("/")[2]
    part = download.with_name(download.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _download(_address(entry.url), part, progress, pause)
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot write {part}: {error.strerror or error}") from None
    sha256 = _sha256(part, progress)
    expected = entry.sha256 or recorded.get("sha256")
    if expected is not None and sha256 != expected:
        part.unlink()
        _version_file(part).unlink(missing_ok=True)
        whose = f"published by {entry.published}" if entry.sha256 else "of the first download"
        raise EmbinitError(f"{entry.name}: sha256 is {sha256}, but {expected} was {whose}; the file was not kept")
    checked = "published" if entry.sha256 else "recorded" if recorded else "first"
    if entry.unpack:
        _unpack(part, path)
        part.unlink()
    else:
        part.replace(path)
    _version_file(part).unlink(missing_ok=True)
    kept = "recorded" if checked == "first" else checked
    record = {"url": entry.url, "sha256": sha256, "checked": kept, "size": path.stat().st_size}
    with replacing(note) as out:
        out.write(json.dumps(record, indent=2).encode())
    return Fetched(path, sha256, checked, new=True)


def _recorded(note: Path) -> dict[str, Any]:
    """Return what was noted at the first download; nothing where there is no note."""
    if not note.is_file():
        return {}
    try:
        recorded = json.loads(note.read_text("utf-8"))
        return {name: recorded[name] for name in ("sha256", "checked", "size")}
    except (ValueError, KeyError, TypeError):
        raise EmbinitError(f"{note} is damaged; remove it and fetch again") from None


def _unpack(part: Path, path: Path) -> None:
    with replacing(path) as out:
        try:
            with gzip.open(part, "rb") as packed:
                shutil.copyfileobj(packed, out, BUFFER)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            part.unlink()
            raise EmbinitError(f"{part} cannot be unpacked and was not kept: {error}") from None


def _version_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _address(url: str) -> str:
    """Return the address to ask: `$EMBINIT_MIRROR/FILE` where a mirror is set."""
    mirror = os.environ.get("EMBINIT_MIRROR")
    return f"{mirror.rstrip('/')}/{url.rpartition('/')[2]}" if mirror else url


def _download(url: str, part: Path, progress: Progress, pause: float) -> None:
    """Bring `part` to the whole file, going on where it ends; the server must still have the same version."""
    for attempt in range(_TRIES):
        try:
            if _continue(url, part, progress):
                return
            reason = "the connection closed early"
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise EmbinitError(f"{url}: the server answered {error.code} {error.reason}") from None
            reason = f"the server answered {error.code}"
        except ValueError:
            raise EmbinitError(f"{url} is no address that can be fetched") from None
        except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < _TRIES:
            time.sleep(pause * 2**attempt)
    raise EmbinitError(f"{url}: {reason}, {_TRIES} times; run the same command again to go on from there")


def _continue(url: str, part: Path, progress: Progress) -> bool:
    """Add what is missing to `part`; return whether it is whole."""
    version = _version_file(part)
    have = part.stat().st_size if part.is_file() and version.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "embinit", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version.read_text("utf-8"))
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have and error.headers.get("Content-Range") == f"bytes */{have}":
            return True
        if error.code == 416:
            part.unlink(missing_ok=True)
            return False
        raise
    with answer:
        if answer.status != 206:
            have = 0
        size = answer.headers.get("Content-Length")
        total = have + int(size) if size and size.isdigit() else None
        mark = _version(answer.headers)
        if mark:
            version.write_text(mark, "utf-8")
        else:
            version.unlink(missing_ok=True)
        with part.open("ab" if have else "wb") as out:
            while chunk := answer.read(BUFFER):
                out.write(chunk)
                have += len(chunk)
                progress("downloading", have, total)
    return total is None or have >= total


def _version(headers: HTTPMessage) -> str | None:
    """Return what tells one version of the file from another; a weak ETag may not be used for ranges."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _sha256(path: Path, progress: Progress) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(BUFFER):
            digest.update(chunk)
            done += len(chunk)
            progress("checking", done, total)
    return digest.hexdigest()
