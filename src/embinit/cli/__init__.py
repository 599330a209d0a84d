"""The command line: one small file a command."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from embinit.cli import (
    analogy,
    apply,
    clean,
    collect,
    convert,
    demo,
    execute,
    extend,
    fetch,
    glove,
    inspect,
    make,
    prepare,
    recipes,
    report,
    run,
    status,
)  # fmt: skip
from embinit.errors import EmbinitError
from embinit.format import printable

_NEWLINE = "\n"

app = typer.Typer(
    name="embinit",
    help="Put pre-trained vectors into a transformer's embedding layer so that they help.\n\n"
    "Vectors that are too large absorb the position encoding that is added to them, and the model does worse than with "
    "random ones. **inspect** tells before training, **make** writes the matrix to start from.",
    epilog="Start with: embinit inspect glove.6B.300d.txt --text train.en --tokenizer spacy:en --lower",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from embinit import __version__

        typer.echo(f"embinit {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as one that says so when Ctrl-C ends it; typer ends it without a word."""

    @wraps(command)
    def stoppable(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            raise typer.Exit(130) from None

    return stoppable


for module in (
    inspect, make, apply, extend, analogy, fetch, recipes, glove, prepare, run, status, report, clean, execute, collect,
    convert, demo,
):  # fmt: skip
    app.command(no_args_is_help=module.NEEDS_ARGUMENTS)(_stoppable(module.command))
    app.registered_commands[-1].name = module.__name__.rpartition(".")[2]


def main() -> None:
    """Run the command line; a wrong input is one sentence and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")  # a σ in a locale that has none becomes a ?
    try:
        _run()
    except EmbinitError as error:
        typer.echo(f"embinit: {printable(str(error), kept=_NEWLINE)}", err=True)
        sys.exit(2)
    except MemoryError as error:
        typer.echo(f"embinit: there is not enough memory for this{f': {error}' if str(error) else ''}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        typer.echo(f"embinit: {error.strerror or error}", err=True)
        sys.exit(2)


def _run() -> None:
    """Run the command and hand on all that it printed; a pipe that nobody reads any more is a BrokenPipeError again."""
    try:
        app()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer and rich have made exit code 1 of it
            raise ended.__context__ from None
        print(end="", flush=True)
        raise
