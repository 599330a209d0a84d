"""A model as it was before an error: its modules, their hooks, its numbers and its settings."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from embinit.export.resize import set_token_layers, token_layers


@contextmanager
def restored_after_errors(model: Any) -> Iterator[None]:
    """Give a model back as it was if the block raises.

    The block may resize the model, set its token layers and its settings, freeze weights, and register hooks of modules.
    """
    modules = [(module, dict(vars(module)), _tables(module)) for module in model.modules()]
    tensors = [(tensor, tensor.data, tensor.requires_grad) for tensor in (*model.parameters(), *model.buffers())]
    settings = [(config, dict(vars(config))) for config in _configs(model)]
    layers = token_layers(model)
    try:
        yield
    except BaseException:
        for module, attributes, tables in modules:
            _refill(vars(module), attributes)
            for name, table in tables.items():
                _refill(attributes[name], table)
        for tensor, numbers, trained in tensors:
            tensor.data = numbers
            tensor.requires_grad_(trained)
        for config, values in settings:
            _refill(vars(config), values)
        set_token_layers(model, layers)
        raise


def _tables(module: Any) -> dict[str, dict[Any, Any]]:
    """Return copies of the dictionaries of a module: its parameters, buffers, parts and hooks."""
    # Subclasses, such as an output of transformers, may forbid changes.
    return {name: dict(value) for name, value in vars(module).items() if type(value) in (dict, OrderedDict)}


def _configs(model: Any) -> list[Any]:
    """Return the configs of a model and of its parts, and its generation config."""
    parts = [vars(module).get(name) for module in model.modules() for name in ("config", "generation_config")]
    parts.append(model.config.get_text_config())
    return list({id(config): config for config in parts if config is not None}.values())


def _refill(table: dict[Any, Any], content: dict[Any, Any]) -> None:
    """Give a dictionary its old content. It stays the same object, because others refer to it."""
    table.clear()
    table.update(content)
