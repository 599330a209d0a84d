"""Atomic writes of files and folders, and reading of compressed files and of small ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import secrets
import shutil
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from embinit.errors import EmbinitError, closest

BUFFER = 1 << 20
#: Bytes of a name that becomes part of a file's name; file systems accept 255.
_LONGEST = 200
#: The exceptions of gzip, bz2, lzma and zipfile on damaged input.
_DAMAGE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error, struct.error)
#: No experiment or recipe comes near this size.
_LARGEST_TOML = 1 << 24
#: A key of 32 parts. The parser's time grows with the square of the number of parts.
_ENDLESS_KEY = re.compile(r"(?<![\w\"'-])(?:[\"']?[\w-]+[\"']?[ \t]*\.[ \t]*){32}")
#: Compressed text grows a few times. A file that grows more than this, beyond the first bytes, is refused.
_LARGEST_GROWTH, _ANY_GROWTH = 200, 1 << 28
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"PK\x05\x06": "zip"}


def component(name: str, kind: str) -> str:
    """Return a name that came from a file and becomes part of a path; an error if it could lead to another folder.

    >>> component("table1", "the name of the experiment")
    'table1'
    """
    plain = name.isprintable() and not {"/", "\\"} & set(name)
    if name in ("", ".", "..") or not plain or len(name.encode()) > _LONGEST:
        raise EmbinitError(
            f"{kind} is {name[:_LONGEST]!r}; a name without / and \\ of at most {_LONGEST} bytes is expected, "
            "because files are named after it"
        )
    return name


def read_whole(path: Path, largest: int) -> bytes:
    """Return the content of a file that is small if it is sound; a larger one is an error before it fills the memory."""
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise EmbinitError(f"cannot read {str(path)!r}: no file can have this name") from None
    if len(content) > largest:
        raise EmbinitError(f"{path} is larger than {largest >> 20} MB, as no file of its kind is")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    content = read_whole(path, _LARGEST_TOML)
    try:
        text = content.decode("utf-8")
        if _ENDLESS_KEY.search(text):
            raise RecursionError
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EmbinitError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise EmbinitError(f"{path} is nested too deeply; tables have a few levels") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write. It replaces `path` at the end; after an error `path` is unchanged.

    If `path` is a symbolic link, the target is written and the link stays.
    """
    if path.is_dir():
        raise EmbinitError(f"{path} is a folder; give the name of a file")
    target = Path(os.path.realpath(path))
    if (path.exists() and not path.is_file()) or target.is_symlink():  # still a link: it points to itself
        raise EmbinitError(f"cannot write {path}: it is not a regular file")
    _check_parents(path)
    part = _part_path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb", buffering=BUFFER) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and not isinstance(error, EmbinitError):
            raise EmbinitError(f"cannot write {path}: {_reason(error)}") from None
        raise


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill. It becomes `path` at the end; after an error nothing is left behind."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise EmbinitError(f"{path} exists already; give a new folder or remove it first")
    target = Path(os.path.realpath(path))
    _check_parents(path)
    part = _part_path(target)
    inner = part / target.name
    try:
        inner.mkdir(parents=True)
        yield inner
        if target.exists():
            target.rmdir()
        inner.rename(target)
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot write {path}: {_reason(error)}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _reason(error: OSError) -> str:
    """Return why a write failed. numpy says `800 requested and 512 written` if the disk is full."""
    return error.strerror or ("there is not enough room on the disk" if "requested and" in str(error) else str(error))


def _part_path(target: Path) -> Path:
    """Return an unused path beside `target`. It is fixed before the file exists, so that Ctrl-C leaves nothing behind."""
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.part"


def _check_parents(path: Path) -> None:
    """Raise EmbinitError if one of the parent folders of `path` is a file."""
    for parent in path.parents:
        if parent.exists() and not parent.is_dir():
            raise EmbinitError(f"cannot write {path}: {parent} is a file, not a folder")


def compression(path: Path) -> str:
    """Return `gzip`, `bzip2`, `xz`, `zip` or `none`, from the first bytes of the file."""
    with path.open("rb") as file:
        head = file.read(6)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "none")


@contextmanager
def open_unpacked(path: Path, member: str | None = None) -> Iterator[BinaryIO]:
    """Yield a buffered stream of the uncompressed bytes of a file, or of one member of a zip archive."""
    try:
        kind = compression(path)
        if member is not None and kind != "zip":
            raise EmbinitError(f"{path} is not a zip archive, so it has no member {member!r}")
        if kind == "zip":
            with (
                open_archive(path) as archive,
                _open_member(archive, path, _member_name(archive, path, member)) as inner,
            ):
                yield _bounded(inner, path)
            return
        readers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
        with readers[kind](path, "rb") if kind in readers else path.open("rb", buffering=0) as inner:
            yield _bounded(inner, path) if kind in readers else io.BufferedReader(inner, BUFFER)
    except _DAMAGE as error:
        raise EmbinitError(f"{path} is damaged or cut short: {error}") from None
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None


class _Bounded(io.RawIOBase):
    """Unpacked bytes; more of them than any honest file has are an error."""

    def __init__(self, inner: IO[bytes], path: Path) -> None:
        self._inner, self._path = inner, path
        self._room = max(_ANY_GROWTH, _LARGEST_GROWTH * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._inner.read(len(buffer))
        buffer[: len(content)] = content
        self._room -= len(content)
        if self._room < 0:
            raise EmbinitError(
                f"{self._path} unpacks to more than {_LARGEST_GROWTH} times its size, as no text or vectors do"
            )
        return len(content)


def _bounded(inner: IO[bytes], path: Path) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Bounded(inner, path), BUFFER))


def open_archive(path: Path) -> zipfile.ZipFile:
    """Return an open zip archive."""
    try:
        return zipfile.ZipFile(path)
    except (*_DAMAGE, ValueError, NotImplementedError, OverflowError) as error:
        raise EmbinitError(f"{path} is damaged or cut short: {error}") from None


def _open_member(archive: zipfile.ZipFile, path: Path, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except (*_DAMAGE, RuntimeError, ValueError, OverflowError) as error:  # RuntimeError: encrypted, unknown method
        raise EmbinitError(f"{path}: {name} cannot be unpacked: {error}") from None


def _member_name(archive: zipfile.ZipFile, path: Path, wanted: str | None) -> str:
    names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if wanted is not None:
        if wanted not in names:
            raise EmbinitError(f"{path} has no member {wanted!r}{closest(wanted, names)}")
        return wanted
    if len(names) != 1:
        listed = ", ".join(names[:8]) or "none"
        raise EmbinitError(f"{path} has {len(names)} members ({listed}); choose one as {path}::MEMBER")
    return names[0]
