"""A model as it was before an error: its modules, its numbers and its settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from embinit.export.resize import set_token_layers, token_layers

_TABLES = ("_parameters", "_buffers", "_modules")


@contextmanager
def restored_after_errors(model: Any) -> Iterator[None]:
    """Give a model back as it was if the block raises. The block may resize it, set its token layers and its settings."""
    modules = [
        (module, dict(vars(module)), {name: dict(getattr(module, name)) for name in _TABLES})
        for module in model.modules()
    ]
    tensors = [(tensor, tensor.data) for tensor in (*model.parameters(), *model.buffers())]
    settings = [(config, dict(vars(config))) for config in _configs(model)]
    layers = token_layers(model)
    try:
        yield
    except BaseException:
        for module, attributes, tables in modules:
            _refill(vars(module), attributes)
            for name, table in tables.items():
                _refill(attributes[name], table)
        for tensor, numbers in tensors:
            tensor.data = numbers
        for config, values in settings:
            _refill(vars(config), values)
        set_token_layers(model, layers)
        raise


def _configs(model: Any) -> list[Any]:
    """Return the configs of a model and of its parts, and its generation config."""
    parts = [vars(module).get(name) for module in model.modules() for name in ("config", "generation_config")]
    parts.append(model.config.get_text_config())
    return list({id(config): config for config in parts if config is not None}.values())


def _refill(table: dict[str, Any], content: dict[str, Any]) -> None:
    """Give a dictionary its old content. It stays the same object, because others refer to it."""
    table.clear()
    table.update(content)
