"""Downloads of vector files: resumable, and checked against a checksum or by reading them."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import BadStatusLine, HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Literal, TypedDict

from embinit.errors import EmbinitError
from embinit.files import BUFFER, open_unpacked, replacing
from embinit.records import read_json
from embinit.sources.catalogue import Entry
from embinit.sources.load import load

#: Called with (name of the step, bytes done, bytes in total or None).
Progress = Callable[[str, int, int | None], None]

_TRIES = 5
_TIMEOUT = 60
#: A download without an expected size stops here. The largest known file of vectors has a third of it.
LARGEST = 20 * 10**9
#: Rows that a file without a published checksum must show.
_ROWS_READ = 100


class _Record(TypedDict):
    """FILE.json: the checksum of the first download."""

    sha256: str
    checked: Literal["published", "recorded"]
    size: int


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(
            folder / f".{entry.file}.lock", lambda: progress("waiting for another download of this file", 0, None)
        ):
            return _fetch(entry, folder, progress, pause)
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot write {folder / entry.file}: {error.strerror or error}") from None


@contextlib.contextmanager
def _alone(lock: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock on a target, so that two downloads never write the same part. The system frees it if the process dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    while True:
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(file, lock):  # the process that held the lock has removed the file
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _is_at(file: IO[str], path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _fetch(entry: Entry, folder: Path, progress: Progress, pause: float) -> Fetched:
    path = folder / entry.file
    record_file = folder / f"{entry.file}.json"
    recorded = _read_record(record_file)
    if path.is_file() and recorded:
        if recorded["size"] != path.stat().st_size:
            raise EmbinitError(f"{path} has changed since its download; remove it and fetch it again")
        return Fetched(path, recorded["sha256"], recorded["checked"], new=False)
    download = folder / entry.url.rpartition("/")[2]
    part = download.with_name(download.name + ".part")
    _download(_address(entry.url), part, entry.size, progress, pause)
    sha256 = _checksum(part, progress)
    expected = entry.sha256 or (recorded["sha256"] if recorded else None)
    if expected is not None and sha256 != expected:
        _remove(part)
        expectation, remedy = f"{entry.published} publishes", ""
        if not entry.sha256:
            expectation = "the first download had"
            remedy = f"; if the server has a new version of the file, remove {record_file} and fetch it again"
        raise EmbinitError(
            f"{entry.name}: the sha256 is {sha256}, but {expectation} {expected}; the download was removed{remedy}"
        )
    checked = "published" if entry.sha256 else "recorded" if recorded else "first"
    if checked == "first":
        _check_vectors(entry, part, progress)
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


def _check_vectors(entry: Entry, part: Path, progress: Progress) -> None:
    """Remove a download that is not a complete file of vectors: nothing else tells a web page or a cut file from it."""
    try:
        with open_unpacked(part) as stream:  # to the end, where compressed files have their own checksum
            done = 0
            while chunk := stream.read(BUFFER):
                done += len(chunk)
                progress("reading", done, None)
        load(part, most=_ROWS_READ)
    except EmbinitError as error:
        _remove(part)
        reason = str(error).replace(str(part), "it")
        raise EmbinitError(
            f"{entry.name}: the download is no complete file of vectors and was removed: {reason}"
        ) from None


def _remove(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)


def _read_record(path: Path) -> _Record | None:
    """Return the record of the first download; None if there was no download yet."""
    if not path.is_file():
        return None
    record: _Record = read_json(path, _Record, "remove it and fetch the file again")
    return record


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


def _download(url: str, part: Path, expected: int | None, progress: Progress, pause: float) -> None:
    """Download the rest of the file to `part`, and try again after an error."""
    for attempt in range(_TRIES):
        try:
            if _download_rest(url, part, expected, progress):
                return
            reason = "the connection closed early"
        except EmbinitError:
            raise
        except urllib.error.HTTPError as error:
            if error.code < 500:
                reason = str(error.reason).partition("\n")[0]  # the reason of an endless redirection has three lines
                raise EmbinitError(f"{url}: the server answered {error.code} {reason}") from None
            reason = f"the server answered {error.code}"
        except ValueError:
            raise EmbinitError(f"{url} is not an address that can be downloaded") from None
        except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
            text = str(getattr(error, "reason", error)).strip().partition("\n")[0]
            reason = f"the answer is no HTTP ({text[:80]!r})" if isinstance(error, BadStatusLine) else text
            reason = reason or type(error).__name__
        if attempt + 1 < _TRIES:
            time.sleep(pause * 2**attempt)
    raise EmbinitError(f"{url}: {reason}, {_TRIES} times; run the same command again to continue the download")


def _download_rest(url: str, part: Path, expected: int | None, progress: Progress) -> bool:
    """Append the rest of the file to `part`, or start again if the file has changed; return whether it is complete."""
    version = _version_file(part)
    size = part.stat().st_size if part.is_file() and version.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "embinit", "Accept-Encoding": "identity"})
    tag = version.read_text("utf-8") if size else None
    if tag:
        request.add_header("Range", f"bytes={size}-")
        request.add_header("If-Range", tag)
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
        if response.status == 206 and not _continues(response.headers, size, tag):
            _remove(part)  # the next try asks for the whole file
            return False
        if response.status != 206:
            size = 0
        length = response.headers.get("Content-Length")
        if length is not None and not length.isdecimal():
            raise EmbinitError(f"{url}: the server announces {length[:80]!r} bytes, which is no size")
        total = size + int(length) if length else None
        _check_size(url, total, expected)
        tag = _version(response.headers)
        if tag:
            version.write_text(tag, "utf-8")
        else:
            version.unlink(missing_ok=True)
        with part.open("ab" if size else "wb") as out:
            while chunk := response.read(BUFFER):
                size += len(chunk)
                if size > (total or expected or LARGEST):
                    out.close()
                    _remove(part)
                    raise EmbinitError(
                        f"{url}: the server sent more than {total or expected or LARGEST:,} bytes; stopped"
                    )
                out.write(chunk)
                progress("downloading", size, total)
    return size >= (total or expected or 0)


def _continues(headers: HTTPMessage, start: int, tag: str | None) -> bool:
    """Return whether an answer of status 206 begins where our part ends, in the same version of the file."""
    continues = (headers.get("Content-Range") or "").startswith(f"bytes {start}-")
    return continues and _version(headers) in (tag, None)


def _check_size(url: str, total: int | None, expected: int | None) -> None:
    """Raise EmbinitError if the server announces a file of another size than the expected one, or one that is too large."""
    if total is not None and expected is not None and total != expected:
        raise EmbinitError(f"{url}: the server announces {total:,} bytes, but the file has {expected:,}")
    if total is not None and total > LARGEST:
        raise EmbinitError(f"{url}: the server announces {total:,} bytes; at most {LARGEST:,} are downloaded")


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
