"""What an experiment's file may say: every key with its type, told from the dataclasses that take the values."""

from __future__ import annotations

import math
import types
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from embinit.errors import closest
from embinit.models.architecture import Architecture
from embinit.training.options import Training

#: What the prepared task decides and a file cannot set.
_DECIDED = ("task", "vocabularies", "classes")
#: How files name the sides of a task, and how prepared tasks do.
SIDES = {"encoder": "source", "decoder": "target", "text": "text"}
_ON_A_SIDE = ("source", "recipe", "fill")


@dataclass(frozen=True)
class SourceSettings:
    """One of `[sources.NAME]`: vectors that are there, or vectors to be trained here."""

    name: str
    #: below the folder of vectors, beside the experiment's file, absolute, a hub id, or a fetched name (glove:840B)
    path: str | None = None
    #: settings of `embinit glove`, and `texts`
    glove: dict[str, Any] | None = None
    about: str = ""
    stands_in_for: str = ""
    #: what the official file is called, for the one who wants to put it in place
    official: str = ""
    #: said here, it is known before the vectors are read, and checked when they are
    dim: int | None = None
    #: whether words that it lacks are made from its pieces
    compose: bool = True


@dataclass(frozen=True)
class TaskSettings:
    """One of `[tasks.NAME]`: a data set and how it is prepared."""

    #: the data set; by default the table's own name
    name: str
    pair: str | None = None
    tokenizer: str = "spacy"
    lower: bool | None = None
    min_count: int | None = None
    rows: int | None = None
    longest: int | None = None
    size: int | None = None
    also: tuple[str, ...] = ()
    #: its folder below the folder of data, absolute, or `hub`; by default the data set's name
    path: str | None = None
    #: with `files`, the user's own, what they are; with a known text, `masked_language_model` if it is read so
    kind: Literal["translation", "classification", "language_model", "masked_language_model"] | None = None
    #: running text: `line` ends every line with <eos>, `blank` joins the lines of a document
    boundary: Literal["line", "blank"] | None = None
    #: a file that must be in the folder (`train.tsv`, also compressed; * stands for anything) ...
    needs: str | None = None
    #: ... and what is said where it is not
    official: str = ""
    about: str = ""


@dataclass(frozen=True)
class GloveSettings:
    """`glove = {...}` of a source: what `embinit glove` takes; `texts` are `captions:de` or `DATA SET:LANGUAGE`."""

    texts: tuple[str, ...]
    tokenizer: str = "whitespace"
    lower: bool = True
    min_count: int = 5
    window: int = 10
    dim: int = 100
    epochs: int = 15
    x_max: float = 100.0
    alpha: float = 0.75
    lr: float = 0.05
    seed: int = 0
    #: of the endless captions, so many sentences
    sentences: int = 100_000


@dataclass
class Problems:
    """Everything that is wrong with a file, so that all of it can be said at once."""

    file: str
    found: list[str] = field(default_factory=list)

    def add(self, where: str, what: str) -> None:
        """Note what is wrong, and where."""
        line = f"{self.file}, {where}: {what}" if where else f"{self.file}: {what}"
        if line not in self.found:
            self.found.append(line)


def model_fields() -> dict[str, Any]:
    """Return the types of `model.*`."""
    return {name: hint for name, hint in get_type_hints(Architecture).items() if name not in _DECIDED}


def training_fields() -> dict[str, Any]:
    """Return the types of `training.*`."""
    return get_type_hints(Training)


def setting_fields() -> dict[str, Any]:
    """Return the types of all settings of a run, by their dotted names."""
    plain = {"task": str, "seed": int, **dict.fromkeys(_ON_A_SIDE, str)}
    sides = {f"{side}.{name}": str for side in SIDES for name in _ON_A_SIDE}
    model = {f"model.{name}": hint for name, hint in model_fields().items()}
    training = {f"training.{name}": hint for name, hint in training_fields().items()}
    return {**plain, **sides, **model, **training, "model.preset": str}


def checked(value: Any, hint: Any) -> tuple[Any, str]:
    """Return the value in its own type, and what is wrong with it (empty: nothing)."""
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return checked(value, next(option for option in options if option is not type(None)))
    if origin is Literal:
        return value, "" if value in options else f"{value!r} is unknown{closest(str(value), map(str, options))}"
    if origin is tuple:
        return _tuple(value, options)
    if hint is dict or origin is dict:
        return value, "" if isinstance(value, dict) else f"{value!r}, but a table is expected: {{...}}"
    if hint is bool:
        return value, "" if isinstance(value, bool) else f"{value!r}, but true or false is expected"
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), "" if math.isfinite(value) else f"{value}, but a finite number is expected"
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value, ""
    if hint is str and isinstance(value, str):
        return value, ""
    if isinstance(value, list):
        return value, "a list; lists go into the block's grid"
    names = {int: "a whole number", float: "a number", str: "a text"}
    return value, f"{value!r}, but {names.get(hint, 'something else')} is expected"


def _tuple(value: Any, options: tuple[Any, ...]) -> tuple[Any, str]:
    endless = len(options) == 2 and options[1] is Ellipsis
    if not isinstance(value, list) or (not endless and len(value) != len(options)):
        return value, f"{value!r}, but a list{'' if endless else f' of {len(options)}'} is expected"
    inner = [checked(one, options[0] if endless else options[i]) for i, one in enumerate(value)]
    return tuple(one for one, _ in inner), next((wrong for _, wrong in inner if wrong), "")


def table(content: dict[str, Any], made: type[Any], where: str, problems: Problems, **given: Any) -> Any:
    """Return a dataclass from a table of the file; None where that cannot be, which is noted."""
    hints = get_type_hints(made)
    values, sound = dict(given), True
    for key, value in content.items():
        if key not in hints or (key in given and key != "name"):
            problems.add(where, f"unknown key {key!r}{closest(key, (name for name in hints if name not in given))}")
            sound = False
            continue
        values[key], wrong = checked(value, hints[key])
        if wrong:
            problems.add(f"{where}.{key}", wrong)
            sound = False
    try:
        return made(**values) if sound else None
    except TypeError as error:
        problems.add(where, str(error).partition("() ")[2] or str(error))
        return None
