"""`baseline` of an experiment file: recipes, each in the setting of the compared start or in a stated one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from embinit.errors import closest
from embinit.experiments.definition.draft import DraftBlock
from embinit.experiments.definition.file import ExperimentFile
from embinit.experiments.definition.grid import as_text, in_file_order
from embinit.experiments.definition.problems import BASELINE_FORMS, Checked, Problems
from embinit.experiments.definition.sections import Tables
from embinit.experiments.experiment import SAME, Baseline

_DEFAULT = "xavier"


def read_baselines(checked: Checked[ExperimentFile], tables: Tables, problems: Problems) -> tuple[Baseline, ...]:
    """Return the baselines of a file, at least one."""
    content = checked.content.get("baseline", "")
    listed = content if isinstance(content, list) else [] if content == "" else [content]
    baselines = []
    for table, written in zip(checked.table.baseline, listed, strict=True):
        settings = in_file_order(table.model_dump(exclude_unset=True), _table(written))
        baseline = _baseline(settings, written, tables, problems)
        baselines += [baseline] if baseline is not None else []
    if baselines and baselines[0].recipe == SAME:
        problems.add("baseline", f"begins with {SAME!r}; put a recipe first, because figures are drawn against it")
    for baseline in dict.fromkeys(baseline for baseline in baselines if baselines.count(baseline) > 1):
        problems.add("baseline", f"{baseline.recipe!r} occurs twice in the list")
    return tuple(baselines) or (Baseline(_DEFAULT),)


def _table(written: Any) -> Any:
    return {"recipe": written} if isinstance(written, str) else written


def _baseline(settings: dict[str, Any], written: Any, tables: Tables, problems: Problems) -> Baseline | None:
    if "recipe" not in settings:
        problems.add("baseline", f"{written!r}, but {BASELINE_FORMS} is expected")
        return None
    name = " ".join(settings.pop("recipe").split())
    if name != SAME and name not in tables.recipes and name not in tables.wrong:
        tables.recipe(name, "", "baseline")
    for key in [key for key in settings if key == "seed" or key.rpartition(".")[2] == "recipe"]:
        problems.add("baseline", f"remove {key}; starts are always compared seed by seed")
        del settings[key]
    if name == SAME and not settings:
        problems.add("baseline", f"{SAME!r} needs a setting, because a start does not differ from itself")
    return Baseline(name, tuple((key, as_text(value)) for key, value in settings.items()))


def check_settings_occur(baselines: Sequence[Baseline], blocks: Sequence[DraftBlock], problems: Problems) -> None:
    """Add a mistake for each setting of a baseline that no block has, because nothing would be compared with it."""
    values: dict[str, dict[str, None]] = {}
    for axis, value in (pair for block in blocks for run in block.runs for pair in run.axes):
        values.setdefault(axis, {})[value] = None
    for axis, value in dict.fromkeys(pair for baseline in baselines for pair in baseline.at):
        if axis not in values:
            problems.add("baseline", f"no block's grid has the axis {axis}{closest(axis, values)}")
        elif value not in values[axis]:
            problems.add("baseline", f"no block's grid has {axis} = {value!r}{closest(value, values[axis])}")
