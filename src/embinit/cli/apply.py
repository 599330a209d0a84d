"""`embinit apply`: a matrix into a model's folder."""

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
            metavar="MATRIX", help="What `embinit make` wrote, or any source of vectors.", show_default=False
        ),
    ],
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A Hugging Face model's folder; it is not changed.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="The new folder to write.", show_default=False)
    ],
    resize: Annotated[
        bool, typer.Option("--resize", help="Give the model exactly the matrix's tokens, in their order.")
    ] = False,
    json: shared.Json = False,
) -> None:
    """Put a matrix into a Hugging Face model, save it, load it again and compare every row.

    Rows go by token: those that the model's tokenizer knows are replaced, special tokens keep theirs. Tied output layers
    follow; untied ones stay. In Python, embinit.set_embedding does it for any nn.Embedding.

    embinit apply embedding.safetensors my-model -o my-model-initialized
    """
    from dataclasses import asdict

    from embinit.cli.console import console, print_json, working
    from embinit.export.models import apply
    from embinit.sources.load import load

    with working(f"reading {matrix}"):
        embeddings = load(matrix)
    with working(f"writing {out}"):
        done = apply(embeddings, model, out, resize=resize)
    if json:
        print_json({**asdict(done), "path": str(out)})
        return
    screen = console()
    head = "the tied output layer follows" if done.tied else "no output layer is tied to them"
    size = ", which the model has now," if done.resized else ""
    screen.print(f"{done.replaced:,} of {done.rows:,} rows{size} come from the matrix; {head}")
    screen.print(f"kept: {done.specials_kept:,} special, {done.others_kept:,} that the matrix lacks")
    if done.missing:
        screen.print(
            f"note: {done.missing:,} tensors are not in {model}: transformers drew them at random", markup=False
        )
    if done.resized:
        screen.print("the tokenizer is left out: its tokens are no longer the model's (tokens.json has them)")
    if done.unused:
        screen.print(f"not used: {done.unused:,} tokens of the matrix that the model's tokenizer lacks")
    screen.print(f"saved, loaded again and compared bit for bit: {out}", markup=False, soft_wrap=True)
