"""`embinit inspect`: what vectors are like in a model, and what to do with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import options as shared

if TYPE_CHECKING:
    from rich.console import Console

    from embinit.diagnosis.diagnose import Diagnosis
    from embinit.types import Aligned

NEEDS_ARGUMENTS = True
#: Columns of a terminal below which a table of six numbers leaves no room for its labels.
_NARROW = 64
_SIGNS = {"good": "[green]✓[/]", "note": "[yellow]•[/]", "harm": "[red]✗[/]"}


def command(
    source: shared.Source,
    vocab: shared.Vocab = None,
    text: shared.Text = None,
    tokenizer: shared.TokenizerName = "whitespace",
    lower: shared.Lower = False,
    min_count: shared.MinCount = 1,
    model: shared.Model = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="KIND",
            help="What the model is for: translation (the default) or classification, whose rows do best at a lower "
            "rate than the other weights'. Changes the advice where positions are sinusoids.",
            show_default=False,
        ),
    ] = None,
    recipe: shared.RecipeName = "pretrained",
    fill: shared.Fill = None,
    no_case: shared.NoCase = False,
    no_markers: shared.NoMarkers = False,
    no_compose: shared.NoCompose = False,
    specials: shared.Specials = False,
    dim: shared.Dim = None,
    project: shared.Project = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions", metavar="FILE", help="Also count the analogies of this file before and after the sum."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the matrix, Xavier's and the positions (.png, .svg, .pdf)."),
    ] = None,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Diagnose vectors against a vocabulary and a model, and say what to do.

    Nothing is trained and nothing is written. Without --vocab or --text the source's own tokens are the vocabulary; give
    yours, for the range that fits depends on its size.

    embinit inspect glove.6B.300d.txt --text train.en --tokenizer spacy:en --lower --min-count 2
    """
    from embinit.cli.console import console, print_json, working
    from embinit.diagnosis.diagnose import diagnose
    from embinit.hosts import host
    from embinit.recipes.recipe import Recipe
    from embinit.recipes.recipe import recipe as recipe_of
    from embinit.types import task_kind

    chosen, target = recipe_of(recipe, fill), host(model or "tutorial")
    purpose = None if task is None else task_kind(task)
    vocabulary = shared.vocabulary_of(vocab, text, tokenizer, lower, min_count)
    aligned = shared.aligned_of(
        source, vocabulary, no_case=no_case, no_markers=no_markers, no_compose=no_compose, specials=specials,
        dim=dim or target.dim, project=project, seed=seed,
    )  # fmt: skip
    with working("measuring"):
        diagnosis = diagnose(aligned, host=target, recipe=chosen, task=purpose, seed=seed)
        analogies = None if questions is None else _analogies(diagnosis, aligned, questions, lower, seed)
    given = {
        "vocab": vocab, "text": text, "tokenizer": tokenizer if text else None, "lower": lower,
        "min-count": min_count if text and min_count > 1 else None, "model": model, "no-case": no_case,
        "no-markers": no_markers, "no-compose": no_compose, "specials": specials, "dim": dim, "project": project,
        "fill": fill or (chosen.fill if chosen.fill != Recipe.fill else None), "seed": seed or None,
    }  # fmt: skip

    def making(recipe: str, out: str) -> str:
        return shared.command_line("make", source, {**given, "recipe": recipe, "out": f"{out}.safetensors"})

    opinion = diagnosis.verdict
    line, other = making(opinion.recipe, "embedding"), None
    if opinion.at_full_rate is not None and opinion.at_full_rate != opinion.recipe:
        other = making(opinion.at_full_rate, "embedding-full-rate")
    if plot is not None:
        from embinit.diagnosis.plot import plot as draw

        draw(diagnosis, plot)
    if json:
        commands = {"command": line, "command_at_full_rate": other}
        print_json({**diagnosis.as_dict(), "analogies": analogies, **commands})
        return
    screen = console()
    _print_input(screen, diagnosis, own_vocabulary=vocabulary is None, default_model=model is None)
    _print_distributions(screen, diagnosis)
    _print_absorption(screen, diagnosis, analogies)
    _print_verdict(screen, diagnosis, line, other, own_vocabulary=vocabulary is None)
    if plot is not None:
        screen.print(f"\nDrawn: {plot}", markup=False)


def _analogies(diagnosis: Diagnosis, aligned: Aligned, questions: Path, lower: bool, seed: int) -> dict[str, int]:
    from embinit.diagnosis.absorption import position_table
    from embinit.diagnosis.analogy import evaluate, known, read_questions, total
    from embinit.seeds import stream

    asked = read_questions(questions, lower)
    places, index = known(aligned)
    rows = diagnosis.matrix[places]
    before = total(evaluate(rows, index, asked))
    result = {"asked": before.asked, "right": before.right}
    if diagnosis.host.adds_positions:
        table = position_table(diagnosis.host, diagnosis.dim, seed=seed)
        added = table[stream(seed, "analogy positions").integers(0, len(table), len(rows))]
        result["right with positions"] = total(evaluate(rows * diagnosis.multiplier + added, index, asked)).right
    return result


