"""Files that are whole or absent: atomic writes, and readers that see through compression."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import secrets
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from embinit.errors import EmbinitError, closest

BUFFER = 1 << 20
#: What gzip, bz2, lzma and zipfile raise on damaged input.
_DAMAGE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error, struct.error)
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"PK\x03\x04": "zip", b"PK\x05\x06": "zip"}


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write; it takes the place of `path` when all went well, and else leaves the old one.

    Where `path` is a link, the file that it leads to is written and the link stays.
    """
    if path.is_dir():
        raise EmbinitError(f"{path} is a folder; give the name of a file")
    target = Path(os.path.realpath(path))
    if (path.exists() and not path.is_file()) or target.is_symlink():  # a link still: one that leads back to itself
        raise EmbinitError(f"cannot write {path}: it is no regular file")
    _check_parents(path)
    part = _part(target)
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
            raise EmbinitError(f"cannot write {path}: {error.strerror or error}") from None
        raise


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; it becomes `path` when all went well, and else nothing is left behind."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise EmbinitError(f"{path} exists already; give a new folder or remove it first")
    target = Path(os.path.realpath(path))
    _check_parents(path)
    part = _part(target)
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
        raise EmbinitError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _part(target: Path) -> Path:
    """Return a name beside `target` that nothing has: known before it is made, so that Ctrl-C can never leave it behind."""
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.part"


def _check_parents(path: Path) -> None:
    """Raise where a file stands in the place of a folder that `path` is to lie in."""
    for parent in path.parents:
        if parent.exists() and not parent.is_dir():
            raise EmbinitError(f"cannot write {path}: {parent} is a file, not a folder")


def compression(path: Path) -> str:
    """Return `gzip`, `bzip2`, `xz`, `zip` or `none`, by the file's first bytes."""
    with path.open("rb") as file:
        head = file.read(6)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "none")


@contextmanager
def opened(path: Path, member: str | None = None) -> Iterator[BinaryIO]:
    """Yield the uncompressed bytes of a file, or of one member of a zip archive, with room to peek."""
    try:
        kind = compression(path)
        if member is not None and kind != "zip":
            raise EmbinitError(f"{path} is no zip archive, so it has no member {member!r}")
        if kind == "zip":
            with archive(path) as zipped, _unpacked(zipped, path, _member(zipped, path, member)) as inner:
                yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, inner), BUFFER))
            return
        readers: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
        with readers[kind](path, "rb") if kind in readers else path.open("rb", buffering=0) as inner:
            yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, inner), BUFFER))
    except _DAMAGE as error:
        raise EmbinitError(f"{path} is damaged or cut short: {error}") from None
    except OSError as error:
        if isinstance(error, EmbinitError):
            raise
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None


def archive(path: Path) -> zipfile.ZipFile:
    """Return a zip archive, opened."""
    try:
        return zipfile.ZipFile(path)
    except (*_DAMAGE, ValueError, NotImplementedError, OverflowError) as error:
        raise EmbinitError(f"{path} is damaged or cut short: {error}") from None


def _unpacked(zipped: zipfile.ZipFile, path: Path, name: str) -> IO[bytes]:
    try:
        return zipped.open(name)
    except (*_DAMAGE, RuntimeError, ValueError, OverflowError) as error:  # RuntimeError: encrypted, unknown method
        raise EmbinitError(f"{path}: {name} cannot be unpacked: {error}") from None


def _member(zipped: zipfile.ZipFile, path: Path, wanted: str | None) -> str:
    names = [name for name in zipped.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if wanted is not None:
        if wanted not in names:
            raise EmbinitError(f"{path} has no member {wanted!r}{closest(wanted, names)}")
        return wanted
    if len(names) != 1:
        listed = ", ".join(names[:8]) or "none"
        raise EmbinitError(f"{path} has {len(names)} members ({listed}); name one as {path}::MEMBER")
    return names[0]
