"""Well-known vector files by name, and where they lie once fetched."""

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
    """One downloadable file."""

    name: str
    url: str
    about: str = ""
    size: int | None = None
    sha256: str | None = None
    #: where others have published the checksum
    published: str = ""
    #: name -> member of the archive
    members: dict[str, str] = field(default_factory=dict)
    unpack: bool = False

    @property
    def file(self) -> str:
        """Return the name of the file on disk."""
        name = self.url.rpartition("/")[2]
        return name.removesuffix(".gz") if self.unpack else name


@cache
def entries() -> tuple[Entry, ...]:
    """Return the catalogue."""
    text = resources.files("embinit.sources").joinpath("catalogue.toml").read_text("utf-8")
    return tuple(Entry(**values) for values in tomllib.loads(text)["file"])


def is_name(spec: str) -> bool:
    """Return whether a source is written like a catalogue name: `glove:840B`."""
    return _NAME.fullmatch(spec) is not None


def find(name: str) -> tuple[Entry, str | None]:
    """Return the file of a name, and the member of it that is meant."""
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


def folder() -> Path:
    """Return where fetched files lie: `$EMBINIT_CACHE`, or embinit under the user's cache folder."""
    own = os.environ.get("EMBINIT_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "embinit"


def fetched_path(name: str) -> tuple[Path, str | None]:
    """Return the fetched file of a name and its member; an error tells how to fetch it."""
    entry, member = find(name)
    path = folder() / entry.file
    if not path.is_file():
        raise EmbinitError(f"{name} is not on this machine; run: embinit fetch {name}")
    if member is None and entry.members:
        raise EmbinitError(f"{name} has several tables; one of {', '.join(entry.members)}")
    return path, member
