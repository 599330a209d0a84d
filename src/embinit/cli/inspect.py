"""`embinit inspect`: measure vectors in a model and advise a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embinit.cli import options as shared
from embinit.errors import EmbinitError

if TYPE_CHECKING:
    from rich.console import Console

    from embinit.diagnosis.diagnose import Diagnosis
    from embinit.diagnosis.verdict import Verdict
    from embinit.types import Aligned

NEEDS_ARGUMENTS = True
#: In a terminal with fewer columns, a table of six numbers leaves no room for its labels.
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
    task: shared.Task = None,
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
            "--questions",
            metavar="FILE",
            help="Also answer the analogies of this file, before and after positions are added.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw histograms of the matrix, Xavier's rows and the positions (.png, .svg, .pdf).",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the report as one page that needs no network."),
    ] = None,
    missing: shared.Missing = None,
    new_tokens: Annotated[
        int | None,
        typer.Option(
            "--new-tokens",
            min=1,
            metavar="N",
            help="Compare the rows of the last N tokens of a model's folder with its old rows, and do nothing else.",
        ),
    ] = None,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Measure vectors against a vocabulary and a model, and advise what to do.

    Nothing is trained, and no file is written unless you give --plot, --html or --missing. Give your vocabulary with
    --vocab or --text, because the size of the vocabulary changes the advice. Without it, the tokens of the source are the
    vocabulary.

    embinit inspect glove.6B.300d.txt --text train.en --tokenizer spacy:en --lower --min-count 2
    """
    from embinit.cli.console import console, print_json, working
    from embinit.diagnosis.diagnose import diagnose
    from embinit.diagnosis.missing import missing_tokens
    from embinit.hosts import host as host_of
    from embinit.recipes.recipe import Recipe
    from embinit.recipes.recipe import recipe as recipe_of
    from embinit.types import task_kind

    if new_tokens is not None:
        for name, given in {"plot": plot, "html": html, "missing": missing, "questions": questions}.items():
            if given is not None:
                raise EmbinitError(f"--{name} does not go with --new-tokens, which only prints a comparison")
        from embinit.extending.resized import inspect_new_tokens

        resized = inspect_new_tokens(source, new_tokens, seed=seed)
        print_json(resized.as_dict()) if json else console().print(str(resized), markup=False, soft_wrap=True)
        return
    inspected, host = recipe_of(recipe, fill), host_of(model or "tutorial")
    kind_of_task = None if task is None else task_kind(task)
    shared.keep_inputs((plot, html, missing), source, vocab, *(text or []), tokenizer, model, recipe, questions)
    vocabulary = shared.vocabulary_of(vocab, text, tokenizer, lower, min_count)
    aligned = shared.aligned_of(
        source, vocabulary, no_case=no_case, no_markers=no_markers, no_compose=no_compose, specials=specials,
        dim=dim or host.dim, project=project, seed=seed,
    )  # fmt: skip
    if missing is not None:
        missing_tokens(aligned).write(missing)
    with working("measuring"):
        diagnosis = diagnose(aligned, host=host, recipe=inspected, task=kind_of_task, seed=seed)
        analogies = None if questions is None else _analogies(diagnosis, aligned, questions, lower, seed)
    if plot is not None:
        from embinit.diagnosis.plot import plot as draw

        draw(diagnosis, plot)
    options = {
        "vocab": vocab, "text": text, "tokenizer": tokenizer if text else None, "lower": lower,
        "min-count": min_count if text and min_count > 1 else None, "model": model, "no-case": no_case,
        "no-markers": no_markers, "no-compose": no_compose, "specials": specials, "dim": dim, "project": project,
        "fill": fill or (inspected.fill if inspected.fill != Recipe.fill else None), "seed": seed or None,
    }  # fmt: skip
    make, make_at_full_rate = _make_commands(source, diagnosis.verdict, options)
    if html is not None:
        _write_page(html, diagnosis, make, make_at_full_rate)
    if json:
        commands = {"command": make, "command_at_full_rate": make_at_full_rate}
        print_json({**diagnosis.as_dict(), "analogies": analogies, **commands})
        return
    screen = console()
    _print_input(screen, diagnosis, own_vocabulary=vocabulary is None, model=model)
    _print_distributions(screen, diagnosis)
    _print_absorption(screen, diagnosis, analogies)
    _print_verdict(screen, diagnosis.verdict, make, make_at_full_rate, own_vocabulary=vocabulary is None)
    for path in filter(None, (plot, html, missing)):
        screen.print(f"wrote {path}", markup=False, soft_wrap=True)


def _write_page(path: Path, diagnosis: Diagnosis, make: str, make_at_full_rate: str | None) -> None:
    """Write the diagnosis as one HTML page, with the commands to run next."""
    from dataclasses import replace

    from embinit.display import page
    from embinit.files import replacing

    code = [("Make the matrix:", make)]
    if make_at_full_rate is not None:
        code.append(("If all weights share one learning rate, make this matrix instead:", make_at_full_rate))
    with replacing(path) as file:
        file.write(page(replace(diagnosis.panel(), code=code)).encode("utf-8", "replace"))


