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
            help="Give the model exactly the tokens of the matrix, in their order. The tokenizer is left out.",
        ),
    ] = False,
    json: shared.Json = False,
) -> None:
    """Put a matrix into a Hugging Face model, save the model, load it again and compare every row.

    Rows are matched by token. The rows of tokens that the model's tokenizer knows are replaced; special tokens keep their
    rows. A tied output layer changes with the embedding, an untied one stays as it is. In Python, embinit.set_embedding
    does the same for any nn.Embedding.

    embinit apply embedding.safetensors my-model -o my-model-initialized
    """
    from dataclasses import asdict

    from embinit.cli.console import console, print_json, working
    from embinit.export.models import apply
    from embinit.format import plural
    from embinit.sources.load import load

    with working(f"reading {matrix}"):
        embeddings = load(matrix)
    with working(f"writing {out}"):
        applied = apply(embeddings, model, out, resize=resize)
    if json:
        print_json({**asdict(applied), "path": str(out)})
        return
    screen = console()
    size = " (the new size of the model)" if applied.resized else ""
    output = "the tied output layer changed with them" if applied.tied else "the output layer is not tied to them"
    screen.print(f"replaced: {applied.replaced:,} of {applied.rows:,} rows{size}; {output}")
    screen.print(f"kept: {applied.specials_kept:,} special rows, {applied.others_kept:,} rows that the matrix lacks")
    if applied.missing:
        tensors = plural(applied.missing, "tensor")
        screen.print(f"note: {model} lacks {tensors}, which transformers initialized at random", markup=False)
    if applied.resized:
        screen.print("left out: the tokenizer, because its tokens are not the model's any more (tokens.json has them)")
    if applied.unused:
        screen.print(f"not used: {plural(applied.unused, 'token')} of the matrix that the model's tokenizer lacks")
    screen.print(f"saved, loaded again and compared bit for bit: {out}", markup=False, soft_wrap=True)
