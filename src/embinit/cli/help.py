"""What `--help` shows: commands in panels by task, and options with a placeholder for a value, flags with none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: The panels of `embinit --help` and their commands. A command that is not listed here goes into the last panel.
_PANELS = {
    "Check vectors and use them": ("inspect", "make", "apply", "extend"),
    "Compare starts on your task": ("new", "run", "report", "convert"),
    "Find, train and explore vectors": ("fetch", "glove", "recipes", "analogy", "demo"),
    "Manage data and runs": ("prepare", "status", "collect", "execute", "clean", "schema"),
}
_ORDER = [name for names in _PANELS.values() for name in names]
_PLACEHOLDERS: dict[Any, str] = {int: "N", float: "X"}


class DocumentedCommand(TyperCommand):
    """A command whose help shows placeholders instead of Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` included."""
        return _with_placeholders(super().get_params(ctx))


class DocumentedGroup(TyperGroup):
    """The commands of embinit, and the options of embinit itself."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of their panels."""
        return sorted(
            super().list_commands(ctx), key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER)
        )

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` included."""
        return _with_placeholders(super().get_params(ctx))


def panel(command: str) -> str:
    """Return the title of a command's panel in `embinit --help`.

    >>> panel("inspect")
    'Check vectors and use them'
    """
    return next((title for title, names in _PANELS.items() if command in names), list(_PANELS)[-1])


def _with_placeholders(parameters: Iterable[Any]) -> list[Any]:
    """Return the parameters; one without a placeholder gets one, where typer would print `<bool>` or `<int range>`."""
    named = list(parameters)
    for parameter in named:
        if parameter.param_type_name == "argument":
            vars(parameter)["display_type_rich"] = lambda ctx: None  # its name stands there already
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            parameter.metavar = _PLACEHOLDERS.get(annotation)
    return named