def _make_commands(source: str, verdict: Verdict, options: dict[str, Any]) -> tuple[str, str | None]:
    """Return the `embinit make` command of the advised recipe, and that for a full learning rate if it differs."""

    def make_command(recipe: str, out: str) -> str:
        return shared.command_line("make", source, {**options, "recipe": recipe, "out": out})

    make = make_command(verdict.recipe, "embedding.safetensors")
    if verdict.at_full_rate is None or verdict.at_full_rate == verdict.recipe:
        return make, None
    return make, make_command(verdict.at_full_rate, "embedding-full-rate.safetensors")


def _analogies(diagnosis: Diagnosis, aligned: Aligned, questions: Path, lower: bool, seed: int) -> dict[str, int]:
    """Return the number of questions, and of right answers before and after positions are added."""
    from embinit.diagnosis.absorption import position_table
    from embinit.diagnosis.analogy import evaluate, known_words, read_questions, total_score
    from embinit.seeds import stream

    asked = read_questions(questions, lower)
    ids, index = known_words(aligned)
    rows = diagnosis.matrix[ids]
    before = total_score(evaluate(rows, index, asked))
    counts = {"asked": before.asked, "right": before.right}
    if diagnosis.host.adds_positions:
        table = position_table(diagnosis.host, diagnosis.dim, seed=seed)
        added = table[stream(seed, "analogy positions").integers(0, len(table), len(rows))]
        after = total_score(evaluate(rows * diagnosis.multiplier + added, index, asked))
        counts["right with positions"] = after.right
    return counts


def _print_input(screen: Console, diagnosis: Diagnosis, own_vocabulary: bool, model: str | None) -> None:
    from rich.markup import escape

    from embinit.cli.console import coverage_text, facts_table, model_text, print_warnings, task_lines
    from embinit.format import reading_notes

    kinds = ", ".join(f"{count:,} {kind}" for kind, count in diagnosis.matches.items() if count)
    whose = "tokens, those of the source (give yours with --vocab or --text)" if own_vocabulary else "tokens"
    lines = [("vocabulary", f"{diagnosis.rows:,} {whose}: {kinds}")]
    if not own_vocabulary:
        lines += [("coverage", coverage_text(*diagnosis.coverage)), *diagnosis.missing_tokens.facts()]
    lines.append(("model", model_text(diagnosis.host, model)))
    lines += task_lines(diagnosis.host, diagnosis.basis.task)
    lines.append(("recipe", str(diagnosis.recipe)))
    lines += [("reading", note) for note in reading_notes(diagnosis.counts, diagnosis.examples)]
    print_warnings(screen, diagnosis.warnings)
    screen.print(f"[bold]{escape(diagnosis.source)}[/]  {escape(diagnosis.format)}", soft_wrap=True)
    screen.print(facts_table(lines))


def _print_distributions(screen: Console, diagnosis: Diagnosis) -> None:
    from embinit.cli.console import table
    from embinit.diagnosis.panel import distribution_table

    content = distribution_table(diagnosis)
    for columns in [slice(1, 7)] if screen.width >= _NARROW else [slice(1, 4), slice(4, 7)]:
        numbers = table("", *content.headers[columns])
        for label, *values in content.rows:
            numbers.add_row(label, *values[columns.start - 1 : columns.stop - 1])
        screen.print()
        screen.print(numbers)


def _print_absorption(screen: Console, diagnosis: Diagnosis, analogies: dict[str, int] | None) -> None:
    from embinit.cli.console import hanging, table
    from embinit.diagnosis.panel import absorption_tables, shape_text

    screen.print()
    for content in absorption_tables(diagnosis):
        numbers = table(*content.headers)
        for row in content.rows:
            numbers.add_row(*row)
        screen.print(numbers)
    if analogies is not None:
        after = analogies.get("right with positions")
        with_positions = "" if after is None else f"; {after} with positions added"
        screen.print(f"analogies: {analogies['right']} of {analogies['asked']} right{with_positions}")
    screen.print(hanging([("[dim]shape[/]", shape_text(diagnosis))]))


def _print_verdict(
    screen: Console, verdict: Verdict, make: str, make_at_full_rate: str | None, own_vocabulary: bool
) -> None:
    from rich.markup import escape

    from embinit.cli.console import hanging
    from embinit.diagnosis.wording import fraction

    screen.print(f"\n[bold]{escape(verdict.headline)}[/]")
    screen.print(hanging((f" {_SIGNS[finding.severity]}", escape(finding.text)) for finding in verdict.findings))
    if own_vocabulary and verdict.advice == "as is" and verdict.recipe == "pretrained":
        screen.print("\nThe vectors themselves need no change.")
    else:
        screen.print(f"\nUse the recipe [bold]{escape(verdict.recipe)}[/]:\n")
        screen.print(f"  {make}", markup=False, soft_wrap=True)
    if verdict.rate != 1:
        groups = f"embinit.parameter_groups(model, model.embedding, lr=1e-4, rate={verdict.rate:g})"
        screen.print(f"\nTrain the rows at {fraction(verdict.rate)} of the other weights' learning rate. In PyTorch:\n")
        screen.print(f"  optimizer = torch.optim.Adam({groups})", markup=False, soft_wrap=True)
    if make_at_full_rate is not None:
        screen.print(
            "\nIf all weights share one learning rate, run this instead. At the lower rate, compare with it:\n"
        )
        screen.print(f"  {make_at_full_rate}", markup=False, soft_wrap=True)
