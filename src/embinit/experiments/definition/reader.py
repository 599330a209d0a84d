"""One TOML file for each question: `[defaults]`, `[[block]]` with a `grid`, `[sources]`, `[tasks]`, `[recipes]`.

All mistakes are reported at once, each with the closest accepted name, before anything is prepared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embinit.experiments.definition.baselines import check_settings_occur, read_baselines
from embinit.experiments.definition.blocks import read_blocks
from embinit.experiments.definition.draft import Draft
from embinit.experiments.definition.file import SHARED, ExperimentFile
from embinit.experiments.definition.problems import BASELINE_FORMS, Problems, validated
from embinit.experiments.definition.sections import tables_of
from embinit.files import read_toml

#: The keys of a file that hold settings of runs.
_WITH_SETTINGS = ("baseline", "defaults", "block")


def read_draft(path: Path) -> Draft:
    """Return the experiment that a file describes; all of its mistakes are one error."""
    problems = Problems(path.name)
    content = read_toml(path)
    content.update((key, _nested(content[key])) for key in _WITH_SETTINGS if key in content)
    checked = validated(ExperimentFile, _with_names(_with_included(content, path, problems), problems), problems)
    file = checked.table
    tables = tables_of(checked, path.parent, problems)
    if content.get("baseline") == []:
        problems.add("baseline", f"an empty list, but {BASELINE_FORMS} is expected")
    baselines = read_baselines(checked, tables, problems)
    blocks = read_blocks(checked, tables, problems)
    if not problems.messages:
        check_settings_occur(baselines, blocks, problems)
    problems.raise_if_any()
    plain = len(baselines) == 1 and not baselines[0].at
    return Draft(
        path, file.title or path.stem, file.question, baselines[0].recipe, file.notes, file.kind, file.cost,
        tables.sources, tables.tasks, blocks, () if plain else baselines,
        path.parent / file.include if file.include else None,
    )  # fmt: skip


def _nested(content: Any) -> Any:
    """Return a file's content with tables in place of dotted keys in quotes: `"model.norm" = "pre"`.

    >>> _nested({"model.norm": "pre", "model": {"heads": 2}})
    {'model': {'norm': 'pre', 'heads': 2}}
    """
    if isinstance(content, list):
        return [_nested(item) for item in content]
    if not isinstance(content, dict):
        return content
    result: dict[str, Any] = {}
    for key, value in content.items():
        table, dot, name = key.partition(".")
        inner = _nested({name: value} if dot else value)
        if isinstance(inner, dict) and isinstance(result.get(table), dict):
            result[table].update(inner)
        else:
            result[table] = inner
    return result


def _with_names(content: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """Return a file's content in which each source and each task has its table's name; a task may state another one."""
    named = dict(content)
    sources = content.get("sources")
    for name, table in sources.items() if isinstance(sources, dict) else ():
        if isinstance(table, dict) and "name" in table:
            problems.add(f"sources.{name}", f"remove the key 'name'; the name of the table counts: [sources.{name}]")
    for kind in ("sources", "tasks"):
        tables = content.get(kind)
        if isinstance(tables, dict):
            named[kind] = {
                name: {"name": name, **table} if isinstance(table, dict) else table for name, table in tables.items()
            }
    return named


def _with_included(content: dict[str, Any], path: Path, problems: Problems) -> dict[str, Any]:
    """Return the file with the sources, tasks and recipes of the file that it includes; its own come first."""
    name = content.get("include")
    if not isinstance(name, str) or not name:
        return content
    other = read_toml(path.parent / name)
    for key in other:
        if key not in SHARED:
            problems.add(f"include {name}", f"{key!r} cannot be shared; only {', '.join(SHARED)} can")
    merged = dict(content)
    for key in SHARED:
        theirs, own = other.get(key, {}), content.get(key, {})
        if isinstance(theirs, dict) and isinstance(own, dict):
            merged[key] = {**theirs, **own}
    return merged
