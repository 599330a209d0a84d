"""An experiment as its file states it, checked, before data or vectors are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embinit.experiments.definition.settings import SourceSettings, TaskSettings, kind_of_data
from embinit.experiments.experiment import Axes, Baseline
from embinit.experiments.spec import OUTPUT, Side, Spec, Task
from embinit.models.architecture import Architecture, default_heads
from embinit.recipes.names import named_recipes
from embinit.recipes.recipe import Recipe
from embinit.recipes.recipe import recipe as recipe_of
from embinit.types import TEXT_TASKS


@dataclass(frozen=True)
class DraftSide:
    """One matrix: its recipe, and the source that the file names for it, even if the recipe does not use the source."""

    source: str
    recipe: Recipe

    @property
    def uses_source(self) -> bool:
        """Return whether the matrix depends on the source's rows or on their moments."""
        return needs_source(self.recipe)

    def side(self, rows: str = "") -> Side:
        """Return the part that decides a run's numbers. The source does not affect random rows."""
        used, text = self.uses_source, canonical(self.recipe)
        return Side(self.source if used else "", text, rows if used else "", str(self.recipe), self.recipe.fill)


@dataclass(frozen=True)
class DraftRun:
    """One run: its task and sources by their names in the file; `model` may lack its dimension, and the heads with it."""

    task: str
    sides: tuple[tuple[str, DraftSide], ...]
    seed: int
    model: tuple[tuple[str, Any], ...]
    training: tuple[tuple[str, Any], ...]
    #: every axis of the grid but the seed, with its value as text
    axes: Axes

    def spec(self, task: Task, rows: dict[str, str], dim: int | None) -> Spec:
        """Return the run's spec; a dimension that is not known yet is left out."""
        heads = Architecture.heads if dim is None else default_heads(dim)
        model = {"heads": heads, **dict(self.model), **({} if dim is None else {"dim": dim})}
        return Spec(
            task=task,
            sides=tuple((name, side.side(rows.get(name, ""))) for name, side in self.sides),
            seed=self.seed,
            model=tuple(sorted(model.items())),
            training=tuple(sorted(self.training)),
        )


@dataclass(frozen=True)
class DraftBlock:
    """A block: its runs, and how it is reported."""

    name: str
    runs: tuple[DraftRun, ...]
    score: str
    split: str
    paper: tuple[str, ...]
    sweep: str
    #: settings of a measurement that trains nothing
    measure: tuple[tuple[str, Any], ...] = ()
    #: see `Block`
    candidate: Axes = ()
    chooses_for: str = ""

    def source_names(self) -> list[str]:
        """Return the sources that the block names, in order."""
        return list(dict.fromkeys(side.source for run in self.runs for _, side in run.sides if side.source))


@dataclass(frozen=True)
class Draft:
    """An experiment file, checked."""

    file: Path
    title: str
    question: str
    baseline: str
    notes: tuple[str, ...]
    kind: str
    cost: str
    sources: dict[str, SourceSettings]
    tasks: dict[str, TaskSettings]
    blocks: tuple[DraftBlock, ...]
    #: see `Experiment`
    against: tuple[Baseline, ...] = ()
    #: the file whose sources, tasks and recipes it includes
    included: Path | None = None

    @property
    def name(self) -> str:
        """Return the name of the experiment: the file name without its ending."""
        return self.file.stem


def needs_source(recipe: Recipe) -> bool:
    """Return whether a recipe takes rows, or their mean and σ, from a source."""
    return recipe.uses_source or any(step.name == "match" for step in recipe.steps)


def canonical(recipe: Recipe) -> str:
    """Return the name under which these steps are known, else the steps: two spellings are one run.

    >>> canonical(recipe_of("pretrained | center | scale to=xavier"))
    'pretrained_xavier'
    """
    return next((name for name in named_recipes() if recipe_of(name).steps == recipe.steps), str(recipe))


def task_of(settings: TaskSettings, data: str = "", label: str = "") -> Task:
    """Return the settings of a task that decide a run's numbers; the user's own files are named by their label."""
    return Task(
        label or settings.name if settings.name == "files" else settings.name,
        settings.pair, settings.tokenizer, settings.lower, settings.min_count, settings.rows, settings.longest,
        settings.size, settings.also, data, kind_of(settings) if kind_of(settings) in TEXT_TASKS else None,
        settings.boundary,
    )  # fmt: skip


def kind_of(settings: TaskSettings) -> str:
    """Return the kind of a task: `translation`, `classification`, `language_model` or `masked_language_model`."""
    return settings.kind or kind_of_data(settings.name)


def sides_of(settings: TaskSettings) -> tuple[str, ...]:
    """Return the sides of a task in the model's order."""
    return ("source", "target") if kind_of(settings) == "translation" else ("text",)


def matrices_of(settings: TaskSettings, file_kind: str) -> tuple[str, ...]:
    """Return the matrices that a file may set: the task's sides, and the output layer if a training predicts tokens."""
    predicts = file_kind == "training" and kind_of(settings) != "classification"
    return (*sides_of(settings), OUTPUT) if predicts else sides_of(settings)
