"""Rows that learn at a rate of their own: groups of weights for a torch optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from embinit.errors import EmbinitError, require

if TYPE_CHECKING:
    import torch


def parameter_groups(
    model: torch.nn.Module, *layers: torch.nn.Module, lr: float, rate: float = 0.1
) -> list[dict[str, Any]]:
    """Return a model's weights in two groups for a torch optimizer: embedding rows at `rate` times `lr`, the others at `lr`.

    The others come first, for tools log the first group's rate. Without `layers` the rows are those of
    `model.get_input_embeddings()`, as Hugging Face's models have it: of a model with two embeddings name both. An output
    layer that is tied to them shares their weight, and so their rate. Schedulers that scale each group's rate keep the
    ratio; those that set it (OneCycleLR, CyclicLR, a floor) take one for each group.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
    >>> others, rows = parameter_groups(model, model[0], lr=1e-3)
    >>> others["lr"], rows["lr"]
    (0.001, 0.0001)
    """
    torch = require("torch", "train", "a rate for the rows")
    if not isinstance(model, torch.nn.Module):
        raise EmbinitError(f"parameter_groups(model, …) takes a torch.nn.Module, not {type(model).__name__}")
    for name, value in (("lr", lr), ("rate", rate)):
        _check(name, value)
    found = [_weights(layer, torch) for layer in layers] or [_weights(_input_embeddings(model), torch)]
    rows = {id(weight): weight for weights in found for weight in weights}
    if not rows.keys() <= {id(weight) for weight in model.parameters()}:
        raise EmbinitError(f"a layer that was given is not a part of this {type(model).__name__}")
    others = [weight for weight in model.parameters() if id(weight) not in rows]
    return [{"params": others, "lr": lr}, {"params": list(rows.values()), "lr": lr * rate}]


def _check(name: str, value: Any) -> None:
    """Raise where it is no number (a tensor of one is) from zero on."""
    try:
        sound = not isinstance(value, str) and math.isfinite(number := float(value)) and number >= 0
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise EmbinitError(f"{name} = {value!r}, but a number of 0 or more is expected")


def _input_embeddings(model: Any) -> Any:
    inside = getattr(model, "module", None)  # DataParallel and its kind
    asked = getattr(model, "get_input_embeddings", getattr(inside, "get_input_embeddings", None))
    try:
        found = None if asked is None else asked()
    except NotImplementedError:
        found = None
    if found is None:
        raise EmbinitError(
            f"{type(model).__name__} does not tell its embedding by get_input_embeddings(); name the layer: "
            "parameter_groups(model, model.embedding, lr=…)"
        )
    return found


def _weights(layer: Any, torch: Any) -> list[Any]:
    if isinstance(layer, torch.nn.Parameter):
        return [layer]
    weights = list(layer.parameters()) if isinstance(layer, torch.nn.Module) else []
    if not weights:
        what = layer.__name__ if isinstance(layer, type) else type(layer).__name__
        raise EmbinitError(f"{what} is no layer with weights; name embedding layers, one after the other")
    return weights
