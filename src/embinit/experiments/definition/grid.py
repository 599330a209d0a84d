"""A block's settings and grid made into one assignment a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from embinit.errors import closest
from embinit.experiments.definition.settings import SIDES, Problems, checked, setting_fields

#: `{ratio}` in a recipe stands for an axis of the grid.
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SIDED = ("source", "recipe", "fill")
#: Runs of one block. Plans with more of them would take hours to be read.
_LARGEST_GRID = 100_000


@dataclass(frozen=True)
class Assignment:
    """The settings of one run by their dotted names, and its values on the grid's axes as the file writes them."""

    values: dict[str, Any]
    axes: tuple[tuple[str, Any], ...]

    def on(self, side: str, name: str) -> Any:
        """Return a setting of a side: its own, else the one for both."""
        return self.values.get(f"{side}.{name}", self.values.get(name))


def flat(content: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested tables by dotted names; `"model.norm"` and `model = {norm = ...}` are the same.

    >>> flat({"model": {"norm": "pre"}, "seed": 1})
    {'model.norm': 'pre', 'seed': 1}
    """
    result = {}
    for key, value in content.items():
        result.update(flat(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value})
    return result


def settings(content: dict[str, Any], where: str, problems: Problems) -> dict[str, Any]:
    """Return the settings of a table, each in its own type; what is not understood is noted."""
    known, result = setting_fields(), {}
    for key, value in flat(content).items():
        if key not in known:
            problems.add(*_unknown(key, where, known))
            continue
        result[key], wrong = checked(value, known[key])
        if wrong:
            problems.add(f"{where}.{key}", wrong)
            del result[key]
    return result


def axes(content: Any, where: str, recipes: list[str], problems: Problems) -> dict[str, list[Any]]:
    """Return the grid's axes; beside settings there are those that a recipe of the block has a `{place}` for."""
    if not isinstance(content, dict):
        problems.add(where, f"{content!r}, but a table of lists is expected: grid.seed = [1, 2, 3]")
        return {}
    known, result = setting_fields(), {}
    places = {name for text in recipes for name in _PLACEHOLDER.findall(text)}
    for key, values in flat(content).items():
        if key not in known and key not in places:
            problems.add(*_unknown(key, where, known, places))
            continue
        if not isinstance(values, list) or not values:
            problems.add(f"{where}.{key}", f"{values!r}, but a list is expected")
            continue
        hint = known.get(key)
        inner = [checked(value, hint) if hint is not None else (value, _scalar(value)) for value in values]
        for wrong in dict.fromkeys(wrong for _, wrong in inner if wrong):
            problems.add(f"{where}.{key}", wrong)
        typed = [value for value, wrong in inner if not wrong]
        if len({repr(value) for value in typed}) < len(typed):
            problems.add(f"{where}.{key}", "a value stands in the list twice")
        result[key] = typed
    return result


def assignments(
    defaults: dict[str, Any], own: dict[str, Any], grid: dict[str, list[Any]], where: str, problems: Problems
) -> Iterator[Assignment]:
    """Yield one assignment for each combination of the grid, the last axis fastest."""
    for key in grid:
        if key in own:
            problems.add(where, f"{key} stands in the block and in its grid")
    runs = prod(len(values) for values in grid.values())
    if runs > _LARGEST_GRID:
        problems.add(where, f"the grid has {runs:,} runs, and at most {_LARGEST_GRID:,} are accepted; use fewer values")
        return
    for chosen in product(*grid.values()):
        picked = dict(zip(grid, chosen, strict=True))
        yield Assignment({**defaults, **own, **picked}, tuple((key, value) for key, value in picked.items()))


def without_effect(values: dict[str, Any], sides: tuple[str, ...]) -> list[str]:
    """Return plain settings that no side takes, for each has its own."""
    return [name for name in _SIDED if name in values and all(f"{side}.{name}" in values for side in sides)]


def filled(text: str, values: dict[str, Any]) -> tuple[str, list[str]]:
    """Return a recipe's text with its places filled in, and those that no axis of the grid has a value for."""
    lacking = [name for name in _PLACEHOLDER.findall(text) if name not in values]
    return _PLACEHOLDER.sub(lambda found: shown(values.get(found[1], found[0])), text), lacking


def shown(value: Any) -> str:
    """Return a value as a person writes it in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(shown, value)) if isinstance(value, tuple | list) else str(value)


def _scalar(value: Any) -> str:
    return "" if isinstance(value, int | float | str) and not isinstance(value, bool) else f"{value!r} is no value"


def _unknown(key: str, where: str, known: dict[str, Any], others: set[str] | None = None) -> tuple[str, str]:
    """Return where an unknown key stands and what to say, close names being those of its own table."""
    table, dot, name = key.rpartition(".")
    tables = {*SIDES, "model", "training"}
    if dot and table in tables:
        inside = [full.partition(".")[2] for full in known if full.startswith(f"{table}.")]
        return f"{where}.{table}", f"unknown key {name!r}{closest(name, inside)}"
    if key in tables:
        return where, f"{key} is a table of settings, {key}.NAME = VALUE each"
    plain = [full for full in known if "." not in full]
    return where, f"unknown key {key!r}{closest(key.partition('.')[0], [*plain, *tables, *(others or ())])}"
