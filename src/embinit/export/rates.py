"""Learning rates for whole embeddings: groups of weights for a torch optimizer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from embinit.errors import EmbinitError, require

if TYPE_CHECKING:
    import torch

#: Names of weights that transformers' Trainer does not decay (`Trainer.get_decay_parameter_names`).
_EXEMPT = re.compile(r"bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)")


def parameter_groups(
    model: torch.nn.Module,
    *layers: torch.nn.Module,
    lr: float,
    rate: float = 0.1,
    weight_decay: float | None = None,
) -> list[dict[str, Any]]:
    """Return a model's weights as groups for a torch optimizer: embeddings at `rate` times `lr`, other weights at `lr`.

    Biases and norms form a group without weight decay, as `transformers.Trainer` has it. The group of other weights comes
    first, because many tools log the rate of the first group, and the group of the embeddings last.

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
    weight_decay
        The decay of AdamW for all weights but biases and norms. By default it is that of the optimizer.

    Returns
    -------
    list of dict
        Two or three parameter groups; the group of biases and norms is missing if the model has none.

    Raises
    ------
    EmbinitError
        If a layer has no weights or is not a part of the model, or a number is not 0 or more.

    Notes
    -----
    Schedulers that multiply the rate of each group keep the ratio: linear and cosine schedules, with or without warm-up, as
    `transformers.get_scheduler` makes them. Schedulers that set it (OneCycleLR, CyclicLR, a floor) need one value for each
    group: `max_lr=[group["lr"] for group in optimizer.param_groups]`. AdamW multiplies the decay by the rate of the group,
    so slow rows decay slowly too.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
    >>> others, exempt, rows = parameter_groups(model, model[0], lr=1e-3, weight_decay=0.01)
    >>> others["lr"], rows["lr"]
    (0.001, 0.0001)
    >>> others["weight_decay"], exempt["weight_decay"]
    (0.01, 0.0)
    """
    torch = require("torch", "train", "a rate for the rows")
    if not isinstance(model, torch.nn.Module):
        raise EmbinitError(f"parameter_groups(model, …) takes a torch.nn.Module, not {type(model).__name__}")
    for name, value in (("lr", lr), ("rate", rate), ("weight_decay", weight_decay)):
        if name != "weight_decay" or value is not None:
            _check(name, value)
    embeddings = layers or (_input_embeddings(model),)
    rows = {id(weight): weight for layer in embeddings for weight in _weights(layer, torch)}
    if not rows.keys() <= {id(weight) for weight in model.parameters()}:
        raise EmbinitError(f"one of the layers is not a part of this {type(model).__name__}")
    exempt = {id(weight): weight for weight in _without_decay(model) if id(weight) not in rows}
    others = [weight for weight in model.parameters() if id(weight) not in rows and id(weight) not in exempt]
    decay = {} if weight_decay is None else {"weight_decay": weight_decay}
    groups: list[dict[str, Any]] = [
        {"params": others, "lr": lr, **decay},
        {"params": list(exempt.values()), "lr": lr, "weight_decay": 0.0},
        {"params": list(rows.values()), "lr": lr * rate, **decay},
    ]
    return [group for group in groups if group["params"]]


def _without_decay(model: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """Yield the biases and the weights of norms: by their names, as Trainer finds them, and by the names of their layers."""
    for prefix, module in model.named_modules():
        is_norm = "norm" in type(module).__name__.lower()
        for name, weight in module.named_parameters(prefix, recurse=is_norm):
            if is_norm or _EXEMPT.search(name.lower()):
                yield weight


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
