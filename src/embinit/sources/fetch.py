"""Downloads of vector files: resumable, and checked against a checksum."""

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

#: Called with (name of the step, bytes done, bytes in total or None).
Progress = Callable[[str, int, int | None], None]

_TRIES = 5
_TIMEOUT = 60


@dataclass(frozen=True)
class Fetched:
    """A downloaded file, and how it was checked."""

    path: Path
    sha256: str
    #: `published`: equals a published checksum; `recorded`: equals that of the first download; `first`: recorded now
    checked: str
    new: bool


def fetch(entry: Entry, folder: Path, progress: Progress = lambda *_: None, pause: float = 1.0) -> Fetched:
    """Return the file of an entry, after a download if necessary. An interrupted download continues.

    Parameters
    ----------
    entry
        The file of the catalogue.
    folder
        The folder to download to.
    progress
        A function that is called while the download runs.
    pause
        Seconds before the second try; they double with each try.

    Returns
    -------
    Fetched
        The path, and how the file was checked.

    Raises
    ------
    EmbinitError
        If the file cannot be downloaded or written, or its checksum differs. A file with a wrong checksum is removed.
    """
    path = folder / entry.file
    record_file = folder / f"{entry.file}.json"
    recorded = _read_record(record_file)
    if path.is_file() and recorded:
        if recorded.get("size") != path.stat().st_size:
            raise EmbinitError(f"{path} has changed since its download; remove it and fetch it again")
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
    sha256 = _checksum(part, progress)
    expected = entry.sha256 or recorded.get("sha256")
    if expected is not None and sha256 != expected:
        part.unlink()
        _version_file(part).unlink(missing_ok=True)
        expectation = f"{entry.published} publishes" if entry.sha256 else "the first download had"
        raise EmbinitError(
            f"{entry.name}: the sha256 is {sha256}, but {expectation} {expected}; the download was removed"
        )
    checked = "published" if entry.sha256 else "recorded" if recorded else "first"
    if entry.unpack:
        _unpack(part, path)
        part.unlink()
    else:
        part.replace(path)
    _version_file(part).unlink(missing_ok=True)
    next_time = "recorded" if checked == "first" else checked
    record = {"url": entry.url, "sha256": sha256, "checked": next_time, "size": path.stat().st_size}
    with replacing(record_file) as out:
        out.write(json.dumps(record, indent=2).encode())
    return Fetched(path, sha256, checked, new=True)


def _read_record(path: Path) -> dict[str, Any]:
    """Return the record of the first download; an empty one if there was no download yet."""
    if not path.is_file():
        return {}
    try:
        recorded = json.loads(path.read_text("utf-8"))
        return {name: recorded[name] for name in ("sha256", "checked", "size")}
    except (ValueError, KeyError, TypeError):
        raise EmbinitError(f"{path} is damaged; remove it and fetch the file again") from None


def _unpack(part: Path, path: Path) -> None:
    with replacing(path) as out:
        try:
            with gzip.open(part, "rb") as packed:
                shutil.copyfileobj(packed, out, BUFFER)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            part.unlink()
            raise EmbinitError(f"{part} cannot be unpacked and was removed: {error}") from None


def _version_file(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _address(url: str) -> str:
    """Return the address to download from: `$EMBINIT_MIRROR/FILE` if a mirror is set, and the URL itself otherwise."""
    mirror = os.environ.get("EMBINIT_MIRROR")
    return f"{mirror.rstrip('/')}/{url.rpartition('/')[2]}" if mirror else url


def _download(url: str, part: Path, progress: Progress, pause: float) -> None:
    """Download the rest of the file to `part`, and try again after an error."""
    for attempt in range(_TRIES):
        try:
            if _download_rest(url, part, progress):
                return
            reason = "the connection closed early"
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise EmbinitError(f"{url}: the server answered {error.code} {error.reason}") from None
            reason = f"the server answered {error.code}"
        except ValueError:
            raise EmbinitError(f"{url} is not an address that can be downloaded") from None
        except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < _TRIES:
            time.sleep(pause * 2**attempt)
    raise EmbinitError(f"{url}: {reason}, {_TRIES} times; run the same command again to continue the download")


def _download_rest(url: str, part: Path, progress: Progress) -> bool:
    """Append the rest of the file to `part`, or start again if the file has changed; return whether it is complete."""
    version = _version_file(part)
    size = part.stat().st_size if part.is_file() and version.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "embinit", "Accept-Encoding": "identity"})
    if size:
        request.add_header("Range", f"bytes={size}-")
        request.add_header("If-Range", version.read_text("utf-8"))
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and size and error.headers.get("Content-Range") == f"bytes */{size}":
            return True
        if error.code == 416:
            part.unlink(missing_ok=True)
            return False
        raise
    with response:
        if response.status != 206:
            size = 0
        length = response.headers.get("Content-Length")
        total = size + int(length) if length and length.isdigit() else None
        tag = _version(response.headers)
        if tag:
            version.write_text(tag, "utf-8")
        else:
            version.unlink(missing_ok=True)
        with part.open("ab" if size else "wb") as out:
            while chunk := response.read(BUFFER):
                out.write(chunk)
                size += len(chunk)
                progress("downloading", size, total)
    return total is None or size >= total


def _version(headers: HTTPMessage) -> str | None:
    """Return the tag of the file's version on the server. A weak ETag cannot be used for range requests."""
    tag = headers.get("ETag")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")


def _checksum(path: Path, progress: Progress) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(BUFFER):
            digest.update(chunk)
            done += len(chunk)
            progress("checking", done, total)
    return digest.hexdigest()
