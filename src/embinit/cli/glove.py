"""`embinit glove`: word vectors from text of one's own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli.options import Json, Seed, keep_inputs

if TYPE_CHECKING:
    from embinit.glove import TrainedVectors

NEEDS_ARGUMENTS = True

_TEXT, _MODEL, _RUN = "Text", "Model", "Run"


def command(
    text: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT",
            help="Files with a sentence or paragraph a line (plain, gz, bz2, xz), or - for stdin. No window crosses a line.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to: text as GloVe's own, a word and its numbers a line, commonest first.",
            show_default=False,
        ),
    ],
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            rich_help_panel=_TEXT,
            help="whitespace, spacy:en (any language), or a tokenizer's file or folder; use the one your model's text gets.",
        ),
    ] = "whitespace",
    lower: Annotated[
        bool, typer.Option("--lower", rich_help_panel=_TEXT, help="Lower-case first; better for little text.")
    ] = False,
    min_count: Annotated[
        int,
        typer.Option("--min-count", rich_help_panel=_TEXT, help="Words seen less often are taken out of the text."),
    ] = 5,
    window: Annotated[
        int,
        typer.Option(
            "--window",
            rich_help_panel=_TEXT,
            help="Words so far apart count as a pair, with weight 1/distance; small for syntax, large for topics.",
        ),
    ] = 10,
    left_only: Annotated[
        bool, typer.Option("--left-only", rich_help_panel=_TEXT, help="Count the words before a word, not those after.")
    ] = False,
    dim: Annotated[
        int,
        typer.Option("--dim", rich_help_panel=_MODEL, help="Numbers a word; 50 to 300, or what your model needs."),
    ] = 100,
    epochs: Annotated[
        int,
        typer.Option(
            "--epochs", rich_help_panel=_MODEL, help="Passes over all pairs; the paper took 50, and 100 from 300 dim."
        ),
    ] = 15,
    x_max: Annotated[
        float,
        typer.Option(
            "--x-max",
            rich_help_panel=_MODEL,
            help="Pairs counted so often weigh 1, rarer ones (x/x_max)^alpha; try 10 for some million words.",
        ),
    ] = 100.0,
    alpha: Annotated[
        float, typer.Option("--alpha", rich_help_panel=_MODEL, help="How steeply rare pairs lose weight.")
    ] = 0.75,
    lr: Annotated[float, typer.Option("--lr", rich_help_panel=_MODEL, help="AdaGrad's first learning rate.")] = 0.05,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            rich_help_panel=_RUN,
            help="Default: all cores. With 1 the same seed gives the same file, bit for bit.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            rich_help_panel=_RUN,
            help="Start anew, though a stopped run's checkpoint lies beside the output.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Train word vectors on text of your own, by GloVe's objective (Pennington et al. 2014).

    A run that was stopped goes on where it was when the same command runs again. Afterwards the file is a source:
    embinit inspect vectors.txt.

    embinit glove train.en.gz more.txt --lower --dim 300 -o vectors.txt
    """
    from embinit.cli.console import Bar, console, print_json
    from embinit.glove.checkpoint import beside, clear
    from embinit.glove.corpus import text_lines
    from embinit.glove.output import check_writable, nearest, telling, write
    from embinit.glove.training import train
    from embinit.text.tokenizers import tokenizer as tokenizer_of

    keep_inputs(out, *text)
    check_writable(out)
    started = time.monotonic()
    try:
        with Bar("glove", "done") as bar:
            trained = train(
                text_lines(text), dim=dim, window=window, symmetric=not left_only, epochs=epochs, min_count=min_count,
                tokenize=tokenizer_of(tokenizer), lower=lower, x_max=x_max, alpha=alpha, lr=lr, threads=threads,
                seed=seed, checkpoint=beside(out), fresh=fresh, progress=bar.update,
                origin=", ".join("stdin" if name == "-" else Path(name).name for name in text),
            )  # fmt: skip
    except KeyboardInterrupt:
        kept = beside(out).exists() and not fresh  # with --fresh the same command starts anew
        tail = "; the same command goes on from the last checkpoint" if kept else ""
        console(err=True).print(f"stopped{tail}", markup=False)
        raise typer.Exit(130) from None
    write(out, trained.vocabulary, trained.vectors)
    clear(out)
    seconds = time.monotonic() - started
    neighbours = nearest(trained.vocabulary, trained.vectors, telling(trained.vocabulary, 6), 5)
    if json:
        print_json(
            {
                "file": str(out),
                "words": len(trained.vocabulary),
                "dim": dim,
                "tokens": trained.tokens,
                "pairs": trained.pairs,
                "rare": trained.rare,
                "left out": trained.left_out,
                "losses": trained.losses,
                "resumed updates": trained.resumed,
                "threads": trained.threads,
                "seed": seed,
                "seconds": seconds,
                "neighbours": neighbours,
            }
        )
        return
    _report(trained, neighbours, min_count, seconds)
    console().print(f"wrote {out}", markup=False, soft_wrap=True)


def _report(trained: TrainedVectors, neighbours: dict[str, list[str]], min_count: int, seconds: float) -> None:
    """Print what was counted, the loss, and neighbours that show whether it learned."""
    from embinit.cli.console import console, table

    screen = console()
    words, dim = trained.vectors.shape
    screen.print(f"{words:,} words x {dim} from {trained.tokens:,} tokens, {trained.pairs:,} pairs", markup=False)
    if trained.rare:
        screen.print(f"taken out: {trained.rare:,} words seen less than {min_count} times", markup=False)
    if trained.left_out:
        shown = ", ".join(map(repr, trained.left_out[:5]))
        screen.print(f"left out: {len(trained.left_out):,} tokens that a line cannot hold ({shown})", markup=False)
    if trained.resumed:
        screen.print(f"went on with epoch {trained.resumed // trained.pairs + 1} of a stopped run", markup=False)
    screen.print(f"loss by epoch: {' '.join(f'{loss:.4f}' for loss in trained.losses)}", markup=False)
    screen.print(f"{seconds:.1f} s with {trained.threads} thread{'s' * (trained.threads > 1)}", markup=False)
    from rich.text import Text

    made = table("word", "nearest", right_from=9)
    for word, others in neighbours.items():
        made.add_row(Text(word), Text(", ".join(others)))
    screen.print(made)
