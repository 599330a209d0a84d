"""The mistakes of an experiment file, and the message for each mistake that pydantic finds."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.run_settings import setting_names

#: The location of a value in a file: ("block", 0, "model", "heads").
Location = tuple[str | int, ...]
Table = TypeVar("Table", bound=BaseModel)

BASELINE_FORMS = '"xavier", a list of recipes, or {recipe = "xavier", model.positions = "sinusoidal"}'
#: pydantic's type of a mistake -> a description of the accepted values.
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_short": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "dataclass_type": "a table",
}
#: Names of settings in other libraries -> their names here.
OTHER_NAMES = {
    "lr": "rate", "learning_rate": "rate", "batch_size": "batch", "num_epochs": "epochs", "label_smoothing": "smoothing",
    "warmup_steps": "warmup", "max_grad_norm": "clip", "hidden_size": "dim", "d_model": "dim", "n_embd": "dim",
    "num_heads": "heads", "n_head": "heads", "num_attention_heads": "heads", "num_layers": "layers", "n_layer": "layers",
    "num_hidden_layers": "layers", "d_ff": "feedforward", "intermediate_size": "feedforward", "max_length": "length",
}  # fmt: skip
#: pydantic's type of a default that depends on a wrong value, which is no further mistake.
_FOLLOWS = "default_factory_not_called"
#: An example of each table in TOML, by its last keys.
_FORMS: dict[tuple[str, ...], str] = {
    ("sources",): "[sources.NAME]",
    ("tasks",): "[tasks.NAME]",
    ("recipes",): "[recipes.NAME]",
    ("defaults",): "[defaults]",
    ("block",): "[[block]]",
    ("grid",): "grid.seed = [1, 2, 3]",
    ("candidate",): 'candidate = {recipe = "..."}',
}


@dataclass
class Problems:
    """The mistakes of one file. All of them become one error."""

    file: str
    messages: list[str] = field(default_factory=list)

    def add(self, place: str, message: str) -> None:
        """Add a mistake, unless the file has the same one already."""
        line = f"{self.file}, {place}: {message}" if place else f"{self.file}: {message}"
        if line not in self.messages:
            self.messages.append(line)

    def raise_if_any(self) -> None:
        """Raise EmbinitError if the file has a mistake."""
        if self.messages:
            raise EmbinitError(listed(self.messages))


def listed(messages: Sequence[str]) -> str:
    """Return messages as one text: the only message, or a list."""
    if len(messages) == 1:
        return messages[0]
    return "\n  ".join([f"{len(messages)} mistakes:", *messages])


@dataclass(frozen=True)
class Checked(Generic[Table]):
    """A file's content as a declared table, without the values that are wrong."""

    table: Table
    #: the same content as the file writes it, in its order
    content: dict[str, Any]
    #: the locations of the values that are left out
    wrong: list[Location]


def validated(declared: type[Table], content: Mapping[str, Any], problems: Problems) -> Checked[Table]:
    """Return a file's content as a declared table; each mistake becomes a message.

    Wrong values are left out, so that the rest can be checked further.
    """
    remaining = deepcopy(dict(content))
    wrong: list[Location] = []
    while True:
        try:
            return Checked(declared.model_validate(remaining), remaining, wrong)
        except ValidationError as error:
            mistakes = [mistake for mistake in error.errors(include_url=False) if mistake["type"] != _FOLLOWS]
        if not wrong:  # mistakes of later rounds result from the removal of values
            for mistake in mistakes:
                problems.add(*_place_and_message(mistake, declared, content))
        wrong += _removed(remaining, [mistake["loc"] for mistake in mistakes])


def block_place(number: int, block: Any) -> str:
    """Return the place of a block in messages: its number, counted from 1, and its name."""
    name = block.get("name") if isinstance(block, dict) else None
    return f"block {number}" + (f" ({name})" if isinstance(name, str) and name else "")


