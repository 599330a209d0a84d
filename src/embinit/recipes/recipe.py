"""Recipes: a sequence of steps and a fill, from a name, a text, a TOML file or Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embinit.display import Panel
from embinit.errors import EmbinitError, closest
from embinit.files import read_toml
from embinit.recipes.fills import FILLS
from embinit.recipes.names import named_recipes
from embinit.recipes.steps import DIMENSION_COUNTS, STEPS, Context, check_count, parse_parameters
from embinit.types import Aligned, Matrix, check_aligned

#: Stands for the recipe that a diagnosis advises; only commands that measure the vectors take it.
ADVISED = "advised"


@dataclass(frozen=True)
class Step:
    """One step with its parameters."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.parameters)])


@dataclass(frozen=True)
class Recipe:
    """Steps and a fill. A call makes the matrix; equal recipes, seeds and inputs give equal bits."""

    name: str
    steps: tuple[Step, ...]
    fill: str = "target"

    def __post_init__(self) -> None:
        if not self.steps:
            raise EmbinitError(f"recipe {self.name!r} has no steps")
        if not isinstance(self.fill, str) or self.fill not in FILLS:
            raise EmbinitError(f"unknown fill {self.fill!r}{closest(str(self.fill), FILLS)}")
        for place, step in enumerate(self.steps):
            parse_parameters(step.name, dict(step.parameters))
            if STEPS[step.name].first != (place == 0):
                first_steps = ", ".join(name for name, kind in STEPS.items() if kind.first)
                rule = "must come first" if place else f"cannot come first; begin with one of {first_steps}"
                raise EmbinitError(f"recipe {self.name!r}: {step.name} {rule}")
        names = [step.name for step in self.steps]
        for name in names[names.index("free") + 1 :] if "free" in names else ():
            if not STEPS[name].keeps_zeros:
                allowed = " and ".join(name for name, kind in STEPS.items() if kind.keeps_zeros)
                raise EmbinitError(
                    f"recipe {self.name!r}: {name} must come before free; only {allowed} may come after it"
                )

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))

    def __repr__(self) -> str:
        return f"Recipe({self.name!r}: {self}, fill={self.fill!r})"

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary: each step with its effect."""
        steps = [(str(step), STEPS[step.name].about.replace("`", "")) for step in self.steps]
        return Panel(f"Recipe {self.name}", [*steps, ("missing rows", f"filled by {self.fill}")])

    @property
    def uses_source(self) -> bool:
        """Return whether the matrix holds rows of the source; otherwise all rows are random."""
        return self.steps[0].name == "pretrained"

    @property
    def keeps_meaning(self) -> bool:
        """Return whether each found token has its own row of the source, not a random row or that of another token.

        >>> recipe("pretrained | shuffle axes=columns").keeps_meaning, recipe("pretrained_shuffled").keeps_meaning
        (True, False)
        """
        axes = [dict(step.parameters).get("axes") for step in self.steps if step.name == "shuffle"]
        return self.uses_source and all(axis == "columns" for axis in axes)

    @property
    def free_columns(self) -> int:
        """Return the number of columns at the end that hold zeros in all rows, for positions."""
        return sum(
            parse_parameters(step.name, dict(step.parameters))["dims"] for step in self.steps if step.name == "free"
        )

    def check(self, dim: int | None) -> None:
        """Raise EmbinitError if a step does not fit this dimension; None if the dimension is not known yet."""
        for step in self.steps:
            parameter = DIMENSION_COUNTS[step.name][0] if step.name in DIMENSION_COUNTS else ""
            count = dict(step.parameters).get(parameter)
            if count is not None:
                check_count(step.name, parse_parameters(step.name, {parameter: count})[parameter], dim)

    def __call__(self, aligned: Aligned, rng: np.random.Generator, host: Any = None) -> Matrix:
        """Return the matrix, with a row for each token of the vocabulary.

        Parameters
        ----------
        aligned
            The rows of a source in vocabulary order, from `align`.
        rng
            The generator that random steps and the fill draw from.
        host
            The model that the matrix is made for: anything that `host` takes. Only `scale to=host` and `scale ratio=`
            need it.

        Returns
        -------
        Matrix
            float32 numbers of shape (tokens, dimensions).

        Raises
        ------
        EmbinitError
            If no token was found, a step does not fit the rows or the host, or a step needs a host and none is given.

        Examples
        --------
        >>> recipe("pretrained_xavier")(aligned, embinit.stream(0, "matrix"))       # doctest: +SKIP
        """
        check_aligned(aligned, "a recipe")
        if not isinstance(rng, np.random.Generator):
            raise EmbinitError(f'a recipe takes a random generator, not {rng!r}; give embinit.stream(0, "matrix")')
        if host is not None:
            from embinit.hosts import (
                host as find_host,  # it reads checkpoints, which the text of a recipe does not need
            )

            host = find_host(host)
        # Each step has a stream of its own, so that its draws do not depend on those of other steps.
        fill_rng, *step_rngs = rng.spawn(len(self.steps) + 1)
        rows: Matrix | None = None
        for step, step_rng in zip(self.steps, step_rngs, strict=True):
            kind = STEPS[step.name]
            context = Context(aligned, host, step_rng)
            values = parse_parameters(step.name, dict(step.parameters))
            with np.errstate(over="ignore", invalid="ignore"):  # the check below names the step
                rows = kind.function(context, **values) if rows is None else kind.function(rows, context, **values)
            self._check_finite(rows, f"the step {step.name}")
        assert rows is not None
        if not self.uses_source or aligned.found.all():
            return rows
        return self._filled(rows, aligned, fill_rng)

    def _filled(self, rows: Matrix, aligned: Aligned, rng: np.random.Generator) -> Matrix:
        """Return the matrix of the found rows and of filled rows for the missing tokens."""
        matrix = np.zeros((len(aligned), rows.shape[1]), dtype=np.float32)
        matrix[aligned.found] = rows
        # The fill sees and fills only the used columns, so that its rows have the σ and the length of the found rows.
        used = rows.shape[1] - self.free_columns
        with np.errstate(over="ignore", invalid="ignore"):
            filled = FILLS[self.fill](rows[:, :used], aligned.vocabulary, aligned.found, rng)
        self._check_finite(filled, f"the fill {self.fill}")
        matrix[~aligned.found, :used] = filled
        return matrix

    def _check_finite(self, rows: Matrix, maker: str) -> None:
        if not np.isfinite(rows).all():
            raise EmbinitError(
                f"recipe {self}: {maker} gave NaN or infinite numbers; float32 holds numbers up to 3.4e38"
            )


def recipe(spec: str | Path | Recipe, fill: str | None = None) -> Recipe:
    """Return the recipe of a text: a name, steps (`pretrained | center | scale ratio=0.4`), or `FILE.toml::NAME`.

    >>> str(recipe("pretrained_xavier"))
    'pretrained | center | scale to=xavier'
    """
    if isinstance(spec, Recipe):
        return spec if fill is None else Recipe(spec.name, spec.steps, fill)
    text = str(spec).strip()
    if not text:
        raise EmbinitError(
            f"the recipe is empty{closest(text, named_recipes())}, or write steps: 'pretrained | center'"
        )
    if text == ADVISED:
        raise EmbinitError(
            "the recipe 'advised' depends on the vectors and the model, so only `embinit make` and `embinit apply` take it; "
            "in Python, call embinit.diagnose(aligned, host=…).verdict.matrix(aligned)"
        )
    if text in named_recipes():
        return Recipe(text, _parse_steps(named_recipes()[text]["steps"]), fill or "target")
    if text.partition("::")[0].endswith(".toml"):
        return read_recipe(text, fill)
    if "|" not in text and text.partition(" ")[0] not in STEPS:
        raise EmbinitError(f"unknown recipe {text!r}{closest(text, named_recipes())}")
    return Recipe(text, _parse_steps(text), fill or "target")


def read_recipe(spec: str, fill: str | None = None) -> Recipe:
    """Return a recipe from a TOML file: `[mine]`, `steps = ["pretrained", {scale = {ratio = 0.4}}]`, `fill = "mean"`."""
    file, _, name = spec.partition("::")
    content = read_toml(Path(file))
    inner = content.get("recipes")
    content = inner if isinstance(inner, dict) else content
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    if not name and len(tables) == 1:
        name = next(iter(tables))
    if name not in tables:
        raise EmbinitError(f"{file} has no recipe {name!r}{closest(name, tables)}; write {file}::NAME")
    table = tables[name]
    for key in table:
        if key not in ("steps", "fill", "about"):
            raise EmbinitError(f"{file}, {name}: unknown key {key!r}{closest(key, ('steps', 'fill', 'about'))}")
    if not isinstance(table.get("steps"), str | list) or not table["steps"]:
        raise EmbinitError(f"{file}, {name}: steps must be a text or a list")
    try:
        steps = _parse_steps(steps_text(table["steps"]))
    except EmbinitError as error:
        raise EmbinitError(f"{file}, {name}: {error}") from None
    return Recipe(name, steps, fill or table.get("fill", "target"))


def steps_text(steps: Any) -> Any:
    """Return the steps of a TOML table as one text; a value that is neither a text nor a list comes back unchanged.

    >>> steps_text(["pretrained", {"scale": {"ratio": 0.4}}])
    'pretrained | scale ratio=0.4'
    """
    return " | ".join(map(_step_text, steps)) if isinstance(steps, list) else steps


def _step_text(step: Any) -> str:
    if isinstance(step, str):
        return step
    if isinstance(step, dict) and len(step) == 1:
        ((name, values),) = step.items()
        if isinstance(values, dict):
            return " ".join([name, *(f"{key}={value}" for key, value in values.items())])
    raise EmbinitError(f"a step is a name or {{name = {{parameter = value}}}}, not {step!r}")


def _parse_steps(text: str) -> tuple[Step, ...]:
    steps = []
    for part in text.split("|"):
        name, *pairs = part.split() or [""]
        if not name:
            raise EmbinitError(f"recipe {text!r} has an empty step")
        values = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals:
                raise EmbinitError(f"recipe {text!r}: {pair!r} is not a parameter; write NAME=VALUE")
            values[key] = value
        steps.append(Step(name, tuple(parse_parameters(name, values).items())))
    return tuple(steps)