def _print_input(screen: Console, diagnosis: Diagnosis, own_vocabulary: bool, default_model: bool) -> None:
    from rich.markup import escape

    from embinit.cli.console import hanging, rejected
    from embinit.format import percent

    kinds = ", ".join(f"{count:,} {kind}" for kind, count in diagnosis.matches.items() if count)
    whose = "tokens of the source itself (give --vocab or --text for yours)" if own_vocabulary else "tokens"
    default = ", by default; --model says another" if default_model else ""
    lines = [("vocabulary", f"{diagnosis.rows:,} {whose}: {kinds}")]
    if not own_vocabulary:
        types, tokens = diagnosis.coverage
        running = "" if tokens is None else f", {percent(tokens)} of running tokens"
        lines.append(("coverage", f"{percent(types)} of types{running}"))
    lines.append(("model", f"{diagnosis.host.name}{default}: {diagnosis.host.about}"))
    lines += [("task", said)] if (said := _task(diagnosis)) else []
    lines.append(("recipe", str(diagnosis.recipe)))
    lines += [("reading", line) for line in rejected(diagnosis.counts, diagnosis.examples)]
    screen.print(f"[bold]{escape(diagnosis.source)}[/]  {escape(diagnosis.format)}", soft_wrap=True)
    screen.print(hanging((f"[dim]{name}[/]", escape(value)) for name, value in lines))


def _task(diagnosis: Diagnosis) -> str:
    """Return what the model is taken to be for, where that was said or counts."""
    counts = diagnosis.host.positions == "sinusoidal"
    if diagnosis.basis.task is None:
        return "translation, by default; --task classification for a classifier" if counts else ""
    return diagnosis.basis.task + ("" if counts else " (changes the advice only where positions are sinusoids)")


def _print_distributions(screen: Console, diagnosis: Diagnosis) -> None:
    from embinit.cli.console import number, table

    layers = [
        ("rows", diagnosis.found, True),
        (f"Xavier, {diagnosis.rows:,} x {diagnosis.dim}", diagnosis.xavier, True),
    ]
    if diagnosis.missing is not None:
        layers.insert(1, ("missing rows, filled", diagnosis.missing, True))
    if diagnosis.positions is not None:
        layers.append((f"positions ({diagnosis.host.positions})", diagnosis.positions, False))
    lines = []
    for name, spread, scales in layers:
        shown = [(name, spread)]
        if scales and diagnosis.multiplier != 1:
            shown.append(("  × √D", spread.scaled(diagnosis.multiplier)))
        for label, one in shown:
            values = (one.min, one.max, one.mean, one.std, one.kurtosis, one.norm_mean)
            lines.append((label, [number(value) for value in values]))
    headers = ("min", "max", "mean", "σ", "kurtosis", "row norm")
    for part in [slice(6)] if screen.width >= _NARROW else [slice(3), slice(3, 6)]:
        made = table("", *headers[part])
        for label, numbers in lines:
            made.add_row(label, *numbers[part])
        screen.print()
        screen.print(made)


def _print_absorption(screen: Console, diagnosis: Diagnosis, analogies: dict[str, int] | None) -> None:
    from embinit.cli.console import hanging, number, table
    from embinit.format import percent, plural

    screen.print()
    now, after = diagnosis.absorption, diagnosis.after
    if now is not None:
        made = table("rows and positions in one sum", "as given", *(["advised"] if after else []))
        both = [now, after] if after else [now]

        def show(share: float | None) -> str:
            return "–" if share is None else percent(share)

        made.add_row("scaled σ over the positions' rms", *(number(one.ratio) for one in both))
        made.add_row("positions told from the sum (chance 5 %)", *(show(one.position_readout) for one in both))
        made.add_row("nearest neighbours that stay", *(show(one.neighbours_kept) for one in both))
        for form in now.rounding_loss:
            shares = [one.rounding_loss[form] for one in both]
            made.add_row(f"position signal lost in {form}", *("0 %" if s < 1e-4 else percent(s) for s in shares))
        screen.print(made)
    if analogies is not None:
        summed = analogies.get("right with positions")
        tail = "" if summed is None else f"; {summed} with positions added"
        screen.print(f"analogies: {analogies['right']} of {analogies['asked']} right{tail}")
    shape = diagnosis.geometry
    facts = (
        f"mean cosine {shape.mean_cosine:.2f}, {shape.effective_dim:.0f} of {diagnosis.dim} dimensions used, "
        f"widest direction {percent(shape.top_share)}, {plural(len(shape.outlier_dimensions), 'outlier dimension')}, "
        f"{shape.zero_rows:,} zero and {shape.duplicate_rows:,} duplicate rows"
    )
    screen.print(hanging([("[dim]shape[/]", facts)]))


def _print_verdict(screen: Console, diagnosis: Diagnosis, line: str, other: str | None, own_vocabulary: bool) -> None:
    from rich.markup import escape

    from embinit.cli.console import hanging
    from embinit.diagnosis.verdict import part

    opinion = diagnosis.verdict
    screen.print(f"\n[bold]{escape(opinion.headline)}[/]")
    screen.print(hanging((f" {_SIGNS[finding.severity]}", escape(finding.text)) for finding in opinion.findings))
    if own_vocabulary and opinion.advice == "as is" and opinion.recipe == "pretrained":
        screen.print("\nNothing needs to be done to the vectors themselves.")
    else:
        screen.print(f"\nUse the recipe [bold]{escape(opinion.recipe)}[/]:\n")
        screen.print(f"  {line}", markup=False, soft_wrap=True)
    if opinion.rate != 1:
        groups = f"embinit.parameter_groups(model, model.embedding, lr=1e-4, rate={opinion.rate:g})"
        screen.print(f"\nGive the rows {part(opinion.rate)} of the other weights' learning rate, in PyTorch:\n")
        screen.print(f"  optimizer = torch.optim.Adam({groups})", markup=False, soft_wrap=True)
    if other is not None:
        screen.print("\nWhere all weights share one rate, and to compare at the lower one:\n")
        screen.print(f"  {other}", markup=False, soft_wrap=True)
