"""Learning rates for whole embeddings: groups of weights for a torch optimizer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from embinit.errors import EmbinitError, require

if TYPE_CHECKING:
    import torch


def parameter_groups(
    model: torch.nn.Module, *layers: torch.nn.Module, lr: float, rate: float = 0.1
) -> list[dict[str, Any]]:
    """Return a model's weights as two groups for a torch optimizer: embeddings at `rate` times `lr`, other weights at `lr`.

    The group of other weights comes first, because many tools log the rate of the first group.

    Parameters
    ----------
    model
        Any torch model.
    layers
        The embedding layers; by default `model.get_input_embeddings()`, as Hugging Face's models have it. Name both
        embeddings of a model that has two. An output layer that is tied to one shares its weight, and so its rate.
    lr
        The learning rate of the other weights.
    rate
        The rate of the embeddings, relative to `lr`. For a rate by row, see `row_rates`.

    Returns
    -------
    list of dict
        Two parameter groups. Schedulers that scale the rate of each group keep the ratio. Schedulers that set it
        (OneCycleLR, CyclicLR, a floor) need one value for each group.

    Raises
    ------
    EmbinitError
        If a layer has no weights or is not a part of the model, or a rate is not a number of 0 or more.

    Examples
    --------
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
    embeddings = layers or (_input_embeddings(model),)
    rows = {id(weight): weight for layer in embeddings for weight in _weights(layer, torch)}
    if not rows.keys() <= {id(weight) for weight in model.parameters()}:
        raise EmbinitError(f"one of the layers is not a part of this {type(model).__name__}")
    others = [weight for weight in model.parameters() if id(weight) not in rows]
    return [{"params": others, "lr": lr}, {"params": list(rows.values()), "lr": lr * rate}]


def _check(name: str, value: Any) -> None:
    """Raise unless the value is a number of 0 or more; a tensor of one number is one."""
    try:
        valid = not isinstance(value, str) and math.isfinite(number := float(value)) and number >= 0
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise EmbinitError(f"{name} = {value!r}, but a number of 0 or more is expected")


def _input_embeddings(model: Any) -> Any:
    inner = getattr(model, "module", None)  # the model inside DataParallel and similar wrappers
    getter = getattr(model, "get_input_embeddings", getattr(inner, "get_input_embeddings", None))
    try:
        layer = None if getter is None else getter()
    except NotImplementedError:
        layer = None
    if layer is None:
        raise EmbinitError(
            f"{type(model).__name__} has no get_input_embeddings() that returns its embedding; name the layer: "
            "parameter_groups(model, model.embedding, lr=…)"
        )
    return layer


def _weights(layer: Any, torch: Any) -> list[Any]:
    if isinstance(layer, torch.nn.Parameter):
        return [layer]
    weights = list(layer.parameters()) if isinstance(layer, torch.nn.Module) else []
    if not weights:
        name = layer.__name__ if isinstance(layer, type) else type(layer).__name__
        raise EmbinitError(f"{name} is no layer with weights; name embedding layers as separate arguments")
    return weights
