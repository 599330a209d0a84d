"""Read JSON files and checkpoints that embinit wrote, and check that every value has the expected type.

A file that was damaged, cut short or written by a newer version is one sentence that names the file and the place.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

from embinit.errors import EmbinitError, closest

#: No file that embinit writes for itself comes near this size.
LARGEST = 1 << 28
#: Levels of lists and objects inside each other; run folders and plans have six at most.
DEEPEST = 64
#: Whole numbers that fit 64 bits with a sign.
_BITS = 63
_NAMES = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text", dict: "an object", list: "a list"
}  # fmt: skip
#: Returns what is wrong with a value as (place, message); None if nothing is.
_Check = Callable[[Any], "tuple[str, str] | None"]


class Damaged(EmbinitError):
    """A file that embinit wrote is damaged, incomplete, or of another version."""


def read_json(path: Path, kind: Any, remedy: str = "", largest: int = LARGEST) -> Any:
    """Return the JSON value in a file.

    Parameters
    ----------
    path
        The file.
    kind
        The type of its content: a TypedDict, a dataclass (an object with its fields), or a type made from `list`, `dict`,
        `Literal`, unions and plain types.
    remedy
        What the user can do about a damaged file; ends the message.
    largest
        The largest accepted size in bytes.

    Raises
    ------
    Damaged
        If the file is no JSON, is nested too deeply, is too large, or holds a value of another type.
    EmbinitError
        If the file cannot be read.
    """
    end = f"; {remedy}" if remedy else ""
    try:
        with path.open("rb") as file:
            raw = file.read(largest + 1)
    except FileNotFoundError:
        raise Damaged(f"{path} is missing{end}") from None
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    if len(raw) > largest:
        raise Damaged(f"{path} is damaged: it is larger than {largest:,} bytes{end}")
    try:
        return typed(parsed(raw), kind)
    except Damaged as error:
        raise Damaged(f"{path} is damaged: {error}{end}") from None


def parsed(raw: bytes) -> Any:
    """Return the value of a JSON text; NaN and infinities are no JSON.

    >>> parsed(b'{"epochs": 3}')
    {'epochs': 3}
    """
    try:
        text = raw.decode(json.detect_encoding(raw))  # json.loads would accept half of a character in bytes
        value = json.loads(text, parse_constant=_refuse_constant)
        if "\\ud" in text.lower():  # half of a character cannot be written back
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError:
        raise Damaged(f"it is nested more than {DEEPEST} levels deep") from None
    except ValueError as error:  # not UTF-8, not JSON, or a number with thousands of digits
        raise Damaged(f"it is not JSON ({error})") from None


def typed(value: Any, kind: Any) -> Any:
    """Return the value, or raise Damaged with the place where it is not of this kind.

    >>> typed({"seed": "x"}, dict[str, int])
    Traceback (most recent call last):
    embinit.records.Damaged: seed is 'x', but a whole number is expected
    """
    try:
        problem = _check(kind)(value)
    except RecursionError:
        raise Damaged(f"it is nested more than {DEEPEST} levels deep") from None
    if problem is not None:
        place, message = problem
        raise Damaged(f"{place.lstrip('.') or 'it'} {message}")
    return value


@contextmanager
def read_arrays(path: Path, kind: Any, remedy: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the head and the arrays of a checkpoint that numpy's `savez` wrote; the archive has a checksum of each array.

    Parameters
    ----------
    path
        The checkpoint.
    kind
        The type of its head, a JSON text in the array `head`.
    remedy
        What the user can do about another file in its place; ends the message.

    Raises
    ------
    Damaged
        If the archive, its head or an array that is read from it is damaged.
    EmbinitError
        If the file is no archive, or if it cannot be read.
    """
    import numpy as np

    try:
        with path.open("rb") as file:
            if file.read(2) not in (b"", b"PK"):
                raise EmbinitError(f"{path} is no checkpoint of embinit; move it, or {remedy}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as stored:
                yield typed(parsed(str(stored["head"]).encode()), kind), stored
    except OSError as error:
        raise EmbinitError(f"cannot read the checkpoint {path}: {error.strerror or error}") from None
    except Damaged as error:
        raise Damaged(f"{path} is damaged: {error}") from None
    except EmbinitError:
        raise
    # zipfile raises RuntimeError for an encrypted member, and its subclass NotImplementedError for an unknown compression.
    except (ValueError, KeyError, TypeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Damaged(f"{path} is damaged: {error}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _wrong(value: Any, expected: str) -> tuple[str, str]:
    return "", f"is {_shown(value)}, but {expected} is expected"


@cache
def _check(kind: Any) -> _Check:
    """Return the function that checks a value against a type."""
    if kind is Any:
        return _check_depth
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is Literal:
        return lambda value: (
            None if value in arguments and not isinstance(value, bool) else ("", _not_listed(value, arguments))
        )
    if origin in (list, tuple):
        return _list(arguments, fixed=origin is tuple and arguments[-1:] != (Ellipsis,))
    if origin in (dict, Mapping):
        return _mapping(_check(arguments[1]))
    if is_typeddict(kind):
        return _object(get_type_hints(kind), _required(kind), extra=True)
    if dataclasses.is_dataclass(kind):
        fields = {field.name: field for field in dataclasses.fields(kind)}
        required = frozenset(
            name
            for name, field in fields.items()
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        hints = get_type_hints(kind)
        return _object({name: hints[name] for name in fields}, required, extra=False)
    return _plain(type(None) if kind is None else kind)


def _required(kind: Any) -> frozenset[str]:
    """Return the keys that a TypedDict needs; `__required_keys__` is wrong if annotations are texts."""
    origins = {name: get_origin(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    usual = Required if kind.__total__ else NotRequired
    return frozenset(
        name for name, origin in origins.items() if (origin if origin in (Required, NotRequired) else usual) is Required
    )


def _plain(kind: type) -> _Check:
    accepted = (int, float) if kind is float else (kind,)
    if kind in (dict, list):
        return lambda value: _check_depth(value) if type(value) is kind else _wrong(value, _NAMES[kind])
    expected = _NAMES.get(kind, "null")

    def check(value: Any) -> tuple[str, str] | None:
        if type(value) not in accepted or (type(value) is int and value.bit_length() > _BITS):
            return _wrong(value, expected)
        if type(value) is float and not math.isfinite(value):  # 1e999
            return _wrong(value, "a finite number")
        return None

    return check


def _not_listed(value: Any, choices: tuple[Any, ...]) -> str:
    return f"is {_shown(value)}{closest(str(value), map(str, choices))}"


def _check_depth(value: Any) -> tuple[str, str] | None:
    """Check that lists and objects are not nested too deeply; anything else is accepted."""
    level, deep = [value], 0
    while level:
        deep += 1
        if deep > DEEPEST:
            return "", f"is nested more than {DEEPEST} levels deep"
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    return None


def _union(kinds: tuple[Any, ...]) -> _Check:
    checks = [_check(kind) for kind in kinds]

    def check(value: Any) -> tuple[str, str] | None:
        problems = [check(value) for check in checks]
        if any(problem is None for problem in problems):
            return None
        # The most specific problem is the one that was met deepest inside the value.
        return max((problem for problem in problems if problem is not None), key=lambda problem: len(problem[0]))

    return check


def _list(arguments: tuple[Any, ...], fixed: bool) -> _Check:
    if fixed:
        checks = [_check(argument) for argument in arguments]
    else:
        every = _check(arguments[0])

    def check(value: Any) -> tuple[str, str] | None:
        if type(value) not in (list, tuple):
            return _wrong(value, "a list")
        if fixed and len(value) != len(checks):
            return _wrong(value, f"a list of {len(checks)}")
        for number, inner in enumerate(value):
            problem = (checks[number] if fixed else every)(inner)
            if problem is not None:
                return f".{number}{problem[0]}", problem[1]
        return None

    return check


def _mapping(inside: _Check) -> _Check:
    def check(value: Any) -> tuple[str, str] | None:
        if type(value) is not dict:
            return _wrong(value, "an object")
        for name, inner in value.items():
            problem = inside(inner)
            if problem is not None:
                return f".{name}{problem[0]}", problem[1]
        return None

    return check


def _object(hints: dict[str, Any], required: frozenset[str], extra: bool) -> _Check:
    checks = {name: _check(hint) for name, hint in hints.items()}

    def check(value: Any) -> tuple[str, str] | None:
        if type(value) is not dict:
            return _wrong(value, "an object")
        for name in sorted(required - value.keys()):
            return "", f"has no {name!r}"
        for name, inner in value.items():
            if name not in checks:
                if extra:
                    continue
                return "", f"has the unknown setting {name!r}{closest(name, checks)}"
            problem = checks[name](inner)
            if problem is not None:
                return f".{name}{problem[0]}", problem[1]
        return None

    return check
