"""`[sources]`, `[tasks]` and `[recipes]` of an experiment's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from embinit.corpora.tasks import data_sets as known_tasks
from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.draft import kind_of
from embinit.experiments.definition.settings import GloveSettings, Problems, SourceSettings, TaskSettings, table
from embinit.experiments.experiment import SAME
from embinit.recipes.recipe import Recipe, named_recipes
from embinit.recipes.recipe import recipe as recipe_of
from embinit.types import TEXT_TASKS

#: Data sets that are generated, and so need no folder.
GENERATED = ("captions", "captions-labelled", "captions-text")
SHARED = ("sources", "tasks", "recipes")
Made = TypeVar("Made")
_RECIPE = ("steps", "fill", "about")


@dataclass
class Tables:
    """What blocks may name."""

    sources: dict[str, SourceSettings]
    tasks: dict[str, TaskSettings]
    #: name -> its steps, with places that a grid fills in, and its fill
    recipes: dict[str, tuple[str, str]]
    problems: Problems
    #: tables that are there and wrong: to name them is no further mistake
    wrong: set[str]

    def task(self, name: str) -> TaskSettings | None:
        """Return a task by its name; a known data set needs no table of its own."""
        if name not in self.tasks and name in (*known_tasks(), *GENERATED):
            self.tasks[name] = TaskSettings(name, tokenizer=_usual_tokenizer(name))
        return self.tasks.get(name)

    def recipe(self, text: str, fill: str, where: str) -> Recipe | None:
        """Return a recipe of a name or of steps; None where that cannot be, which is noted."""
        if text.partition("::")[0].endswith(".toml"):
            self.problems.add(where, f"{text!r}: recipes of an experiment stand in its file: [recipes.NAME]")
            return None
        try:
            return recipe_of(text, fill)
        except EmbinitError as error:
            unknown = str(error).startswith("unknown recipe")
            near = closest(text, [*self.recipes, *named_recipes()])
            self.problems.add(where, f"unknown recipe {text!r}{near}" if unknown else str(error))
            return None


def read_tables(content: dict[str, Any], problems: Problems) -> Tables:
    """Return the file's sources, tasks and recipes; what is wrong with them is noted."""
    wrong: set[str] = set()

    def sound(kind: str, read: Callable[[str, dict[str, Any], Problems], Made | None]) -> dict[str, Made]:
        found = {}
        for name, one in _each(content, kind, problems):
            before = len(problems.found)
            made = read(name, one, problems)
            if made is None or len(problems.found) > before:
                wrong.add(name)
            else:
                found[name] = made
        return found

    return Tables(sound("sources", _source), sound("tasks", _task), sound("recipes", _recipe), problems, wrong)


def _each(content: dict[str, Any], kind: str, problems: Problems) -> list[tuple[str, dict[str, Any]]]:
    tables = content.get(kind, {})
    if not isinstance(tables, dict):
        problems.add(kind, f"tables are expected: [{kind}.NAME]")
        return []
    for name, one in tables.items():
        if not isinstance(one, dict):
            problems.add(f"{kind}.{name}", f"{one!r}, but a table is expected: [{kind}.{name}]")
    return [(name, one) for name, one in tables.items() if isinstance(one, dict)]


def _source(name: str, content: dict[str, Any], problems: Problems) -> SourceSettings | None:
    where = f"sources.{name}"
    source: SourceSettings | None = table(content, SourceSettings, where, problems, name=name)
    if source is None:
        return None
    if (source.path is None) == (source.glove is None):
        problems.add(where, "needs either path or glove = {...}")
    if source.glove is not None:
        made: GloveSettings | None = table(source.glove, GloveSettings, f"{where}.glove", problems)
        if made is not None and source.dim not in (None, made.dim):
            problems.add(f"{where}.dim", f"{source.dim}, but glove.dim is {made.dim}")
        for text in made.texts if made is not None else ():
            data, colon, _ = text.partition(":")
            if not colon or data not in (*known_tasks(), "captions"):
                near = closest(data, [*known_tasks(), "captions"])
                problems.add(f"{where}.glove.texts", f"{text!r} is no DATA SET:LANGUAGE{near}")
    return source


def _task(name: str, content: dict[str, Any], problems: Problems) -> TaskSettings | None:
    where = f"tasks.{name}"
    task: TaskSettings | None = table({"name": name, **content}, TaskSettings, where, problems)
    if task is None:
        return None
    if "tokenizer" not in content:
        task = replace(task, tokenizer=_usual_tokenizer(task.name))
    known = [*known_tasks(), *GENERATED, "files"]
    if task.name not in known:
        problems.add(f"{where}.name", f"unknown data set {task.name!r}{closest(task.name, known)}")
        return None
    if task.size is not None and task.name not in GENERATED:
        problems.add(f"{where}.size", f"{task.name} is not generated; rows = {task.size} keeps so many rows")
    own = None if task.name == "files" else kind_of(replace(task, kind=None))
    if task.kind is not None and own is not None and not {own, task.kind} <= set(TEXT_TASKS):
        problems.add(f"{where}.kind", f"{task.name} is known to be a {own}; leave kind out")
        return None
    if task.boundary is not None and kind_of(task) not in TEXT_TASKS:
        problems.add(f"{where}.boundary", f"{task.name} is no running text")
    for key in ("rows", "longest", "min_count", "size"):
        value = getattr(task, key)
        if value is not None and value < 1:
            problems.add(f"{where}.{key}", f"{value}; at least 1 is needed")
    for also in task.also:
        data, colon, _ = also.partition(":")
        if not colon or data not in known_tasks():
            problems.add(f"{where}.also", f"{also!r} is no DATA SET:SPLIT{closest(data, known_tasks())}")
    return task


def _usual_tokenizer(name: str) -> str:
    known = known_tasks().get(name)
    return TaskSettings.tokenizer if known is None else known.tokenizer


def _recipe(name: str, content: dict[str, Any], problems: Problems) -> tuple[str, str] | None:
    where = f"recipes.{name}"
    for key, value in content.items():
        if key not in _RECIPE:
            problems.add(where, f"unknown key {key!r}{closest(key, _RECIPE)}")
        elif not isinstance(value, str):
            problems.add(f"{where}.{key}", f"{value!r}, but a text is expected")
    if name in named_recipes() or name == SAME:
        said = "is a recipe's name already" if name in named_recipes() else "means each row's own recipe in `baseline`"
        problems.add(where, f"{name!r} {said}; give it another")
    if "steps" not in content:
        problems.add(where, "needs steps")
        return None
    return str(content["steps"]), str(content.get("fill", ""))
