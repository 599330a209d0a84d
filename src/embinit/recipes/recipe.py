"""A recipe: steps in a row and a fill, from a name, a line of text, TOML or Python."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from embinit.errors import EmbinitError, closest
from embinit.hosts import host as known_host
from embinit.recipes.fills import FILLS
from embinit.recipes.steps import COUNTS, STEPS, Context, check_count, checked
from embinit.types import Aligned, Host, Matrix, check_aligned


@dataclass(frozen=True)
class Step:
    """One step with its parameters."""

    name: str
    parameters: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.parameters)])


@dataclass(frozen=True)
class Recipe:
    """Steps and a fill; calling it makes the matrix. Equal recipes, seeds and inputs give equal bits."""

    name: str
    steps: tuple[Step, ...]
    fill: str = "target"

    def __post_init__(self) -> None:
        if not self.steps:
            raise EmbinitError(f"recipe {self.name!r} has no steps")
        if not isinstance(self.fill, str) or self.fill not in FILLS:
            raise EmbinitError(f"unknown fill {self.fill!r}{closest(str(self.fill), FILLS)}")
        for place, step in enumerate(self.steps):
            checked(step.name, dict(step.parameters))
            if STEPS[step.name].base != (place == 0):
                bases = ", ".join(name for name, kind in STEPS.items() if kind.base)
                where = "must come first" if place else f"cannot come first; begin with one of {bases}"
                raise EmbinitError(f"recipe {self.name!r}: {step.name} {where}")
        names = [step.name for step in self.steps]
        for name in names[names.index("free") + 1 :] if "free" in names else ():
            if not STEPS[name].keeps_zeros:
                others = " and ".join(name for name, kind in STEPS.items() if kind.keeps_zeros)
                raise EmbinitError(f"recipe {self.name!r}: {name} must come before free; after it, only {others}")

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))

    @property
    def uses_source(self) -> bool:
        """Return whether the matrix holds the source's rows, and not random ones."""
        return self.steps[0].name == "pretrained"

    @property
    def keeps_meaning(self) -> bool:
        """Return whether each token has the source's own row, and not a random one or another token's.

        >>> recipe("pretrained | shuffle axes=columns").keeps_meaning, recipe("pretrained_shuffled").keeps_meaning
        (True, False)
        """
        axes = [dict(step.parameters).get("axes") for step in self.steps if step.name == "shuffle"]
        return self.uses_source and all(axis == "columns" for axis in axes)

    @property
    def freed(self) -> int:
        """Return how many of the last columns are left to positions: zeros in every row."""
        return sum(checked(step.name, dict(step.parameters))["dims"] for step in self.steps if step.name == "free")

    def check(self, dim: int | None) -> None:
        """Raise where a step cannot be taken in so many dimensions, before there are rows; None: they are not known yet."""
        for step in self.steps:
            parameter = COUNTS[step.name][0] if step.name in COUNTS else ""
            count = dict(step.parameters).get(parameter)
            if count is not None:
                check_count(step.name, checked(step.name, {parameter: count})[parameter], dim)

    def __call__(self, aligned: Aligned, rng: np.random.Generator, host: Host | str | Path = "tutorial") -> Matrix:
        """Return the matrix, a row for each token of the vocabulary."""
        check_aligned(aligned, "a recipe")
        if not isinstance(rng, np.random.Generator):
            raise EmbinitError(f'a recipe draws from a generator, not from {rng!r}: embinit.stream(0, "matrix")')
        host = host if isinstance(host, Host) else known_host(host)
        # A stream of its own for each: what one draws does not depend on what another drew.
        filling, *streams = rng.spawn(len(self.steps) + 1)
        rows: Matrix | None = None
        for step, stream in zip(self.steps, streams, strict=True):
            kind = STEPS[step.name]
            context = Context(aligned, host, stream)
            values = checked(step.name, dict(step.parameters))
            rows = kind.function(context, **values) if rows is None else kind.function(rows, context, **values)
            if not np.isfinite(rows).all():
                raise EmbinitError(f"recipe {self} gave numbers that are NaN or infinite: {step.name}")
        assert rows is not None
        if not self.uses_source or aligned.found.all():
            return rows
        matrix = np.zeros((len(aligned), rows.shape[1]), dtype=np.float32)
        matrix[aligned.found] = rows
        # A fill sees, and fills, the columns that are used: its rows are then as wide there, and as long, as the found.
        used = rows.shape[1] - self.freed
        filled = FILLS[self.fill](rows[:, :used], aligned.vocabulary, aligned.found, filling)
        matrix[~aligned.found, :used] = filled
        return matrix


