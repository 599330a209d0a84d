"""The sources, tasks and recipes that the blocks of a file may name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from embinit.corpora.data_sets import data_sets as known_tasks
from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.file import SHARED, ExperimentFile
from embinit.experiments.definition.grid import places_in
from embinit.experiments.definition.problems import Checked, Problems
from embinit.experiments.definition.settings import GENERATED, SourceSettings, TaskSettings
from embinit.recipes.names import named_recipes
from embinit.recipes.recipe import Recipe
from embinit.recipes.recipe import recipe as recipe_of


@dataclass
class Tables:
    """The tables of a file, by name."""

    sources: dict[str, SourceSettings]
    tasks: dict[str, TaskSettings]
    #: the steps, in which `{ratio}` stands for an axis of a grid, and the fill
    recipes: dict[str, tuple[str, str]]
    problems: Problems
    #: the folder of the file
    folder: Path
    #: names of tables with a mistake; using such a name is no further mistake
    wrong: set[str] = field(default_factory=set)
    #: `sources`, `tasks` or `recipes` if its value is no table; using a name of it is no further mistake
    unreadable: set[str] = field(default_factory=set)

    def is_wrong(self, kind: str, name: str) -> bool:
        """Return whether a name is unknown only because its table has a mistake."""
        return name in self.wrong or kind in self.unreadable

    def task(self, name: str) -> TaskSettings | None:
        """Return a task by its name; a known data set needs no table of its own."""
        if name not in self.tasks and name not in self.wrong and name in (*known_tasks(), *GENERATED):
            self.tasks[name] = TaskSettings(name)
        return self.tasks.get(name)

    def recipe(self, text: str, fill: str, place: str) -> Recipe | None:
        """Return the recipe of a text; add a mistake and return None if there is no such recipe."""
        file, colons, name = text.partition("::")
        if file.endswith(".toml"):
            text = f"{self.folder / file}{colons}{name}"
        try:
            return recipe_of(text, fill or None)
        except EmbinitError as error:
            is_unknown = str(error).startswith("unknown recipe")
            near = closest(text, [*self.recipes, *named_recipes()])
            self.problems.add(place, f"unknown recipe {text!r}{near}" if is_unknown else str(error))
            return None


def tables_of(checked: Checked[ExperimentFile], folder: Path, problems: Problems) -> Tables:
    """Return the tables of a file; add a mistake for each recipe with wrong steps."""
    file = checked.table
    names = {str(location[1]) for location in checked.wrong if len(location) > 1 and location[0] in SHARED}
    recipes = {name: (table.steps, table.fill) for name, table in file.recipes.items()}
    unreadable = {str(location[0]) for location in checked.wrong if len(location) == 1}
    tables = Tables(dict(file.sources), dict(file.tasks), recipes, problems, folder, names, unreadable)
    for name, (steps, fill) in recipes.items():
        if not places_in(steps) and tables.recipe(steps, fill, f"recipes.{name}") is None:
            tables.wrong.add(name)
    return tables
