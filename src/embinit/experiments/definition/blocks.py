"""`[[block]]` of an experiment's file: settings and a grid made into runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from embinit.corpora.tasks import data_sets as known_tasks
from embinit.errors import EmbinitError, closest
from embinit.experiments.definition.draft import (
    FILE_SIDES,
    DraftBlock,
    DraftRun,
    DraftSide,
    kind_of,
    needs_source,
    sides_of,
)
from embinit.experiments.definition.grid import (
    Assignment,
    assignments,
    axes,
    filled,
    flat,
    settings,
    shown,
    without_effect,
)
from embinit.experiments.definition.sections import GENERATED, Tables
from embinit.experiments.definition.settings import GloveSettings, Problems, TaskSettings, checked
from embinit.experiments.experiment import Axes, implied_target
from embinit.experiments.spec import LATER
from embinit.models.architecture import Architecture
from embinit.models.presets import preset
from embinit.training.options import Training

SCORES = {
    "translation": ("bleu", "sacrebleu", "chrf"),
    "classification": ("accuracy", "macro_f1", "matthews"),
    "language_model": ("perplexity", "word_perplexity", "bits_per_byte", "loss"),
    "masked_language_model": ("loss", "masked_accuracy"),
}
_RATES = {"translation": 2e-4, "classification": 1e-4, "language_model": 2e-4, "masked_language_model": 2e-4}
_HEAD: dict[str, Any] = {
    "name": str,
    "paper": tuple[str, ...],
    "score": str,
    "split": str,
    "sweep": str,
    "chooses_for": str,
}
#: What the analogy test takes beside: its questions, how often positions are drawn, and from how many.
_ANALOGY: dict[str, Any] = {"questions": str, "draws": int, "length": int}
#: Tables of a block that are no settings.
_APART = ("grid", "candidate")
_DECIDED = ("task", "vocabularies", "classes")

Values = tuple[tuple[str, Any], ...]


def read_blocks(content: dict[str, Any], kind: str, tables: Tables, problems: Problems) -> tuple[DraftBlock, ...]:
    """Return the file's blocks; what is wrong with them is noted."""
    blocks = content.get("block", [])
    if not isinstance(blocks, list) or not blocks or not all(isinstance(one, dict) for one in blocks):
        problems.add("", "needs blocks: [[block]]")
        return ()
    given = content.get("defaults", {})
    defaults = settings(given if isinstance(given, dict) else {"defaults": given}, "defaults", problems)
    made = []
    for number, one in enumerate(blocks, 1):
        title = one.get("name")
        where = f"block {number}" + (f" ({title})" if isinstance(title, str) and title else "")
        made.append(_Block(one, kind, where, tables, problems).read(defaults, f"block {number}"))
    names = [block.name for block in made]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.add("", f"two blocks are named {name!r}")
    _note_unused(defaults, made, tables, problems)
    return tuple(_with_target(block, names, problems) for block in made)


def _with_target(block: DraftBlock, names: list[str], problems: Problems) -> DraftBlock:
    """Return a block with the block that it chooses a start for; a name that is not in the file is noted."""
    others = [name for name in names if name != block.name]
    if block.chooses_for and block.chooses_for not in others:
        near = closest(block.chooses_for, others)
        problems.add(f"block {block.name}.chooses_for", f"no other block is named {block.chooses_for!r}{near}")
    return replace(block, chooses_for=block.chooses_for or implied_target(block.name, names))


def _note_unused(defaults: dict[str, Any], blocks: list[DraftBlock], tables: Tables, problems: Problems) -> None:
    """Note defaults of a side that no block's task has: they would do nothing."""
    named = {run.task for block in blocks for run in block.runs}
    have = {FILE_SIDES[side] for name in named for side in sides_of(tables.tasks[name])}
    for key in defaults if have else ():
        side = key.partition(".")[0]
        if side in FILE_SIDES.values() and side not in have:
            problems.add("defaults", f"{key} does nothing: no task has this side")


