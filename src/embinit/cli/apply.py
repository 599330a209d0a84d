"""`embinit apply`: put a matrix into a Hugging Face model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    matrix: Annotated[
        str,
        typer.Argument(
            metavar="MATRIX", help="A matrix that `embinit make` wrote, or any source of vectors.", show_default=False
        ),
    ],
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="The folder of a Hugging Face model. It is not changed.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder to write. It must not exist yet.", show_default=False
        ),
    ],
    resize: Annotated[
        bool,
        typer.Option(
            "--resize",
            help="Give the model exactly the tokens of the matrix, in their order. Without --tokenizer the folder gets no "
            "tokenizer.",
        ),
    ] = False,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            "--tokenizer",
            metavar="FOLDER",
            help="With --resize: the tokenizer to save. Its tokens must be those of the matrix.",
            show_default=False,
        ),
    ] = None,
    recipe: shared.RecipeOrAdvised = "advised",
    fill: Annotated[
        str | None,
        typer.Option(
            "--fill",
            metavar="NAME",
            help="Also fill the rows of tokens that the source lacks: target, mean, zeros ... By default they keep the "
            "model's rows.",
            show_default=False,
        ),
    ] = None,
    task: shared.Task = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="NAME",
            help="The known model that yours is most like, if its type is not known.",
            show_default=False,
        ),
    ] = None,
    project: shared.Project = None,
    output_rows: Annotated[
        bool,
        typer.Option("--output-rows", help="Also put the rows into an output layer that has weights of its own."),
    ] = False,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Put vectors into a Hugging Face model, save the model, load it again and compare every row.

    A matrix that `embinit make` wrote goes in bit for bit. Any other source is aligned with the model's tokens and gets the
    recipe that `embinit inspect` advises for this model; --recipe pretrained keeps it raw. Special tokens, and tokens that
    the source lacks, keep the model's rows. A tied output layer changes with the embedding. In Python, embinit.initialize
    does the same for a model in memory.

    embinit apply embedding.safetensors my-model -o my-model-initialized
    """
    from embinit.cli.console import console, facts_table, print_json, print_warnings, working
    from embinit.export.models import apply
    from embinit.recipes.recipe import ADVISED
    from embinit.recipes.recipe import recipe as recipe_of

    if recipe != ADVISED or fill is not None:  # a misspelt recipe or fill is an error before anything is read
        recipe_of("pretrained" if recipe == ADVISED else recipe, fill)
    with working(f"writing {out}"):
        done = apply(
            matrix, model, out, resize=resize, tokenizer=tokenizer, recipe=recipe, fill=fill, task=task, seed=seed,
            host=like, output_rows=output_rows, project=project,  # type: ignore[arg-type]
        )  # fmt: skip
    if json:
        print_json({**done.as_dict(), "path": str(out)})
        return
    screen = console()
    print_warnings(screen, done.warnings)
    screen.print(facts_table(done.lines()))
    screen.print(f"saved, loaded again and compared bit for bit: {out}", markup=False, soft_wrap=True)
