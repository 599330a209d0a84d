"""`embinit make`: make the matrix that training starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embinit.cli import options as shared

NEEDS_ARGUMENTS = True


def command(
    source: shared.Source,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="The file to write: .safetensors, .npy, .txt (GloVe), .vec (text with a header) or .bin (word2vec). A "
            "folder needs --format.",
            show_default=False,
        ),
    ],
    vocab: shared.Vocab = None,
    text: shared.Text = None,
    tokenizer: shared.TokenizerName = "whitespace",
    lower: shared.Lower = False,
    min_count: shared.MinCount = 1,
    recipe: shared.RecipeName = "pretrained_xavier",
    fill: shared.Fill = None,
    model: shared.Model = None,
    no_case: shared.NoCase = False,
    no_markers: shared.NoMarkers = False,
    no_compose: shared.NoCompose = False,
    specials: shared.Specials = False,
    dim: shared.Dim = None,
    project: shared.Project = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="safetensors, npy, glove, word2vec, word2vec-bin, model2vec or sentence-transformers. By default the "
            "ending of --out decides.",
        ),
    ] = None,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Make the embedding matrix: read the source, align it, apply a recipe, and write the matrix with a card.

    The card is a JSON file that tells how the matrix was made: source, recipe, seed, coverage, and statistics.

    embinit make glove.6B.300d.txt --vocab vocab.txt --recipe pretrained_xavier -o embedding.safetensors
    """
    from embinit.cli.console import console, coverage_text, number, print_json, reading_notes, working
    from embinit.diagnosis.distribution import distribution
    from embinit.export.card import card
    from embinit.export.formats import files_of, write
    from embinit.format import plural
    from embinit.hosts import host as host_of
    from embinit.recipes.recipe import recipe as recipe_of
    from embinit.seeds import stream

    chosen, host = recipe_of(recipe, fill), host_of(model or "tutorial")
    for path in files_of(out, format):
        shared.keep_inputs(path, source, vocab, *(text or []))
    vocabulary = shared.vocabulary_of(vocab, text, tokenizer, lower, min_count)
    aligned = shared.aligned_of(
        source, vocabulary, no_case=no_case, no_markers=no_markers, no_compose=no_compose, specials=specials,
        dim=dim or host.dim, project=project, seed=seed,
    )  # fmt: skip
    with working("making the matrix"):
        matrix = chosen(aligned, stream(seed, "matrix"), host)
        facts = card(aligned, matrix, chosen, host, seed)
        written = write(matrix, aligned.vocabulary, out, format=format, card=facts)
    if json:
        files = [str(path) for path in written.files]
        print_json({**facts, "format": written.format, "files": files, "left out": written.left_out})
        return
    screen = console()
    before, after = distribution(aligned.rows) if aligned.found.any() else None, distribution(matrix)
    screen.print(f"{len(matrix):,} rows x {matrix.shape[1]} dimensions", markup=False)
    screen.print(f"recipe: {chosen} (fill {chosen.fill}, seed {seed})", markup=False, soft_wrap=True)
    screen.print(f"found: {coverage_text(*aligned.coverage())}")
    for note in reading_notes(dict(aligned.origin.counts), aligned.origin.examples):
        screen.print(f"reading: {note}", markup=False)
    if before is not None:
        screen.print(f"σ {number(before.std)} → {number(after.std)}, mean {number(before.mean)} → {number(after.mean)}")
    if written.left_out:
        shown = ", ".join(map(repr, written.left_out[:5]))
        count = plural(len(written.left_out), "token")
        screen.print(f"left out: {count} that this format cannot hold ({shown})", markup=False)
    if written.added:
        screen.print(f"added: {', '.join(written.added)} with a zero row, because this format needs it", markup=False)
    for path in written.files:
        screen.print(f"wrote {path}", markup=False, soft_wrap=True)