def _place_and_message(mistake: Any, declared: Any, content: Mapping[str, Any]) -> tuple[str, str]:
    kind, location, value = mistake["type"], mistake["loc"], mistake["input"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        *table, key = location
        return _place(table, content), f"unknown key {key!r}{_remedy(str(key), table, declared)}"
    if kind == "missing" and isinstance(location[-1], str):
        return _place(location[:-1], content), f"needs {location[-1]}"
    if kind == "missing":  # a list is too short
        kind, location = "too_long", location[:-1]
    place = _place(location, content)
    if kind == "value_error":
        return place, str(mistake["ctx"]["error"])
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", mistake["ctx"]["expected"])
        return place, f"{value!r} is unknown{closest(str(value), choices)}"
    if kind == "greater_than_equal":
        return place, f"{value}; at least {mistake['ctx']['ge']} is needed"
    if isinstance(value, list) and _is_setting(location) and kind != "too_long":
        return place, "a list; lists go into the block's grid"
    if location[0] == "baseline" and kind in ("model_type", "list_type"):
        return place, f"{value!r}, but {BASELINE_FORMS} is expected"
    if kind == "too_long":
        return place, f"{value!r}, but a list of {len(get_args(_declared_at(declared, location)))} is expected"
    if kind == "too_short" and value == []:
        return place, "an empty list; give at least one value"
    if location == ("block",) and isinstance(value, dict):
        return place, "[block] is one table; write [[block]], because a file may have several blocks"
    expected = "a table" if kind == "too_short" and isinstance(value, dict) else _EXPECTED.get(kind, "another value")
    form = _form(location) if "table" in expected or location == ("block",) else ""
    return place, f"{_written(value)}, but {expected} is expected{form}"


def _remedy(key: str, table: Sequence[str | int], declared: Any) -> str:
    """Return the end of a message about an unknown key: the name that is meant here, its place, or the closest names."""
    names = _keys(_declared_at(declared, table))
    if OTHER_NAMES.get(key) in names:
        return f"; did you mean {OTHER_NAMES[key]!r}?"
    if table and (key,) in _FORMS:
        return f"; write {_FORMS[key,]}"
    if table and key in _keys(declared):
        return "; it belongs at the top of the file, before the first table"
    return closest(key, names)


def _written(value: Any) -> str:
    """Return a value as messages show it; TOML writes booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _is_setting(location: Location) -> bool:
    """Return whether a location is in a block or in `[defaults]`, outside of a grid."""
    table, *names = [part for part in location if isinstance(part, str)]
    return table in ("block", "defaults") and ".".join(names) in setting_names()


def _form(location: Location) -> str:
    """Return the end of a message: an example of the table."""
    keys = tuple(part for part in location if isinstance(part, str))
    if len(keys) == 2 and keys[:1] in _FORMS and keys[0] != "block":
        return f": [{'.'.join(keys)}]"
    return f": {_FORMS.get(keys[-1:], f'{keys[-1]}.NAME = VALUE')}"


def _place(location: Sequence[str | int], content: Mapping[str, Any]) -> str:
    """Return a location as messages show it: `block 1 (name), grid.model`."""
    names = [part for part in location if isinstance(part, str) and part != "[key]"]
    if len(location) < 2 or location[0] != "block":
        return ".".join(names)
    number = int(location[1])
    start = block_place(number + 1, content["block"][number])
    separator = ", " if names[1:2] == ["grid"] else "."
    return start + (separator + ".".join(names[1:]) if names[1:] else "")


def _removed(content: Any, locations: Iterable[Location]) -> list[Location]:
    """Remove the values at some locations, or the innermost existing value around each; return the removed locations."""
    present = {_innermost(content, location) for location in locations}
    outermost = [
        location for location in present if not any(location[:end] in present for end in range(1, len(location)))
    ]
    for location in sorted(outermost, key=_later_items_first):
        table = content
        for part in location[:-1]:
            table = table[part]
        del table[location[-1]]
    return outermost


def _innermost(content: Any, location: Location) -> Location:
    """Return the longest beginning of a location that the content has."""
    for depth, part in enumerate(location):
        in_table = isinstance(content, dict) and part in content
        if not in_table and not (isinstance(content, list) and isinstance(part, int) and part < len(content)):
            return location[:depth]
        content = content[part]
    return location


def _later_items_first(location: Location) -> list[int]:
    """Return a key that sorts the last items of lists first, so that the removal of one does not move another."""
    return [-part for part in location if isinstance(part, int)]


def _declared_at(declared: Any, location: Sequence[str | int]) -> Any:
    """Return the type that is declared for a place of a file."""
    for part in location:
        hints = _hints(declared)
        if hints is not None:
            declared = hints.get(str(part), Any)
        else:
            arguments = [option for option in get_args(declared) if option is not Ellipsis]
            declared = arguments[-1] if arguments else Any
        declared = _plain(declared)
    return declared


def _plain(hint: Any) -> Any:
    """Return a type without `Annotated` and `| None`."""
    while get_origin(hint) in (Annotated, Union, types.UnionType):
        hint = next(option for option in get_args(hint) if option is not type(None))
    return hint


def _hints(declared: Any) -> dict[str, Any] | None:
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return {name: info.annotation for name, info in declared.model_fields.items()}
    return get_type_hints(declared) if is_dataclass(declared) else None


def _keys(declared: Any) -> list[str]:
    """Return the keys of a declared table."""
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return list(declared.model_fields)
    return [item.name for item in fields(declared)] if is_dataclass(declared) else []
