"""`embinit convert`: a trained language model as a folder of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run that was trained with `embinit run --keep-weights`: runs/KEY.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder to write. It must not exist yet.", show_default=False
        ),
    ],
    json: shared.Json = False,
) -> None:
    """Write a trained language model as a folder of transformers.

    The folder is loaded again with AutoModelForCausalLM or AutoModelForMaskedLM, and its logits are compared. A model that
    transformers has no class for is refused; the presets gpt2, llama and bert have one.

    embinit convert runs/0123456789abcdef -o my-model
    """
    from embinit.cli.console import console, print_json, working
    from embinit.experiments.conversion import convert

    with working(f"writing {out}"):
        converted = convert(run, out)
    if json:
        print_json({**vars(converted), "path": str(converted.path)})
        return
    screen = console()
    screen.print(f"{converted.model}, {converted.parameters:,} parameters, {converted.tokens:,} tokens", markup=False)
    if not converted.tokenizer:
        text = "no tokenizer: vocabulary.json lists the tokens in the order of their ids"
        screen.print(text, markup=False, soft_wrap=True)
    screen.print(
        f"saved, loaded again, logits differ by at most {converted.difference:.1g}: {converted.path}",
        markup=False,
        soft_wrap=True,
    )
