"""`embinit analogy`: answer word analogies, and repeat Table 4 of the paper."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.diagnosis.analogy import Question, Score
    from embinit.types import Aligned, Matrix

NEEDS_ARGUMENTS = True


class Method(StrEnum):
    """The method that finds the fourth word."""

    ADD = "3cosadd"
    MUL = "3cosmul"


def command(
    source: shared.Source,
    questions: Annotated[
        Path,
        typer.Option(
            "--questions",
            "-q",
            metavar="FILE",
            help="Lines of four words, under `: section` lines.",
            show_default=False,
        ),
    ],
    vocab: shared.Vocab = None,
    text: shared.Text = None,
    tokenizer: shared.TokenizerName = "whitespace",
    lower: shared.Lower = False,
    min_count: shared.MinCount = 1,
    method: Annotated[Method, typer.Option("--method", help="The method that finds the fourth word.")] = Method.ADD,
    candidates: Annotated[
        int | None,
        typer.Option("--candidates", min=1, metavar="N", help="Search for answers among the first N tokens only."),
    ] = None,
    table4: Annotated[
        bool, typer.Option("--table4", help="Repeat Table 4 of the paper: with scaling, standardizing and positions.")
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="With --table4: the number of times that positions are drawn.")
    ] = 10,
    length: Annotated[
        int, typer.Option("--length", min=1, help="With --table4: the number of positions to draw from.")
    ] = 20,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Answer word analogies (`king` is to `queen` as `man` is to ...) with the vectors of a source.

    --vocab or --text restricts questions and answers to a vocabulary. --lower lower-cases the questions too. Rows are
    matched exactly, and no row is composed.

    embinit analogy glove.6B.300d.txt -q questions-words.txt --lower
    """
    from embinit.alignment import Matching, align
    from embinit.cli.console import console, print_json, table, working
    from embinit.diagnosis.analogy import evaluate, known_words, read_questions, total_score
    from embinit.errors import EmbinitError
    from embinit.recipes.recipe import recipe
    from embinit.seeds import stream

    asked = read_questions(questions, lower)
    if not table4 and (draws != 10 or length != 20):
        raise EmbinitError("--draws and --length need --table4")
    vocabulary = shared.vocabulary_of(vocab, text, tokenizer, lower and bool(text), min_count)
    with working(f"reading {source}"):
        aligned = align(source, vocabulary, matching=Matching(case=False, markers=False, compose=False))
    matrix = recipe("pretrained")(aligned, stream(seed, "matrix"))
    if table4:
        _table4(aligned, matrix, asked, length, draws, seed, json)
        return
    with working("answering"):
        ids, index = known_words(aligned)
        scores = evaluate(matrix[ids], index, asked, method.value, candidates)
    total = total_score(scores)
    if json:
        sections = {name: {"right": score.right, "asked": score.asked} for name, score in scores.items()}
        overall = {"right": total.right, "asked": total.asked, "accuracy": total.accuracy}
        print_json({"questions": len(asked), "method": method.value, "total": overall, "sections": sections})
        return
    results = table("section", "right", "asked", "%")
    for name, score in scores.items():
        results.add_row(name or "(none)", *_score_cells(score))
    results.add_section()
    results.add_row("total", *_score_cells(total), style="bold")
    screen = console()
    screen.print(results)
    screen.print(f"{total.asked:,} of {len(asked):,} questions were asked: those whose four words the source has.")


def _score_cells(score: Score) -> tuple[str, str, str]:
    return str(score.right), str(score.asked), f"{100 * score.accuracy:.1f}" if score.asked else "–"


def _table4(
    aligned: Aligned, matrix: Matrix, asked: list[Question], length: int, draws: int, seed: int, json: bool
) -> None:
    import statistics

    from embinit.cli.console import console, print_json, table, working
    from embinit.diagnosis.analogy import table4 as compute

    with working("answering"):
        rows = compute(aligned, matrix, asked, length=length, draws=draws, seed=seed)
    if json:
        print_json([{**vars(row), "accuracy": row.accuracy} for row in rows])
        return
    results = table("Table 4", "right", "asked", "%", "paper %")
    for row in rows:
        spread = f" ± {100 * statistics.stdev(row.right) / row.asked:.1f}" if len(row.right) > 1 and row.asked else ""
        right = f"{statistics.mean(row.right):.0f}"
        results.add_row(row.name, right, str(row.asked), f"{100 * row.accuracy:.1f}{spread}", f"{row.paper:.1f}")
    screen = console()
    screen.print(results)
    screen.print(f"± is the σ over {draws} draws. Each draw adds one of the first {length} positions to each row.")
