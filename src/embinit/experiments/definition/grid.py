"""Expand a block's settings and grid into one assignment for each run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from embinit.errors import closest
from embinit.experiments.definition.problems import Problems
from embinit.experiments.definition.run_settings import SideSettings, setting_names

#: `{ratio}` in a recipe stands for an axis of the grid.
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: The largest number of runs in a block. Reading a plan with more of them would take hours.
_LARGEST_GRID = 100_000


@dataclass(frozen=True)
class Assignment:
    """The settings of one run by their dotted names, and its values on the grid's axes as the file writes them."""

    values: dict[str, Any]
    axes: tuple[tuple[str, Any], ...]

    def on(self, side: str, name: str) -> Any:
        """Return a setting of a side, or otherwise the setting for both sides."""
        return self.values.get(f"{side}.{name}", self.values.get(name))


def flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables by dotted names; `"model.norm"` and `model = {norm = ...}` are the same.

    >>> flat({"model": {"norm": "pre"}, "seed": 1})
    {'model.norm': 'pre', 'seed': 1}
    """
    result = {}
    for key, value in content.items():
        result.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return result


def in_file_order(typed: Mapping[str, Any], content: Any) -> dict[str, Any]:
    """Return typed values by dotted names, in the order in which the file writes them."""
    values = flat(typed)
    return {key: values[key] for key in flat(content) if key in values} if isinstance(content, dict) else {}


def axes(
    typed: Mapping[str, Any], content: Any, recipes: Iterable[str], place: str, problems: Problems
) -> dict[str, list[Any]]:
    """Return the axes of a grid. A key that is no setting must be a `{place}` in a recipe of the block."""
    known, names = setting_names(), {name for text in recipes for name in places_in(text)}
    result = {}
    for key, values in in_file_order(typed, content).items():
        if key in known or (key in names and _is_list_of_values(values, f"{place}.{key}", problems)):
            result[key] = values
        elif key not in names:
            tables = {name.partition(".")[0] for name in known}
            problems.add(place, f"unknown key {key!r}{closest(key.partition('.')[0], [*tables, *names])}")
    return result


def _is_list_of_values(values: Any, place: str, problems: Problems) -> bool:
    """Return whether the values can fill a recipe's places; add a mistake if not."""
    if not isinstance(values, list) or not values:
        problems.add(place, f"{values!r}, but a list is expected")
        return False
    wrong = [value for value in values if isinstance(value, bool) or not isinstance(value, int | float | str)]
    for value in wrong:
        problems.add(place, f"{value!r}, but a number or a text is expected")
    if len(set(map(repr, values))) < len(values):
        problems.add(place, "a value occurs twice in the list")
    return not wrong


def assignments(
    defaults: dict[str, Any], own: dict[str, Any], grid: dict[str, list[Any]], place: str, problems: Problems
) -> Iterator[Assignment]:
    """Yield one assignment for each combination of the grid, the last axis fastest."""
    for key in grid:
        if key in own:
            problems.add(place, f"{key} is in the block and in its grid; remove one of them")
    runs = prod(len(values) for values in grid.values())
    if runs > _LARGEST_GRID:
        problems.add(place, f"the grid has {runs:,} runs, and at most {_LARGEST_GRID:,} are accepted; use fewer values")
        return
    for combination in product(*grid.values()):
        chosen = dict(zip(grid, combination, strict=True))
        yield Assignment({**defaults, **own, **chosen}, tuple(chosen.items()))


def without_effect(values: dict[str, Any], sides: tuple[str, ...]) -> list[str]:
    """Return settings for all sides that apply to none, because each side has its own setting."""
    names = SideSettings.model_fields
    return [name for name in names if name in values and all(f"{side}.{name}" in values for side in sides)]


def places_in(recipe: str) -> list[str]:
    """Return the names of the axes that fill a recipe's places.

    >>> places_in("xavier | scale ratio={ratio}")
    ['ratio']
    """
    return _PLACEHOLDER.findall(recipe)


def filled(recipe: str, values: dict[str, Any]) -> str:
    """Return a recipe with values in its places; a place without a value stays."""
    return _PLACEHOLDER.sub(lambda match: as_text(values.get(match[1], match[0])), recipe)


def as_text(value: Any) -> str:
    """Return a value as text in TOML's spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(as_text, value)) if isinstance(value, tuple | list) else str(value)
