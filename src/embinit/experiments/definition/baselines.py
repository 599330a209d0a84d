"""`baseline` of an experiment's file: recipes, each in every row's own setting or in one that is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embinit.errors import closest
from embinit.experiments.definition.draft import DraftBlock
from embinit.experiments.definition.grid import flat, settings, shown
from embinit.experiments.definition.sections import Tables
from embinit.experiments.definition.settings import Problems
from embinit.experiments.experiment import SAME, Baseline

_FORMS = '"xavier", a list of recipes, or {recipe = "xavier", model.positions = "sinusoidal"}'
_DEFAULT = "xavier"


def read_baselines(content: Any, tables: Tables, problems: Problems) -> tuple[Baseline, ...]:
    """Return what rows are compared with, at least one; what is wrong with it is noted."""
    listed = content if isinstance(content, list) else [_DEFAULT if content == "" else content]
    if not listed:
        problems.add("baseline", f"an empty list, but {_FORMS} is expected")
    found = [_baseline(one, tables, problems) for one in listed]
    sound = [one for one in found if one is not None]
    if sound and sound[0].recipe == SAME:
        problems.add("baseline", f"begins with {SAME!r}; a recipe comes first, which reports draw the others against")
    for one in dict.fromkeys(one for one in sound if sound.count(one) > 1):
        problems.add("baseline", f"{one.recipe!r} stands in the list twice")
    return tuple(sound) or (Baseline(_DEFAULT),)


def _baseline(content: Any, tables: Tables, problems: Problems) -> Baseline | None:
    given = flat(content) if isinstance(content, dict) else {"recipe": content}
    name = given.pop("recipe", None)
    if not isinstance(name, str):
        problems.add("baseline", f"{content!r}, but {_FORMS} is expected")
        return None
    name = " ".join(name.split())
    if name != SAME and name not in tables.recipes:
        tables.recipe(name, "target", "baseline")
    for key in [key for key in given if key == "seed" or key.rpartition(".")[2] == "recipe"]:
        problems.add("baseline", f"{key} cannot be said here; rows are compared seed by seed, recipe by recipe")
        del given[key]
    pinned = settings(given, "baseline", problems)
    if name == SAME and not given:
        problems.add("baseline", f"{SAME!r} needs a setting: rows differ from themselves only in another one")
    return Baseline(name, tuple((key, shown(value)) for key, value in pinned.items()))


def note_unmet(baselines: Sequence[Baseline], blocks: Sequence[DraftBlock], problems: Problems) -> None:
    """Note settings of a baseline that no block has runs of: nothing would be compared with it."""
    values: dict[str, dict[str, None]] = {}
    for axis, value in (pair for block in blocks for run in block.runs for pair in run.axes):
        values.setdefault(axis, {})[value] = None
    for axis, value in dict.fromkeys(pair for one in baselines for pair in one.at):
        if axis not in values:
            problems.add("baseline", f"{axis} is no axis of any block's grid{closest(axis, values)}")
        elif value not in values[axis]:
            problems.add("baseline", f"no block's grid has {axis} = {value!r}{closest(value, values[axis])}")
