"""`[[block]]` of an experiment file: its settings and its grid become runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from embinit.corpora.data_sets import data_sets as known_tasks
from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.architectures import Values, architecture, recorded, shared_dim, stated_dim
from embinit.experiments.definition.draft import (
    DraftBlock,
    DraftRun,
    DraftSide,
    kind_of,
    matrices_of,
    needs_source,
)
from embinit.experiments.definition.file import BlockSettings, ExperimentFile
from embinit.experiments.definition.grid import (
    Assignment,
    as_text,
    assignments,
    axes,
    filled,
    flat,
    in_file_order,
    places_in,
    without_effect,
)
from embinit.experiments.definition.problems import Checked, Problems, block_place
from embinit.experiments.definition.run_settings import RunSettings, SettingsTable, SideSettings
from embinit.experiments.definition.scores import score_and_split
from embinit.experiments.definition.sections import Tables
from embinit.experiments.definition.settings import GENERATED, TaskSettings
from embinit.experiments.experiment import Axes, implied_target
from embinit.experiments.spec import FILE_SIDES, OUTPUT, SIDES
from embinit.format import listed
from embinit.models.presets import preset
from embinit.recipes.recipe import Recipe
from embinit.training.options import Training

_RATES = {"translation": 2e-4, "classification": 1e-4, "language_model": 2e-4, "masked_language_model": 2e-4}
#: Keys of a block for the analogy test only: its questions, the number of draws of positions, and the number of positions
#: to draw from.
_ANALOGY = ("questions", "draws", "length")
_DECIDED = ("task", "vocabularies", "classes")


def read_blocks(checked: Checked[ExperimentFile], tables: Tables, problems: Problems) -> tuple[DraftBlock, ...]:
    """Return the blocks of a file, expanded into runs."""
    file, content = checked.table, checked.content
    if not file.block and ("block",) not in checked.wrong:
        problems.add("", "needs blocks: [[block]]")
    defaults = in_file_order(_given(file.defaults), content.get("defaults"))
    # A value that was removed because it is wrong is not missing.
    left_out = {".".join(map(str, place[1:])) for place in checked.wrong if place[0] == "defaults"}
    blocks = []
    for index, table in enumerate(file.block):
        own = {".".join(map(str, place[2:])) for place in checked.wrong if place[:2] == ("block", index)}
        reader = _BlockReader(table, content["block"][index], index + 1, file.kind, tables, problems, left_out | own)
        blocks.append(reader.read(defaults))
    names = [block.name for block in blocks]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.add("", f"two blocks are named {name!r}")
    _check_sides_occur(defaults, blocks, tables, file.kind, problems)
    return tuple(_with_target(block, names, problems) for block in blocks)


def _with_target(block: DraftBlock, names: list[str], problems: Problems) -> DraftBlock:
    """Return a block with the block for which it chooses a start; that block must be in the file."""
    others = [name for name in names if name != block.name]
    if block.chooses_for and block.chooses_for not in others:
        near = closest(block.chooses_for, others)
        problems.add(f"block {block.name}.chooses_for", f"no other block is named {block.chooses_for!r}{near}")
    return replace(block, chooses_for=block.chooses_for or implied_target(block.name, names))


def _check_sides_occur(
    defaults: dict[str, Any], blocks: list[DraftBlock], tables: Tables, kind: str, problems: Problems
) -> None:
    """Add a mistake for each default of a side that no block's task has, because it would do nothing."""
    tasks = {run.task for block in blocks for run in block.runs}
    sides = {FILE_SIDES[side] for name in tasks for side in matrices_of(tables.tasks[name], kind)}
    for key in defaults if sides else ():
        side = key.partition(".")[0]
        if side in FILE_SIDES.values() and side not in sides:
            problems.add("defaults", f"{key} does nothing: no task has this side")


