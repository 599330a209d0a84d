"""`embinit extend`: give a pre-trained model new tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = True
_DISTILL = "Method distill"


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
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="The new tokens, one word per line. With the methods like and description, a tab and the existing token or "
            "the phrase follow the word.",
            show_default=False,
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            "--tokenizer",
            metavar="FOLDER",
            help="Instead of --tokens: the folder of a whole new tokenizer. Tokens that both have keep their rows.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="advised, or: mean (transformers' default), multivariate (mean and covariance of the old rows), pieces "
            "(mean of the word's old pieces), pieces-first, pieces-last, first-piece, like (rows of tokens that you name), "
            "description (mean of a phrase's pieces), focus and omp (old rows combined by auxiliary vectors), distill "
            "(pieces, then fitted so that the model reads the word as before).",
        ),
    ] = "advised",
    text: Annotated[
        list[Path] | None,
        typer.Option(
            "--text",
            metavar="FILE",
            help="Text in which the new tokens occur, for distill, focus and omp. May be given several times. Without it, "
            "distill makes sentences of the vocabulary.",
            show_default=False,
        ),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            "--vectors",
            metavar="SOURCE",
            help="Word vectors for focus and omp. Without them, vectors are trained on --text.",
            show_default=False,
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            metavar="NAME",
            rich_help_panel=_DISTILL,
            help="The outputs that must stay as before: states (the last hidden states, and the next-token distributions of "
            "causal models), or a pooled vector: mean, cls or last. By default the pooled vector if the folder is of "
            "sentence-transformers, and states otherwise.",
            show_default=False,
        ),
    ] = None,
    contexts: Annotated[
        int, typer.Option("--contexts", min=1, rich_help_panel=_DISTILL, help="The sentences for each new token.")
    ] = 8,
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, rich_help_panel=_DISTILL, help="The passes over the sentences.")
    ] = 2,
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
    """Give a pre-trained model new tokens or a new tokenizer with good rows, and save it with its tokenizer.

    With --tokens, every other word is segmented as before. The saved folder is loaded again, and its rows and token ids are
    compared. The ids are printed for PEFT's trainable_token_indices. If the method distill is stopped, the same command
    continues it. In Python: embinit.extend(model, tokenizer, tokens).

    embinit extend all-MiniLM-L6-v2 --tokens words.txt --text corpus.txt -o all-MiniLM-L6-v2-extended
    """
    from dataclasses import replace

    from embinit.cli.console import Bar, console, print_json
    from embinit.errors import EmbinitError
    from embinit.extending.distillation.distill import Distillation
    from embinit.extending.distillation.objective import checked_match, folder_match
    from embinit.extending.extend import extend
    from embinit.extending.folders import checkpoint_beside, extend_folder, load_tokenizer
    from embinit.extending.report import ids_text
    from embinit.extending.words import read_words

    if tokens is None and tokenizer is None:
        raise EmbinitError("there is nothing to add; give --tokens FILE or --tokenizer FOLDER")
    if tokens is not None and tokenizer is not None:
        raise EmbinitError("--tokens and --tokenizer are both given; give only one of them")
    checkpoint = checkpoint_beside(out)
    shared.keep_inputs((checkpoint,), tokens, *(text or []), vectors)
    words, named = (None, None) if tokens is None else read_words(tokens)
    new_tokenizer = None if tokenizer is None else load_tokenizer(tokenizer)
    settings = Distillation(
        match=folder_match(model) if match is None else checked_match(match), contexts=contexts, epochs=epochs,
        checkpoint=checkpoint,
    )  # fmt: skip
    try:
        with Bar("extend", "batches") as bar:
            extension = extend_folder(
                model,
                out,
                lambda loaded, old: extend(
                    loaded, old, words, new_tokenizer=new_tokenizer, method=method, text=text, vectors=vectors, like=named,
                    distillation=replace(settings, progress=bar.update), skip_known=skip_known, match_length=match_length,
                    pad_to_multiple_of=multiple, seed=seed,
                ),
            )  # fmt: skip
    except KeyboardInterrupt:
        tail = "; run the same command again to continue from the last checkpoint" if checkpoint.exists() else ""
        console(err=True).print(f"stopped{tail}", markup=False)
        raise typer.Exit(130) from None
    if json:
        print_json({**extension.as_dict(), "path": str(out)})
        return
    screen = console()
    screen.print(str(extension), markup=False, soft_wrap=True)
    screen.print(f"PEFT: trainable_token_indices = the ids {ids_text(extension.ids)} (--json lists them)", markup=False)
    screen.print(f"saved, loaded again and compared bit for bit: {out}", markup=False, soft_wrap=True)
