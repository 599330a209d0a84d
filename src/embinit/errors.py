"""What can go wrong, said in one sentence that a person can act on."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

#: How many choices a sentence names at the most.
_LISTED = 20


class EmbinitError(ValueError):
    """A wrong input or setting; its text is one sentence that names the input and what would be accepted."""


class NotHere(EmbinitError):
    """Something that may well be sound is not on this machine, or cannot be reached from it."""


class MissingExtra(NotHere, ImportError):
    """A library of an optional extra is not installed."""


def closest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or the choices where nothing is close."""
    choices = sorted(set(known))
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if len(choices) > _LISTED:
        return f"; one of {', '.join(choices[:_LISTED])} and {len(choices) - _LISTED} more"
    return f"; one of {', '.join(choices)}" if choices else ""


def check_choices(value: Any) -> None:
    """Raise where a field of a dataclass holds something that its `Literal` type does not name."""
    for name, hint in get_type_hints(type(value)).items():
        if get_origin(hint) is Literal and getattr(value, name) not in get_args(hint):
            given = getattr(value, name)
            raise EmbinitError(f"unknown {name} {given!r}{closest(str(given), map(str, get_args(hint)))}")


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Return the imported module, or raise MissingExtra with the line that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(f"{purpose} needs {module.partition('.')[0]}: pip install 'embinit[{extra}]'") from None
