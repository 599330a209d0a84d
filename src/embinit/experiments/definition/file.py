"""The tables of an experiment file, declared: the file itself, its blocks, grids, baselines and recipes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict, create_model

from embinit.experiments.definition.paper import check_paper
from embinit.experiments.definition.run_settings import Fill, RunSettings, SettingsTable, inner_table
from embinit.experiments.definition.settings import SourceSettings, TaskSettings
from embinit.experiments.experiment import SAME
from embinit.recipes.names import named_recipes
from embinit.recipes.recipe import steps_text

KINDS = ("training", "distribution", "analogy", "verdict")
#: Tables that an included file may hold.
SHARED = ("sources", "tasks", "recipes")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _without_repetition(values: list[Any]) -> list[Any]:
    if len({repr(value) for value in values}) < len(values):
        raise ValueError("a value occurs twice in the list")
    return values


def _free_name(name: str) -> str:
    if name in named_recipes():
        raise ValueError(f"{name!r} is a recipe's name already; choose another name")
    if name == SAME:
        raise ValueError(f"{name!r} means each row's own recipe in `baseline`; choose another name")
    return name


def _table_of(baseline: Any) -> Any:
    return {"recipe": baseline} if isinstance(baseline, str) else baseline


def _list_of(baselines: Any) -> Any:
    if isinstance(baselines, list):
        return baselines
    return [] if baselines == "" else [baselines]


Text = Annotated[str, AfterValidator(_one_line)]
Texts = Annotated[tuple[str, ...], Strict(False)]
Steps = Annotated[str, BeforeValidator(steps_text, json_schema_input_type=str | list[str | dict[str, dict[str, Any]]])]


class RecipeSettings(SettingsTable):
    """`[recipes.NAME]`: steps that blocks name."""

    #: steps as a text (`pretrained | center | scale ratio={ratio}`) or as a list; `{ratio}` stands for the grid's axis
    steps: Steps
    #: rows of the tokens that the source lacks
    fill: Fill = ""
    #: one line that describes the recipe
    about: str = ""


class BaselineSettings(RunSettings):
    """A start that the others are compared with, in a stated setting or in the setting of each compared start."""


def _grid_of(table: type[SettingsTable], extra: Literal["allow", "forbid"] = "forbid") -> Any:
    """Return a table with a list of values for each key of another table."""
    declared: dict[str, Any] = {}
    for name, info in table.model_fields.items():
        inner = inner_table(info.annotation)
        if inner is not None:
            declared[name] = (_grid_of(inner), None)
        else:
            value: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
            values = Annotated[list[value], Field(min_length=1), AfterValidator(_without_repetition)]
            declared[name] = (values, None)
    base = type("GridTable", (SettingsTable,), {"model_config": ConfigDict(extra=extra), "__module__": __name__})
    return create_model(table.__name__.replace("Settings", "Grid"), __base__=base, **declared)


#: A key that is no setting names a place in one of the block's recipes, which are not known here.
RunGrid = _grid_of(RunSettings, extra="allow")


class BlockSettings(RunSettings):
    """`[[block]]`: runs that are compared with each other."""

    #: heading of the block in reports
    name: str = ""
    #: lists of values; every combination is trained
    grid: RunGrid = RunGrid()  # type: ignore[valid-type]
    #: the score that the block is judged by; by default `bleu`, `accuracy`, `perplexity` or `loss`
    score: str = ""
    #: the split that the score is read from; by default `test`, or `valid` if a known data set has no labelled test
    split: str = ""
    #: the axis that a figure draws the score against
    sweep: str = ""
    #: axes of the start that is expected to win, named before any run
    candidate: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    #: name of the block that judges this block's best start on other seeds
    chooses_for: str = ""
    #: the block of the paper to compare with: `["table 1", "multi30k", "glove"]`
    paper: Annotated[Texts, AfterValidator(check_paper)] = ()
    #: file of analogy questions, for `kind = "analogy"`
    questions: str = ""
    #: number of draws of positions, for `kind = "analogy"`
    draws: int | None = None
    #: number of positions to draw from, for `kind = "analogy"`
    length: int | None = None


class ExperimentFile(SettingsTable):
    """An experiment file."""

    #: heading of the report; by default the file's name
    title: Text = ""
    #: the question that the experiment answers
    question: Text = ""
    #: the cost of the runs, for reports
    cost: Text = ""
    #: `training`, or a measurement that trains nothing
    kind: Literal["training", "distribution", "analogy", "verdict"] = "training"
    #: the start, or the starts, that the others are compared with
    baseline: Annotated[
        list[Annotated[BaselineSettings, BeforeValidator(_table_of, json_schema_input_type=str | BaselineSettings)]],
        BeforeValidator(_list_of, json_schema_input_type=str | BaselineSettings | list[str | BaselineSettings]),
    ] = Field(default_factory=list)
    #: remarks that the report prints
    notes: Texts = ()
    #: another file whose sources, tasks and recipes are taken as well
    include: str = ""
    #: vectors, by name
    sources: dict[str, SourceSettings] = Field(default_factory=dict)
    #: data sets and how they are prepared, by name
    tasks: dict[str, TaskSettings] = Field(default_factory=dict)
    #: steps, by name
    recipes: dict[Annotated[str, AfterValidator(_free_name)], RecipeSettings] = Field(default_factory=dict)
    #: settings of all blocks that do not set them
    defaults: RunSettings = RunSettings()
    #: the blocks of the report
    block: Annotated[list[BlockSettings], Field(min_length=1)] = Field(default_factory=list)
