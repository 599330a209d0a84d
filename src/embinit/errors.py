"""Exceptions whose messages a person can act on, and the text that suggests what would be accepted."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

#: A message lists at most this many choices.
_LISTED = 20


class EmbinitError(ValueError):
    """A wrong input or setting. The message names the input and what would be accepted."""


class Unavailable(EmbinitError):
    """A file, a data set or a server that may be fine, but is not on this machine or cannot be reached from it."""


class MissingExtra(Unavailable, ImportError):
    """A library of an optional extra is not installed."""


def closest(name: str, accepted: Iterable[str]) -> str:
    """Return the end of a message: the closest accepted name, or the list of choices if no name is close.

    >>> closest("glvoe", ["glove", "word2vec"]), closest("elmo", ["glove", "word2vec"])
    ("; did you mean 'glove'?", '; choose one of glove, word2vec')
    """
    choices = sorted(set(accepted))
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if len(choices) > _LISTED:
        return f"; choose one of {', '.join(choices[:_LISTED])} and {len(choices) - _LISTED} more"
    return f"; choose one of {', '.join(choices)}" if choices else ""


def check_choices(value: Any) -> None:
    """Raise EmbinitError if a field of a dataclass holds a value that its `Literal` type does not list."""
    kind: Any = type(value)
    for name, choices in _choices_of(kind):
        given = getattr(value, name)
        if given not in choices:
            raise EmbinitError(f"unknown {name} {given!r}{closest(str(given), map(str, choices))}")


@cache
def _choices_of(kind: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the fields of a dataclass whose type is a `Literal`; the hints of a type take a millisecond to compile."""
    return [(name, get_args(hint)) for name, hint in get_type_hints(kind).items() if get_origin(hint) is Literal]


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Return the imported module, or raise MissingExtra with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(f"{purpose} needs {module.partition('.')[0]}: pip install 'embinit[{extra}]'") from None
