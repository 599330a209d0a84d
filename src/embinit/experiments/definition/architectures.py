"""The model of a run: its dimension, from the sources or the file, and its settings with every default."""

from __future__ import annotations

from typing import Any, TypeAlias

from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import Draft
from embinit.experiments.definition.sections import Tables
from embinit.experiments.spec import LATER
from embinit.models.architecture import Architecture, default_heads

#: Settings with their values, by name.
Values: TypeAlias = tuple[tuple[str, Any], ...]


def recorded(part: str, values: dict[str, Any]) -> Values:
    """Return the values that a spec records; settings of LATER are left out at the value that LATER states."""
    later = {name for name in values if f"{part}.{name}" in LATER and values[name] == LATER[f"{part}.{name}"]}
    return tuple(sorted((name, value) for name, value in values.items() if name not in later))


def architecture(
    model: dict[str, Any], kind: str, dim: int | None, sizes: tuple[int, ...] | None = None
) -> Architecture:
    """Return the model that settings describe. Unknown sizes get a placeholder, so that the rest can be checked."""
    vocabularies = sizes or ((8, 8) if kind == "translation" else (8,))
    heads = int(model.get("heads", Architecture.heads))
    if dim is None:
        dim = max(64, int(model.get("position_dims", 0))) * max(1, heads)
    values = {"heads": default_heads(dim), **model, "dim": dim}
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


def stated_dim(tables: Tables | Draft, name: str) -> int | None:
    """Return a source's dimension if the file states it; `tables` has the file's sources."""
    source = tables.sources.get(name)
    if source is None:
        return None
    if source.glove is not None:
        return source.glove.dim
    return source.dim
