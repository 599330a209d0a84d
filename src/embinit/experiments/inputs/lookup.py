"""Find a file by the path that a user wrote, in several folders in order."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from embinit.format import listed

#: A message lists at most this many files of a folder.
_LISTED = 6
#: Names with this similarity are suggested.
_CLOSE = 0.6


def candidates(name: str, folders: Sequence[Path]) -> list[Path]:
    """Return the places where a path may lie, in the order of the search; an absolute path has one place."""
    path = Path(name).expanduser()
    places = [path] if path.is_absolute() else [folder / path for folder in folders]
    return list({place.absolute(): place for place in places}.values())


def find(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the first place of a path that exists; None if none exists."""
    return next((place for place in candidates(name, folders) if place.exists()), None)


def not_found(name: str, folders: Sequence[Path]) -> str:
    """Return the end of a message: every place that was searched, and the nearest existing name."""
    places = candidates(name, folders)
    return f"searched {listed([str(place) for place in places])}{nearest(places)}"


def nearest(places: Sequence[Path]) -> str:
    """Return the end of a message: the closest name beside one of the places, or else the files of the first folder."""
    entries: list[tuple[str, Path]] = []
    for place in places:
        folder, name = _first_missing(place)
        entries += [(name, inner) for inner in sorted(folder.iterdir()) if not inner.name.startswith(".")]
    scored = [(_similarity(name, path.name), path) for name, path in entries]
    ratio, best = max(scored, key=lambda pair: pair[0], default=(0.0, Path()))
    if ratio >= _CLOSE:
        return f"; did you mean {best}?"
    first = _first_missing(places[0])[0]
    names = [path.name for _, path in entries if path.parent == first]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    folder_name = "this folder" if first == Path() else str(first)
    return f"; {folder_name} holds {', '.join(names[:_LISTED])}{more}" if names else ""


def _similarity(one: str, other: str) -> float:
    """Return the similarity of two names from 0 to 1; a common ending alone does not make names similar."""
    pairs = ((one, other), (one.partition(".")[0], other.partition(".")[0]))
    return min(difflib.SequenceMatcher(None, a.lower(), b.lower()).ratio() for a, b in pairs)


def _first_missing(place: Path) -> tuple[Path, str]:
    """Return the deepest folder of a path that exists, and the name below it that does not."""
    name = place.name
    for folder in place.parents:
        if folder.is_dir():
            return folder, name
        name = folder.name
    return Path(), name