class _BlockReader:
    """Reads one block."""

    def __init__(
        self,
        table: BlockSettings,
        content: dict[str, Any],
        number: int,
        kind: str,
        tables: Tables,
        problems: Problems,
        left_out: set[str],
    ) -> None:
        self._table, self._content, self._kind, self._number = table, content, kind, number
        self._tables, self._problems = tables, problems
        #: dotted names of settings and axes with a mistake, which do not count as missing
        self._left_out = left_out
        self._where = block_place(number, content)
        given = _given(table)
        settings = {key: value for key, value in given.items() if key in RunSettings.model_fields}
        #: the block's own settings, without the defaults
        self._own = in_file_order(settings, content)

    def read(self, defaults: dict[str, Any]) -> DraftBlock:
        """Return the block; if it has mistakes, the part that can be read."""
        table, given = self._table, self._table.model_fields_set
        grid = axes(
            _given(table.grid),
            self._content.get("grid"),
            self._recipe_texts({**defaults, **self._own}),
            f"{self._where}, grid",
            self._problems,
        )
        self._left_out |= {f"grid.{key}" for key in flat(_given(table.grid)) if key not in grid}
        chosen = assignments(defaults, self._own, grid, self._where, self._problems)
        runs = tuple(run for assignment in chosen if (run := self._run(assignment)) is not None)
        if table.sweep and table.sweep not in grid and not self._is_left_out(f"grid.{table.sweep}"):
            self._problems.add(
                f"{self._where}.sweep", f"the grid has no axis {table.sweep!r}{closest(table.sweep, grid)}"
            )
        tasks = [self._tables.tasks[name] for name in dict.fromkeys(run.task for run in runs)]
        score, split = score_and_split(table, tasks, self._where, self._problems)
        return DraftBlock(
            table.name if "name" in given else f"block {self._number}", runs, score, split, table.paper, table.sweep,
            self._analogy_settings(), self._candidate(runs), table.chooses_for,
        )  # fmt: skip

    def _is_left_out(self, name: str) -> bool:
        """Return whether a setting or an axis is absent only because its value is wrong."""
        return any(not key or f"{name}.".startswith(f"{key}.") for key in self._left_out)

    def _analogy_settings(self) -> Values:
        given = self._table.model_fields_set
        for key in _ANALOGY:
            if key in given and self._kind != "analogy":
                self._problems.add(f"{self._where}.{key}", 'only a file with kind = "analogy" has this key')
        return tuple((key, getattr(self._table, key)) for key in _ANALOGY if key in given)

    def _candidate(self, runs: tuple[DraftRun, ...]) -> Axes:
        """Return the axes of the start that `candidate` names; empty unless it names exactly one start."""
        where, rows = f"{self._where}.candidate", list(dict.fromkeys(run.axes for run in runs))
        if self._table.candidate is None or not rows:
            return ()
        wanted = {key: " ".join(as_text(value).split()) for key, value in flat(self._table.candidate).items()}
        for axis, value in wanted.items():
            values = [row[axis] for row in map(dict, rows) if axis in row]
            if not values and not self._is_left_out(f"grid.{axis}"):
                self._problems.add(where, f"the grid has no axis {axis}{closest(axis, dict(rows[0]))}")
            elif values and value not in values:
                self._problems.add(where, f"the grid has no {axis} = {value!r}{closest(value, values)}")
        matches = [row for row in rows if wanted.items() <= dict(row).items()]
        if len(matches) > 1:
            more = [axis for axis, _ in rows[0] if axis not in wanted]
            self._problems.add(where, f"{len(matches)} starts match; add {' and '.join(more)}")
        return matches[0] if len(matches) == 1 else ()

    def _recipe_texts(self, values: dict[str, Any]) -> list[str]:
        """Return the texts of every recipe that the block may use, before a grid fills in their places."""
        grid = flat(_given(self._table.grid))
        listed = [(key, value) for key, values in grid.items() if isinstance(values, list) for value in values]
        texts = [str(value) for key, value in [*listed, *values.items()] if key.rpartition(".")[2] == "recipe"]
        return [self._tables.recipes[text][0] if text in self._tables.recipes else text for text in texts]

    # ------------------------------------------------------------ one run

    def _run(self, chosen: Assignment) -> DraftRun | None:
        values = chosen.values
        task = self._task(values.get("task"))
        if task is None:
            for side in SIDES:  # their names may be wrong as well
                self._recipe(chosen, side)
                self._source(chosen, side)
            return None
        accepted = matrices_of(task, self._kind)
        names = [side for side in accepted if side != OUTPUT or _sets_output(chosen)]
        self._check_settings_apply(chosen, [FILE_SIDES[side] for side in accepted], names)
        sides = [(side, self._side(chosen, FILE_SIDES[side])) for side in names]
        sound = tuple((name, side) for name, side in sides if side is not None)
        complete = self._complete(values, kind_of(task), sound, len(sound) == len(sides))
        if complete is None or len(sound) < len(sides):
            return None
        if OUTPUT in names and dict(complete[0])["tied"]:
            sound = tuple((name, side) for name, side in sound if name != OUTPUT)
            own = {**self._own, **dict(chosen.axes)}
            for key in (key for key in own if key.startswith(f"{FILE_SIDES[OUTPUT]}.")):
                message = f"{key} does nothing: the model's output layer is tied; set model.tied = false"
                self._problems.add(self._where, message)
        row = tuple((key, as_text(value)) for key, value in chosen.axes if key != "seed")
        return DraftRun(str(values["task"]), sound, values.get("seed", 1), *complete, row)

    def _task(self, name: str | None) -> TaskSettings | None:
        if name is None:
            if not self._is_left_out("task") and not self._is_left_out("grid.task"):
                self._problems.add(self._where, "needs a task")
            return None
        task = self._tables.task(name)
        if task is None and not self._tables.is_wrong("tasks", name):
            near = closest(name, [*self._tables.tasks, *known_tasks(), *GENERATED])
            self._problems.add(f"{self._where}, task", f"unknown task {name!r}{near}")
        return task

    def _check_settings_apply(self, chosen: Assignment, accepted: list[str], used: list[str]) -> None:
        """Add a mistake for each of the block's settings that applies to no matrix of the run.

        `accepted` are the names of the task's matrices in files, `used` the matrices of the run.
        """
        own = {**self._own, **dict(chosen.axes)}
        for key in own:
            side = key.partition(".")[0]
            if side in FILE_SIDES.values() and side not in accepted:
                self._problems.add(self._where, f"{key} does nothing: the task's matrices are {listed(accepted)}")
        sides = tuple(FILE_SIDES[side] for side in used)
        for name in without_effect(chosen.values, sides):
            if name in own:
                others = listed([f"{side}.{name}" for side in sides])
                self._problems.add(self._where, f"{name} does nothing beside {others}")

    def _side(self, chosen: Assignment, side: str) -> DraftSide | None:
        recipe, source = self._recipe(chosen, side), self._source(chosen, side)
        if recipe is None or source is None:
            return None
        if needs_source(recipe) and not source:
            if not self._is_left_out("source") and not self._is_left_out(f"{side}.source"):
                name = chosen.on(side, "recipe")
                self._problems.add(self._where, f"the recipe {name!r} needs a source for the {side}; add {side}.source")
            return None
        return DraftSide(source, recipe)

    def _source(self, chosen: Assignment, side: str) -> str | None:
        """Return the name of a side's source, empty if none is named; None if there is no such source."""
        name = chosen.on(side, "source") or ""
        if name and name not in self._tables.sources and not self._tables.is_wrong("sources", name):
            near = closest(name, self._tables.sources)
            self._problems.add(f"{self._where}, source", f"unknown source {name!r}{near}")
        return name if not name or (name in self._tables.sources and name not in self._tables.wrong) else None

    def _recipe(self, chosen: Assignment, side: str) -> Recipe | None:
        """Return the recipe of a side; None if there is no such recipe."""
        text = chosen.on(side, "recipe") or SideSettings.model_fields["recipe"].default
        if text in self._tables.wrong:
            return None
        steps, fill = self._tables.recipes.get(text, (text, ""))
        values = dict(chosen.axes)
        absent = [name for name in places_in(steps) if name not in values]
        for name in absent:
            if not self._is_left_out(f"grid.{name}"):
                message = f"the recipe {steps!r} contains {{{name}}}; add grid.{name} = [...]"
                self._problems.add(self._where, message)
        if absent:
            return None
        return self._tables.recipe(filled(steps, values), chosen.on(side, "fill") or fill, self._where)

    def _complete(
        self, values: dict[str, Any], kind: str, named: Sequence[tuple[str, DraftSide]], sound: bool
    ) -> tuple[Values, Values] | None:
        """Return model and training with all defaults; the dimension is left out if it is not known yet."""
        model = {key.partition(".")[2]: value for key, value in values.items() if key.startswith("model.")}
        training = {key.partition(".")[2]: value for key, value in values.items() if key.startswith("training.")}
        sides = [side for _, side in named]
        sources = {side.source: stated_dim(self._tables, side.source) for side in sides if side.source}
        try:
            if "preset" in model:
                chosen = preset(model.pop("preset"))
                model, training = {**chosen.model, **model}, {**chosen.training, **training}
            dim = shared_dim(sources, model.get("dim"))
            if dim is None and not sources and sound and not self._is_left_out("model.dim"):
                raise EmbinitError("needs model.dim, because no source states the dimension")
            transformer = architecture(model, kind, dim)
            # `found_rate` affects neither random rows nor the output layer, so they are one run at any rate.
            uses_rate = any(side.uses_source for name, side in named if name != OUTPUT)
            same = {} if uses_rate else {"found_rate": Training.found_rate}
            training_options = Training(**{"rate": _RATES[kind], **training, **same})
            for side in sides:
                side.recipe.check(dim)
        except EmbinitError as error:
            self._problems.add(self._where, str(error))
            return None
        unknown = () if dim is not None else ("dim",) if "heads" in model else ("dim", "heads")
        decided = (*_DECIDED, *unknown)
        return (
            tuple(pair for pair in recorded("model", vars(transformer)) if pair[0] not in decided),
            recorded("training", vars(training_options)),
        )


def _sets_output(chosen: Assignment) -> bool:
    """Return whether a run sets the rows of its output layer."""
    return any(key.startswith(f"{FILE_SIDES[OUTPUT]}.") for key in chosen.values)


def _given(table: SettingsTable) -> dict[str, Any]:
    """Return the values of a table that the file gives."""
    return table.model_dump(exclude_unset=True)
