"""`embinit extend`: give a pre-trained model new tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="The folder of a Hugging Face model with its tokenizer. It is not changed.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="The folder to write. It must not exist yet.", show_default=False
        ),
    ],
    tokens: Annotated[
        Path,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="The new tokens, one word per line. With the methods like and description, a tab and the existing token or "
            "the phrase follow the word.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="advised, or: mean (transformers' default), multivariate (mean and covariance of the old rows), pieces "
            "(mean of the word's old pieces), pieces-first, pieces-last, first-piece, like (rows of tokens that you name), "
            "description (mean of a phrase's pieces).",
        ),
    ] = "advised",
    skip_known: Annotated[
        bool, typer.Option("--skip-known", help="Skip tokens that the tokenizer has already, instead of an error.")
    ] = False,
    match_length: Annotated[
        bool, typer.Option("--match-length", help="Give new rows the length of the old rows that they are made of.")
    ] = False,
    multiple: Annotated[
        int | None,
        typer.Option(
            "--pad-to-multiple-of", min=1, metavar="N", help="Round the number of rows up to a multiple of N."
        ),
    ] = None,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Give a pre-trained model new tokens with good rows, and save it with a tokenizer that finds them.

    Every other word is segmented as before. The saved folder is loaded again, and its rows and token ids are compared. The
    ids are printed for PEFT's trainable_token_indices. In Python: embinit.extend(model, tokenizer, tokens).

    embinit extend all-MiniLM-L6-v2 --tokens words.txt -o all-MiniLM-L6-v2-extended
    """
    from embinit.cli.console import console, print_json, working
    from embinit.extending.extend import extend
    from embinit.extending.folders import extend_folder
    from embinit.extending.report import ids_text
    from embinit.extending.words import read_words

    words, named = read_words(tokens)
    with working(f"writing {out}"):
        extension = extend_folder(
            model,
            out,
            lambda loaded, tokenizer: extend(
                loaded, tokenizer, words, method=method, like=named, skip_known=skip_known, match_length=match_length,
                pad_to_multiple_of=multiple, seed=seed,
            ),
        )  # fmt: skip
    if json:
        print_json({**extension.as_dict(), "path": str(out)})
        return
    screen = console()
    screen.print(str(extension), markup=False, soft_wrap=True)
    screen.print(f"PEFT: trainable_token_indices = the ids {ids_text(extension.ids)} (--json lists them)", markup=False)
    screen.print(f"saved, loaded again and compared bit for bit: {out}", markup=False, soft_wrap=True)