@cache
def named() -> dict[str, dict[str, str]]:
    """Return the recipes known by name, with what they are and where the paper has them."""
    return tomllib.loads(resources.files("embinit.recipes").joinpath("named.toml").read_text("utf-8"))


def recipe(spec: str | Path | Recipe, fill: str | None = None) -> Recipe:
    """Return the recipe that a text means: a name, steps (`pretrained | center | scale ratio=0.4`), or `FILE.toml::NAME`.

    >>> str(recipe("pretrained_xavier"))
    'pretrained | center | scale to=xavier'
    """
    if isinstance(spec, Recipe):
        return spec if fill is None else Recipe(spec.name, spec.steps, fill)
    text = str(spec).strip()
    if not text:
        raise EmbinitError(f"the recipe is empty{closest(text, named())}, or steps such as 'pretrained | center'")
    if text in named():
        return Recipe(text, _steps(named()[text]["steps"]), fill or "target")
    if text.partition("::")[0].endswith(".toml"):
        return from_toml(text, fill)
    if "|" not in text and text.partition(" ")[0] not in STEPS:
        raise EmbinitError(f"unknown recipe {text!r}{closest(text, named())}")
    return Recipe(text, _steps(text), fill or "target")


def from_toml(spec: str, fill: str | None = None) -> Recipe:
    """Return a recipe of a TOML file: `[mine]`, `steps = ["pretrained", {scale = {ratio = 0.4}}]`, `fill = "mean"`."""
    file, _, name = spec.partition("::")
    try:
        content = tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise EmbinitError(f"cannot read {file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EmbinitError(f"{file} is not TOML: {error}") from None
    inner = content.get("recipes")
    content = inner if isinstance(inner, dict) else content
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    if not name and len(tables) == 1:
        name = next(iter(tables))
    if name not in tables:
        raise EmbinitError(f"{file} has no recipe {name!r}{closest(name, tables)}; give {file}::NAME")
    table = tables[name]
    for key in table:
        if key not in ("steps", "fill", "about"):
            raise EmbinitError(f"{file}, {name}: unknown key {key!r}{closest(key, ('steps', 'fill', 'about'))}")
    steps = table.get("steps")
    if isinstance(steps, str):
        parsed = _steps(steps)
    elif isinstance(steps, list) and steps:
        parsed = tuple(step for part in steps for step in _steps_of(part, f"{file}, {name}"))
    else:
        raise EmbinitError(f"{file}, {name}: steps must be a text or a list")
    return Recipe(name, parsed, fill or table.get("fill", "target"))


def _steps_of(part: Any, where: str) -> tuple[Step, ...]:
    if isinstance(part, str):
        return _steps(part)
    if isinstance(part, dict) and len(part) == 1:
        ((name, values),) = part.items()
        if isinstance(values, dict):
            return (Step(name, tuple(checked(name, values).items())),)
    raise EmbinitError(f"{where}: a step is a name or {{name = {{parameter = value}}}}, not {part!r}")


def _steps(text: str) -> tuple[Step, ...]:
    steps = []
    for part in text.split("|"):
        name, *pairs = part.split() or [""]
        if not name:
            raise EmbinitError(f"recipe {text!r} has an empty step")
        values = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals:
                raise EmbinitError(f"recipe {text!r}: {pair!r} is no parameter; write NAME=VALUE")
            values[key] = value
        steps.append(Step(name, tuple(checked(name, values).items())))
    return tuple(steps)
