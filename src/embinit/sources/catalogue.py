"""Well-known vector files: their names, their addresses, and their paths after a download."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path

from embinit.errors import EmbinitError, closest

_NAME = re.compile(r"(glove|fasttext):[\w.{}-]+")


@dataclass(frozen=True)
class Entry:
    """A file that `embinit fetch` can download."""

    name: str
    url: str
    about: str = ""
    size: int | None = None
    sha256: str | None = None
    #: the place where others have published the checksum
    published: str = ""
    #: name of a table -> member of the archive
    members: dict[str, str] = field(default_factory=dict)
    unpack: bool = False

    @property
    def file(self) -> str:
        """Return the name of the file on disk."""
        name = self.url.rpartition("/")[2]
        return name.removesuffix(".gz") if self.unpack else name


@cache
def entries() -> tuple[Entry, ...]:
    """Return all files of the catalogue."""
    text = resources.files("embinit.sources").joinpath("catalogue.toml").read_text("utf-8")
    return tuple(Entry(**values) for values in tomllib.loads(text)["file"])


def is_name(spec: str) -> bool:
    """Return whether a source is spelled like a name of the catalogue: `glove:840B`."""
    return _NAME.fullmatch(spec) is not None


def find_entry(name: str) -> tuple[Entry, str | None]:
    """Return the file that a name stands for, and the member of its archive; None for a file without members."""
    for entry in entries():
        if name in entry.members:
            return entry, entry.members[name]
        if name == entry.name and "{" not in name:
            return entry, None
    match = re.fullmatch(r"fasttext:([a-z]{2,3})(\.bin)?", name)
    if match:
        language, ending = match[1], match[2] or ""
        pattern = next(entry for entry in entries() if entry.name == "fasttext:{language}" + ending)
        return replace(pattern, name=name, url=pattern.url.format(language=language)), None
    names = [known for entry in entries() for known in (*entry.members, entry.name)]
    raise EmbinitError(f"unknown name {name!r}{closest(name, names)}")


def cache_folder() -> Path:
    """Return the folder of downloads: `$EMBINIT_CACHE`, or embinit in the user's cache folder."""
    from_environment = os.environ.get("EMBINIT_CACHE")
    if from_environment:
        return Path(from_environment)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "embinit"


def fetched_path(name: str) -> tuple[Path, str | None]:
    """Return the downloaded file of a name, and its member. If it is not there, the error gives the command to run."""
    entry, member = find_entry(name)
    path = cache_folder() / entry.file
    if not path.is_file():
        raise EmbinitError(f"{name} is not on this machine; run: embinit fetch {name}")
    if member is None and entry.members:
        raise EmbinitError(f"{name} has several tables; choose one of {', '.join(entry.members)}")
    return path, member