class _Block:
    """Reads one block."""

    def __init__(self, content: dict[str, Any], kind: str, where: str, tables: Tables, problems: Problems) -> None:
        self._content, self._where, self._tables, self._problems = content, where, tables, problems
        self._known = {**_HEAD, **(_ANALOGY if kind == "analogy" else {})}
        #: what this block says itself, and not the defaults
        self._own: dict[str, Any] = {}

    def read(self, defaults: dict[str, Any], name: str) -> DraftBlock:
        """Return the block; where something was wrong, whatever could be made of it."""
        head = self._head()
        rest = {key: value for key, value in self._content.items() if key not in self._known and key not in _APART}
        self._own = settings(rest, self._where, self._problems)
        recipes = self._recipe_texts({**defaults, **self._own})
        grid = axes(self._content.get("grid", {}), f"{self._where}, grid", recipes, self._problems)
        chosen = list(assignments(defaults, self._own, grid, self._where, self._problems))
        runs = tuple(run for one in chosen if (run := self._run(one)) is not None)
        sweep = str(head.get("sweep", ""))
        if sweep and sweep not in grid:
            self._problems.add(f"{self._where}.sweep", f"{sweep!r} is no axis of the grid{closest(sweep, grid)}")
        score, split = self._judged(head, runs)
        measure = tuple((key, head[key]) for key in _ANALOGY if key in head)
        title, candidate = str(head.get("name", name)), self._candidate(runs)
        return DraftBlock(
            title, runs, score, split, head.get("paper", ()), sweep, measure, candidate, head.get("chooses_for", "")
        )

    def _head(self) -> dict[str, Any]:
        head = {}
        for key, hint in self._known.items():
            if key in self._content:
                value, wrong = checked(self._content[key], hint)
                if wrong:
                    self._problems.add(f"{self._where}.{key}", wrong)
                else:
                    head[key] = value
        return head

    def _candidate(self, runs: tuple[DraftRun, ...]) -> Axes:
        """Return the axes of the one start that `candidate` names; none where it is not said or something is wrong."""
        given, where = self._content.get("candidate"), f"{self._where}.candidate"
        rows = list(dict.fromkeys(run.axes for run in runs))
        if given is None or not rows:
            return ()
        if not isinstance(given, dict) or not given:
            self._problems.add(where, f'{given!r}, but {{recipe = "..."}} and other axes of the grid are expected')
            return ()
        wanted = {key: " ".join(shown(value).split()) for key, value in flat(given).items()}
        for axis, value in wanted.items():
            values = [found[axis] for found in map(dict, rows) if axis in found]
            if not values:
                self._problems.add(where, f"{axis} is no axis of the grid{closest(axis, dict(rows[0]))}")
            elif value not in values:
                self._problems.add(where, f"the grid has no {axis} = {value!r}{closest(value, values)}")
        found = [axes for axes in rows if wanted.items() <= dict(axes).items()]
        if len(found) > 1:
            more = [axis for axis, _ in rows[0] if axis not in wanted]
            self._problems.add(where, f"{len(found)} starts are like this; say {' and '.join(more)} as well")
        return found[0] if len(found) == 1 else ()

    def _recipe_texts(self, values: dict[str, Any]) -> list[str]:
        """Return the texts of every recipe that the block may use, their places not yet filled in."""
        grid = self._content.get("grid", {})
        listed = [one for one in flat(grid).items() if isinstance(one[1], list)] if isinstance(grid, dict) else []
        named = [*((key, value) for key, many in listed for value in many), *values.items()]
        texts = [str(value) for key, value in named if key.rpartition(".")[2] == "recipe"]
        return [self._tables.recipes[text][0] if text in self._tables.recipes else text for text in texts]

    def _judged(self, head: dict[str, Any], runs: tuple[DraftRun, ...]) -> tuple[str, str]:
        """Return the score and the split that the block is judged by, which all of its tasks must have."""
        tasks = [self._tables.tasks[name] for name in dict.fromkeys(run.task for run in runs)]
        kinds = {kind_of(task) for task in tasks}
        if len(kinds) > 1:
            listed = " and ".join(f"a {kind.replace('_', ' ')}" for kind in sorted(kinds))
            self._problems.add(self._where, f"has tasks of different kinds, {listed}; make two blocks")
        kind = next(iter(kinds), None)
        score = str(head.get("score", SCORES[kind or "translation"][0]))
        if kind is not None and score not in SCORES[kind]:
            near = closest(score, SCORES[kind])
            self._problems.add(f"{self._where}.score", f"{score!r} is no score of a {kind}{near}")
        return score, str(head.get("split", "test" if all(map(_has_test, tasks)) else "valid"))

    # ------------------------------------------------------------ one run

    def _run(self, chosen: Assignment) -> DraftRun | None:
        values = chosen.values
        task = self._task(values.get("task"))
        if task is None:
            self._side(chosen, "encoder")  # its recipe and source may be wrong as well
            return None
        self._note_unheard(chosen, tuple(FILE_SIDES[side] for side in sides_of(task)))
        sides = [(side, self._side(chosen, FILE_SIDES[side])) for side in sides_of(task)]
        seed = values.get("seed", 1)
        if seed < 0:
            self._problems.add(f"{self._where}, seed", f"{seed}; zero or more is needed")
        sound = tuple((name, side) for name, side in sides if side is not None)
        complete = self._complete(values, kind_of(task), [side for _, side in sound], len(sound) == len(sides))
        if complete is None or len(sound) < len(sides):
            return None
        axes_shown = tuple((key, shown(value)) for key, value in chosen.axes if key != "seed")
        return DraftRun(str(values["task"]), sound, seed, *complete, axes_shown)

    def _task(self, name: str | None) -> TaskSettings | None:
        if name is None:
            self._problems.add(self._where, "needs a task")
            return None
        task = self._tables.task(name)
        if task is None and name not in self._tables.wrong:
            near = closest(name, [*self._tables.tasks, *known_tasks(), *GENERATED])
            self._problems.add(f"{self._where}, task", f"unknown task {name!r}{near}")
        return task

    def _note_unheard(self, chosen: Assignment, sides: tuple[str, ...]) -> None:
        """Note what the block says and no side of the task hears."""
        own = {**self._own, **dict(chosen.axes)}
        for key in own:
            side = key.partition(".")[0]
            if side in FILE_SIDES.values() and side not in sides:
                self._problems.add(self._where, f"{key} does nothing: the task's sides are {' and '.join(sides)}")
        for name in without_effect(chosen.values, sides):
            if name in own:
                others = " and ".join(f"{side}.{name}" for side in sides)
                self._problems.add(self._where, f"{name} does nothing beside {others}")

    def _side(self, chosen: Assignment, side: str) -> DraftSide | None:
        text, source = chosen.on(side, "recipe") or "xavier", chosen.on(side, "source") or ""
        steps, fill = self._tables.recipes.get(text, (text, ""))
        fill = chosen.on(side, "fill") or fill or "target"
        steps, lacking = filled(steps, dict(chosen.axes))
        for name in lacking:
            lack = f"the recipe {steps!r} has a place for {{{name}}}, but grid.{name} is not there"
            self._problems.add(self._where, lack)
        recipe = None
        if not lacking and text not in self._tables.wrong:
            recipe = self._tables.recipe(steps, fill, self._where)
        if source in self._tables.wrong:
            return None
        if source and source not in self._tables.sources:
            near = closest(source, self._tables.sources)
            self._problems.add(f"{self._where}, source", f"unknown source {source!r}{near}")
            return None
        if recipe is not None and needs_source(recipe) and not source:
            self._problems.add(self._where, f"the recipe {text!r} needs a source for the {side}, and there is none")
            return None
        return None if recipe is None else DraftSide(source, recipe)

    def _complete(
        self, values: dict[str, Any], kind: str, sides: list[DraftSide], sound: bool
    ) -> tuple[Values, Values] | None:
        """Return model and training with every default filled in; the dimension only where it is known by now."""
        model = {key.partition(".")[2]: value for key, value in values.items() if key.startswith("model.")}
        training = {key.partition(".")[2]: value for key, value in values.items() if key.startswith("training.")}
        sources = {side.source: said_dim(self._tables, side.source) for side in sides if side.source}
        try:
            if "preset" in model:
                chosen = preset(model.pop("preset"))
                model, training = {**chosen.model, **model}, {**chosen.training, **training}
            dim = shared_dim(sources, model.get("dim"))
            if dim is None and not sources and sound:
                raise EmbinitError("needs model.dim, because there is no source to take it from")
            made = architecture(model, kind, dim)
            # Random rows have no source, so that `found_rate` does not change them: whatever it is, they are one run.
            same = {} if any(side.uses_source for side in sides) else {"found_rate": Training.found_rate}
            trained = Training(**{"rate": _RATES[kind], **training, **same})
            for side in sides:
                side.recipe.check(dim)
        except EmbinitError as error:
            self._problems.add(self._where, str(error))
            return None
        decided = _DECIDED if dim is not None else (*_DECIDED, "dim")
        return (
            tuple(pair for pair in _held("model", vars(made)) if pair[0] not in decided),
            _held("training", vars(trained)),
        )


