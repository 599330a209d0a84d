"""The command line: one small file a command."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from embinit.cli.help import DocumentedGroup
from embinit.errors import EmbinitError
from embinit.format import printable

_NEWLINE = "\n"

_HELP = """Put pre-trained vectors into a transformer's embedding layer so that they help.

Vectors that are too large hide the position encoding that is added to them, and the model does worse than with random
ones. embinit finds this before training, writes a matrix to start from, and compares starts on your task."""

_EPILOG = """The usual path:

1. `embinit inspect glove.txt --text train.en` measures the vectors and advises a recipe.

2. `embinit make glove.txt --text train.en -o matrix.safetensors` writes the matrix. In Python,
   `embinit.initialize(model, tokenizer, "glove.txt")` puts it into a model.

3. `embinit new my.toml --source-text train.de --target-text train.en --vectors glove.txt` writes an experiment on your
   own text.

4. `embinit run my.toml` trains every start with every seed.

5. `embinit report my.toml` answers which start is best, and how certain that is."""

app = typer.Typer(
    name="embinit",
    cls=DocumentedGroup,
    help=_HELP,
    epilog=_EPILOG,
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


def main() -> None:
    """Run the command line; a wrong input is one sentence and exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")  # prints ? for a σ that the locale lacks
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
    """Run the command and flush its output; raise BrokenPipeError if the reader of the pipe is gone."""
    try:
        app()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer and rich turn it into exit code 1
            raise ended.__context__ from None
        print(end="", flush=True)
        raise
