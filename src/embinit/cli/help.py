"""The commands and their help: panels by task, and placeholders for the values of options but not for flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import cache, wraps
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

#: The panels of `embinit --help` and their commands: the modules of this folder with a function `command`.
_PANELS = {
    "Check vectors and use them": ("inspect", "make", "apply", "extend"),
    "Compare starts on your task": ("new", "run", "report", "convert"),
    "Find, train and explore vectors": ("fetch", "glove", "recipes", "analogy", "demo"),
    "Manage data and runs": ("prepare", "status", "collect", "execute", "clean", "schema"),
}
_ORDER = [name for names in _PANELS.values() for name in names]
_FIXED = "a command is a module of embinit.cli that _PANELS names"
_PLACEHOLDERS: dict[Any, str] = {int: "N", float: "X"}


class DocumentedCommand(TyperCommand):
    """A command whose help shows placeholders instead of Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` included."""
        return _with_placeholders(super().get_params(ctx))


class DocumentedGroup(TyperGroup):
    """The commands of embinit, and the options of embinit itself."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands in the order of their panels."""
        return list(self.commands)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` included."""
        return _with_placeholders(super().get_params(ctx))


class Commands(MutableMapping[str, Any]):
    """All commands by name, in the order of their panels. The module of a command is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in _ORDER:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_ORDER)

    def __len__(self) -> int:
        return len(_ORDER)

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(_FIXED)

    def __delitem__(self, name: str) -> None:
        raise TypeError(_FIXED)


@cache
def _command(name: str) -> Any:
    module = import_module(f"embinit.cli.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    add = single.command(
        name, cls=DocumentedCommand, no_args_is_help=module.NEEDS_ARGUMENTS, rich_help_panel=panel(name)
    )
    add(_stoppable(module.command))
    return typer.main.get_command(single)


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with a message when Ctrl-C ends it; typer prints none."""

    @wraps(command)
    def stoppable(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            raise typer.Exit(130) from None

    return stoppable


def panel(command: str) -> str:
    """Return the title of a command's panel in `embinit --help`.

    >>> panel("inspect")
    'Check vectors and use them'
    """
    return next((title for title, names in _PANELS.items() if command in names), list(_PANELS)[-1])


def _with_placeholders(parameters: Iterable[Any]) -> list[Any]:
    """Return the parameters with a placeholder each, so that typer does not print `<bool>` or `<int range>`."""
    named = list(parameters)
    for parameter in named:
        if parameter.param_type_name == "argument":
            vars(parameter)["display_type_rich"] = lambda ctx: None  # the placeholder is there already
        elif parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
            parameter.metavar = _PLACEHOLDERS.get(annotation)
    return named