def _held(part: str, values: dict[str, Any]) -> Values:
    """Return the values that a spec holds, by name: not those that came later and are as if they had not."""
    later = {name for name in values if f"{part}.{name}" in LATER and values[name] == LATER[f"{part}.{name}"]}
    return tuple(sorted((name, value) for name, value in values.items() if name not in later))


def architecture(
    model: dict[str, Any], kind: str, dim: int | None, sizes: tuple[int, ...] | None = None
) -> Architecture:
    """Return the model that settings describe; sizes that are not known yet are made up, to check the rest."""
    vocabularies = sizes or ((8, 8) if kind == "translation" else (8,))
    heads = int(model.get("heads", Architecture.heads))
    made_up = max(64, int(model.get("position_dims", 0))) * max(1, heads)
    values = {**model, "dim": dim if dim is not None else made_up}
    return Architecture(task=kind, vocabularies=vocabularies, **values)  # type: ignore[arg-type]


def shared_dim(sources: dict[str, int | None], stated: int | None) -> int | None:
    """Return the dimension of a model and its sources, as far as it is known; an error if dimensions differ.

    >>> shared_dim({"glove": 300, "bert": None}, None)
    300
    """
    dims = {dim for dim in (*sources.values(), stated) if dim is not None}
    if len(dims) > 1:
        listed = ", ".join(f"{name} {dim}" for name, dim in sources.items() if dim is not None)
        own = "" if stated is None else f", model.dim {stated}"
        raise EmbinitError(f"the dimensions differ: {listed}{own}")
    return next(iter(dims), None)


def said_dim(tables: Any, name: str) -> int | None:
    """Return a source's dimension where the file says it; `tables` has the file's sources."""
    source = tables.sources.get(name)
    if source is None:
        return None
    if source.glove is not None:
        return int(source.glove.get("dim", GloveSettings.dim))
    return None if source.dim is None else int(source.dim)


def _has_test(task: TaskSettings) -> bool:
    if task.name not in known_tasks():
        return True
    return any("test" in layout or "all" in layout for layout in known_tasks()[task.name].layouts)
