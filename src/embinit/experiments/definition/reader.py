"""One TOML file a question: `[defaults]`, `[[block]]` with a `grid`, `[sources]`, `[tasks]`, `[recipes]`.

All mistakes are reported at once, with the closest name, before anything starts (docs/how-to/experiments.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.baselines import note_unmet, read_baselines
from embinit.experiments.definition.blocks import read_blocks
from embinit.experiments.definition.draft import Draft
from embinit.experiments.definition.sections import SHARED, read_tables
from embinit.experiments.definition.settings import Problems, checked
from embinit.files import read_toml

KINDS = ("training", "distribution", "analogy", "verdict")
_TEXTS = ("title", "question", "cost", "kind")
_TOP = (*_TEXTS, "baseline", "notes", "include", "defaults", "block", *SHARED)


def read_draft(path: Path) -> Draft:
    """Return the experiment that a file describes; everything that is wrong with it is one error."""
    problems = Problems(path.name)
    content = read_toml(path)
    for key in content:
        if key not in _TOP:
            problems.add("", f"unknown key {key!r}{closest(key, _TOP)}")
    content = _with_included(content, path, problems)
    texts = {key: _text(content, key, problems) for key in _TEXTS}
    kind = texts["kind"] or KINDS[0]
    if kind not in KINDS:
        problems.add("kind", f"{kind!r} is unknown{closest(kind, KINDS)}")
    notes, wrong = checked(content.get("notes", []), tuple[str, ...])
    if wrong:
        problems.add("notes", wrong)
    tables = read_tables(content, problems)
    baselines = read_baselines(content.get("baseline", ""), tables, problems)
    blocks = read_blocks(content, kind, tables, problems)
    if not problems.found:
        note_unmet(baselines, blocks, problems)
    if problems.found:
        raise EmbinitError(said(problems.found))
    plain = len(baselines) == 1 and not baselines[0].at
    return Draft(
        path, texts["title"] or path.stem, texts["question"], baselines[0].recipe, notes, kind, texts["cost"],
        tables.sources, tables.tasks, blocks, () if plain else baselines,
    )  # fmt: skip


def said(found: list[str]) -> str:
    """Return what is wrong as one text: a sentence, or a list."""
    return found[0] if len(found) == 1 else "\n  ".join([f"{len(found)} things are wrong:", *found])


def _text(content: dict[str, Any], key: str, problems: Problems) -> str:
    value, wrong = checked(content.get(key, ""), str)
    if wrong:
        problems.add(key, wrong)
    return "" if wrong else " ".join(str(value).split())


def _with_included(content: dict[str, Any], path: Path, problems: Problems) -> dict[str, Any]:
    """Return the file with the sources, tasks and recipes of the file that it includes; its own come first."""
    name = content.get("include")
    if name is None:
        return content
    if not isinstance(name, str):
        problems.add("include", f"{name!r}, but a file's name is expected")
        return content
    other = read_toml(path.parent / name)
    for key in other:
        if key not in SHARED:
            problems.add(f"include {name}", f"{key!r} cannot be shared; only {', '.join(SHARED)} can")
    merged = dict(content)
    for key in SHARED:
        theirs, mine = other.get(key, {}), content.get(key, {})
        if isinstance(theirs, dict) and isinstance(mine, dict):
            merged[key] = {**theirs, **mine}
    return merged
