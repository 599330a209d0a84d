"""`embinit make`: make the matrix that training starts from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.export.formats import Written
    from embinit.types import Aligned, Matrix

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
    recipe: shared.RecipeOrAdvised = "advised",
    fill: shared.Fill = None,
    model: shared.Model = None,
    task: shared.Task = None,
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
    missing: shared.Missing = None,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Make the embedding matrix: read the source, align it, apply a recipe, and write the matrix with a card.

    By default the recipe is the one that `embinit inspect` advises for your --model and --task. The card is a JSON file that
    tells how the matrix was made: source, recipe, advice, seed, coverage, and statistics.

    embinit make glove.6B.300d.txt --vocab vocab.txt --model bert -o embedding.safetensors
    """
    from embinit.cli.console import (
        advice_lines,
        console,
        coverage_text,
        facts_table,
        model_text,
        print_json,
        print_warnings,
        task_lines,
        working,
    )  # fmt: skip
    from embinit.diagnosis.missing import missing_tokens
    from embinit.export.advice import choose_recipe
    from embinit.export.card import card
    from embinit.export.formats import files_of, write
    from embinit.format import reading_notes
    from embinit.hosts import host as host_of
    from embinit.recipes.recipe import ADVISED
    from embinit.recipes.recipe import recipe as recipe_of
    from embinit.seeds import stream
    from embinit.types import task_kind

    host = host_of(model or "tutorial")
    kind = None if task is None else task_kind(task)
    if recipe != ADVISED or fill is not None:  # a misspelt recipe or fill is an error before the source is read
        recipe_of("pretrained" if recipe == ADVISED else recipe, fill)
    shared.keep_inputs((*files_of(out, format), missing), source, vocab, *(text or []), tokenizer, model, recipe)
    vocabulary = shared.vocabulary_of(vocab, text, tokenizer, lower, min_count)
    aligned = shared.aligned_of(
        source, vocabulary, no_case=no_case, no_markers=no_markers, no_compose=no_compose, specials=specials,
        dim=dim or host.dim, project=project, seed=seed,
    )  # fmt: skip
    lacking = missing_tokens(aligned)
    if missing is not None:
        lacking.write(missing)
    with working("making the matrix"):
        choice = choose_recipe(aligned, recipe, host=host, fill=fill, task=kind, seed=seed)
        matrix = choice.recipe(aligned, stream(seed, "matrix"), host)
        facts = {
            **card(aligned, matrix, choice.recipe, host, seed),
            "warnings": aligned.warnings,
            "task": kind,
            "advice": choice.as_dict(),
        }
        written = write(matrix, aligned.vocabulary, out, format=format, card=facts)
    if json:
        files = [str(path) for path in written.files]
        written_facts = {"format": written.format, "files": files, "left out": written.left_out}
        print_json({**facts, "missing": lacking.as_dict(), **written_facts})
        return
    screen = console()
    whose = "" if vocabulary is not None else ", the tokens of the source (give yours with --vocab or --text)"
    print_warnings(screen, aligned.warnings)
    notes = [("reading", note) for note in reading_notes(aligned.origin.counts, aligned.origin.examples)]
    screen.print(
        facts_table(
            [
                ("matrix", f"{len(matrix):,} rows x {matrix.shape[1]} dimensions{whose}"),
                ("found", coverage_text(*aligned.coverage())),
                *lacking.facts(),
                *notes,
                ("model", model_text(host, model)),
                *task_lines(host, kind),
                *advice_lines(choice),
                *_spread_lines(aligned, matrix),
                *_format_lines(written),
            ]
        )
    )
    for path in (*written.files, *([missing] if missing is not None else [])):
        screen.print(f"wrote {path}", markup=False, soft_wrap=True)


def _spread_lines(aligned: Aligned, matrix: Matrix) -> list[tuple[str, str]]:
    """Return σ and mean before and after the recipe."""
    from embinit.diagnosis.distribution import distribution
    from embinit.format import number

    if not aligned.found.any():
        return []
    before, after = distribution(aligned.rows), distribution(matrix)
    return [("σ", f"{number(before.std)} → {number(after.std)}, mean {number(before.mean)} → {number(after.mean)}")]


def _format_lines(written: Written) -> list[tuple[str, str]]:
    """Return the tokens that the format could not hold, and those that it needs in addition."""
    from embinit.format import plural

    lines = []
    if written.left_out:
        examples = ", ".join(map(repr, written.left_out[:5]))
        lines.append(
            ("left out", f"{plural(len(written.left_out), 'token')} that this format cannot hold ({examples})")
        )
    if written.added:
        lines.append(("added", f"{', '.join(written.added)} with a zero row, because this format needs it"))
    return lines
