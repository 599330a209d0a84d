"""`embinit glove`: train word vectors on text."""

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
            help="Text files with one sentence or paragraph per line (plain, gz, bz2 or xz), or - for stdin. A window never "
            "crosses the end of a line.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The file to write, in GloVe's text format: one word and its numbers per line, most frequent first.",
            show_default=False,
        ),
    ],
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            rich_help_panel=_TEXT,
            help="whitespace, spacy:en (or another language), or the file or folder of a tokenizer. Choose your model's "
            "tokenizer.",
        ),
    ] = "whitespace",
    lower: Annotated[
        bool,
        typer.Option(
            "--lower", rich_help_panel=_TEXT, help="Lower-case the text first. Recommended for small amounts of text."
        ),
    ] = False,
    min_count: Annotated[
        int,
        typer.Option("--min-count", rich_help_panel=_TEXT, help="Remove words that occur less often."),
    ] = 5,
    window: Annotated[
        int,
        typer.Option(
            "--window",
            rich_help_panel=_TEXT,
            help="The largest distance of two words that count as a pair, with weight 1/distance. Small windows learn "
            "syntax, large windows topics.",
        ),
    ] = 10,
    left_only: Annotated[
        bool, typer.Option("--left-only", rich_help_panel=_TEXT, help="Count only the words before a word.")
    ] = False,
    dim: Annotated[
        int,
        typer.Option(
            "--dim", rich_help_panel=_MODEL, help="The dimension of the vectors: 50 to 300, or that of your model."
        ),
    ] = 100,
    epochs: Annotated[
        int,
        typer.Option(
            "--epochs",
            rich_help_panel=_MODEL,
            help="Passes over all pairs. GloVe's paper used 50, and 100 from 300 dimensions on.",
        ),
    ] = 15,
    x_max: Annotated[
        float,
        typer.Option(
            "--x-max",
            rich_help_panel=_MODEL,
            help="The count x_max from which pairs have weight 1. Rarer pairs have weight (x/x_max)^alpha. Try 10 for a "
            "few million words.",
        ),
    ] = 100.0,
    alpha: Annotated[
        float, typer.Option("--alpha", rich_help_panel=_MODEL, help="The exponent of the weight of rare pairs.")
    ] = 0.75,
    lr: Annotated[
        float, typer.Option("--lr", rich_help_panel=_MODEL, help="The initial learning rate of AdaGrad.")
    ] = 0.05,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            rich_help_panel=_RUN,
            help="By default all cores. With 1 thread, the same seed gives the same file, bit for bit.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            rich_help_panel=_RUN,
            help="Start from the beginning, even if there is a checkpoint of a stopped run beside the output.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Train word vectors on your own text with GloVe's objective (Pennington et al. 2014).

    If a run is stopped, the same command continues it. After training, the file is a source: embinit inspect vectors.txt.

    embinit glove train.en.gz more.txt --lower --dim 300 -o vectors.txt
    """
    from embinit.cli.console import Bar, console, print_json
    from embinit.glove.checkpoint import beside, clear
    from embinit.glove.corpus import text_lines
    from embinit.glove.output import check_writable, nearest, telling, write
    from embinit.glove.training import train
    from embinit.text.tokenizers import tokenizer as tokenizer_of

    keep_inputs((out, beside(out)), *text, tokenizer)
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
        kept = beside(out).exists() and not fresh  # with --fresh the same command starts again
        tail = "; run the same command again to continue from the last checkpoint" if kept else ""
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
                "damaged checkpoint": trained.damaged,
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
    """Print the counts, the loss, and the nearest neighbours of some words."""
    from rich.text import Text

    from embinit.cli.console import console, table
    from embinit.format import plural

    screen = console()
    words, dim = trained.vectors.shape
    screen.print(
        f"{words:,} words x {dim} dimensions, from {trained.tokens:,} tokens and {trained.pairs:,} pairs", markup=False
    )
    if trained.rare:
        rare = plural(trained.rare, "word")
        screen.print(f"removed: {rare} with fewer than {min_count} occurrences", markup=False)
    if trained.left_out:
        examples = ", ".join(map(repr, trained.left_out[:5]))
        left_out = plural(len(trained.left_out), "token")
        screen.print(f"left out: {left_out} that a line of text cannot hold ({examples})", markup=False)
    if trained.damaged:
        screen.print("the checkpoint of a stopped run was damaged, so training began again", markup=False)
    if trained.resumed:
        screen.print(f"continued a stopped run at epoch {trained.resumed // trained.pairs + 1}", markup=False)
    screen.print(f"loss by epoch: {' '.join(f'{loss:.4f}' for loss in trained.losses)}", markup=False)
    screen.print(f"time: {seconds:.1f} s with {plural(trained.threads, 'thread')}", markup=False)
    nearest_words = table("word", "nearest words", right_from=2)
    for word, neighbour_words in neighbours.items():
        nearest_words.add_row(Text(word), Text(", ".join(neighbour_words)))
    screen.print(nearest_words)
