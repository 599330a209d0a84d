"""Rows that learn at a rate of their own: groups of weights for a torch optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embinit.errors import EmbinitError, require

if TYPE_CHECKING:
    import torch


def parameter_groups(
    model: torch.nn.Module, *layers: torch.nn.Module, lr: float, rate: float = 0.1
) -> list[dict[str, Any]]:
    """Return a model's weights in two groups for a torch optimizer: embedding rows at `rate` times `lr`, the others at `lr`.

    Without `layers` the rows are those of `model.get_input_embeddings()`, as Hugging Face's models have it. An output layer
    that is tied to them shares their weight, and so their rate. Schedulers keep the ratio, for they scale each group's own.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 2))
    >>> rows, others = parameter_groups(model, model[0], lr=1e-3)
    >>> rows["lr"], others["lr"]
    (0.0001, 0.001)
    """
    torch = require("torch", "train", "a rate for the rows")
    if not isinstance(model, torch.nn.Module):
        raise EmbinitError(f"parameter_groups(model, …) takes a torch.nn.Module, not {type(model).__name__}")
    if rate < 0:
        raise EmbinitError(f"rate = {rate}: rows learn at 0 (not at all) or more times the other weights' rate")
    rows = {id(weight): weight for layer in layers or _input_embeddings(model) for weight in _weights(layer)}
    own = {id(weight) for weight in model.parameters()}
    if not rows.keys() <= own:
        raise EmbinitError(f"the layer is not a part of this {type(model).__name__}: none of its steps would reach it")
    others = [weight for weight in model.parameters() if id(weight) not in rows]
    return [{"params": list(rows.values()), "lr": lr * rate}, {"params": others, "lr": lr}]


def _input_embeddings(model: Any) -> list[Any]:
    try:
        found = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        found = None
    if found is None:
        raise EmbinitError(
            f"{type(model).__name__} has no get_input_embeddings(); name the layer: "
            "parameter_groups(model, model.embedding, lr=…)"
        )
    return [found]


def _weights(layer: Any) -> list[Any]:
    weights = list(layer.parameters()) if hasattr(layer, "parameters") else []
    if not weights:
        raise EmbinitError(f"{type(layer).__name__} has no weights; give the embedding layer, a torch.nn.Embedding")
    return weights
