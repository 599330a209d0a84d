"""`embinit analogy`: word analogies, and the paper's Table 4."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embinit.cli import options as shared

if TYPE_CHECKING:
    from embinit.diagnosis.analogy import Question
    from embinit.types import Aligned, Matrix

NEEDS_ARGUMENTS = True


class Method(StrEnum):
    """How the fourth word is found."""

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
            help="Four words a line, `: section` lines between.",
            show_default=False,
        ),
    ],
    vocab: shared.Vocab = None,
    text: shared.Text = None,
    tokenizer: shared.TokenizerName = "whitespace",
    lower: shared.Lower = False,
    min_count: shared.MinCount = 1,
    method: Annotated[Method, typer.Option("--method", help="How the fourth word is found.")] = Method.ADD,
    candidates: Annotated[
        int | None,
        typer.Option("--candidates", min=1, metavar="N", help="Look for answers among the first N tokens only."),
    ] = None,
    table4: Annotated[
        bool, typer.Option("--table4", help="The paper's Table 4: the same with scaling, standardizing, positions.")
    ] = False,
    draws: Annotated[int, typer.Option("--draws", min=1, help="With --table4: how often positions are drawn.")] = 10,
    length: Annotated[int, typer.Option("--length", min=1, help="With --table4: from how many positions.")] = 20,
    seed: shared.Seed = 0,
    json: shared.Json = False,
) -> None:
    """Answer word analogies (`king` is to `queen` as `man` is to ...) with a source's vectors.

    With --vocab or --text both questions and answers are restricted to that vocabulary, and --lower lower-cases the
    questions too. The source's rows are matched exactly: nothing is composed.

    embinit analogy glove.6B.300d.txt -q questions-words.txt --lower
    """
    from embinit.alignment import Matching, align
    from embinit.cli.console import console, print_json, table, working
    from embinit.diagnosis.analogy import evaluate, known, read_questions, total
    from embinit.errors import EmbinitError
    from embinit.recipes.recipe import recipe
    from embinit.seeds import stream

    asked = read_questions(questions, lower)
    if not table4 and (draws != 10 or length != 20):
        raise EmbinitError("--draws and --length go with --table4")
    vocabulary = shared.vocabulary_of(vocab, text, tokenizer, lower and bool(text), min_count)
    with working(f"reading {source}"):
        aligned = align(source, vocabulary, matching=Matching(case=False, markers=False, compose=False))
    matrix = recipe("pretrained")(aligned, stream(seed, "matrix"))
    if table4:
        _table4(aligned, matrix, asked, length, draws, seed, json)
        return
    with working("answering"):
        places, index = known(aligned)
        scores = evaluate(matrix[places], index, asked, method.value, candidates)
    everything = total(scores)
    if json:
        sections = {name: {"right": score.right, "asked": score.asked} for name, score in scores.items()}
        whole = {"right": everything.right, "asked": everything.asked, "accuracy": everything.accuracy}
        print_json({"questions": len(asked), "method": method.value, "total": whole, "sections": sections})
        return
    made = table("section", "right", "asked", "%")
    for name, score in scores.items():
        percent = f"{100 * score.accuracy:.1f}" if score.asked else "–"
        made.add_row(name or "(none)", str(score.right), str(score.asked), percent)
    made.add_section()
    share = f"{100 * everything.accuracy:.1f}" if everything.asked else "–"
    made.add_row("total", str(everything.right), str(everything.asked), share, style="bold")
    screen = console()
    screen.print(made)
    screen.print(f"{everything.asked:,} of {len(asked):,} questions apply: all four words are known.")


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
    made = table("Table 4", "right", "asked", "%", "paper %")
    for row in rows:
        spread = f" ± {100 * statistics.stdev(row.right) / row.asked:.1f}" if len(row.right) > 1 and row.asked else ""
        right = f"{statistics.mean(row.right):.0f}"
        made.add_row(row.name, right, str(row.asked), f"{100 * row.accuracy:.1f}{spread}", f"{row.paper:.1f}")
    screen = console()
    screen.print(made)
    screen.print(f"± is the σ over {draws} draws of a position among the first {length} for each row.")
