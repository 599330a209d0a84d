"""Write RESULTS.md and its pages from the committed results alone: `python -m research.results results/ RESULTS.md`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from embinit.errors import EmbinitError
from embinit.files import component, replacing
from embinit.format import NONE, duration, interval, plural, probability, signed
from embinit.reports.analysis.answers import loss_note
from embinit.reports.analysis.lengths import length_note, length_tables
from embinit.reports.analysis.provenance import busy
from embinit.reports.analysis.published import called
from embinit.reports.analysis.size_costs import fall_table
from embinit.reports.legend import explanation
from embinit.reports.metrics import LOSS
from embinit.reports.model import Cell, Part, Summary, Table
from embinit.reports.results_reader import Compact, read_compact
from embinit.reports.writers import tables
from embinit.reports.writers.axis_marks import marks
from embinit.reports.writers.completed import Shown, not_run, shown, trimmed
from embinit.reports.writers.figures import figures, names, remove_others
from embinit.reports.writers.markdown import details, sentence, table, text
from embinit.reports.writers.tables import selection_table
from research import advice, overview, setting_tables, travel_page, versus_paper
from research.findings import Case, Claim, Finding, findings, holds, tallied
from research.trials import Trial, trials

#: Number of a block -> its pictures, as a page links them.
Pictures = Mapping[int, Sequence[str]]
#: Pages of the project's own evidence that are no experiment's.
FINDINGS, VERSUS_PAPER, ADVICE, TRAVEL = "findings.md", "versus_paper.md", "advice.md", "travel_rule.md"


def main(words: Sequence[str]) -> None:
    """Write RESULTS.md, a page an experiment, and their figures: `FOLDER OUT [--no-figures]`."""
    draw = "--no-figures" not in words
    places = [word for word in words if not word.startswith("--")]
    if len(places) != 2:
        raise EmbinitError("give the folder of results and the file to write: results/ RESULTS.md")
    folder, out = Path(places[0]), Path(places[1])
    compacts = read_compacts(folder)
    summaries = sorted((one.summary() for one in compacts if one.experiment.kind != "verdict"), key=_rank)
    figure_folder = folder / "figures"
    if draw:
        axis_marks = marks(compacts)
        drawn = [path for summary in summaries for path in figures(summary, figure_folder, marks=axis_marks)]
        remove_others(figure_folder, drawn)
        travel_page.figure(compacts, figure_folder / travel_page.FIGURE)
    diagnosed = trials(compacts)
    notes = [note for one in compacts if one.experiment.kind == "verdict" for note in one.experiment.notes]
    for path, page in _pages(summaries, folder, diagnosed, notes):
        _write(path, page)
    rule = travel_page.page(compacts)
    if rule:
        _write(folder / TRAVEL, _page(rule))
    _write(out, short_document(summaries, diagnosed, os.path.relpath(folder, out.parent)))


def _pages(
    summaries: Sequence[Summary], folder: Path, diagnosed: Sequence[Trial], notes: Sequence[str]
) -> Iterator[tuple[Path, str]]:
    yield folder / FINDINGS, findings_page(summaries)
    yield folder / VERSUS_PAPER, _page(versus_paper.section(summaries))
    if diagnosed:
        yield folder / ADVICE, _page(advice.section(diagnosed, notes))
    for summary in summaries:
        pictures = {
            number: [f"figures/{name}" for name in names_of_block if (folder / "figures" / name).is_file()]
            for number, names_of_block in names(summary).items()
        }
        yield folder / page_name(summary), experiment_page(summary, pictures)


def _write(path: Path, content: str) -> None:
    with replacing(path) as file:
        file.write(content.encode())


def page_name(summary: Summary) -> str:
    """Return the name of an experiment's page."""
    return f"{component(summary.name, 'the name of the experiment')}.md"


def read_results(folder: Path) -> list[Summary]:
    """Return the reports of all results in a folder, by name."""
    return [one.summary() for one in read_compacts(folder)]


def read_compacts(folder: Path) -> list[Compact]:
    """Return all results in a folder, by name."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise EmbinitError(f"{folder} holds no results (*.json)")
    return [read_compact(path) for path in paths]


def short_document(summaries: Sequence[Summary], diagnosed: Sequence[Trial] = (), folder: str = "results") -> str:
    """Return RESULTS.md: the answers in short, and a link to the page of each experiment."""
    ordered = sorted(summaries, key=_rank)
    pages = [f"[The paper's findings, claim by claim]({folder}/{FINDINGS})"]
    pages += [f"[Our numbers beside the paper's]({folder}/{VERSUS_PAPER})"]
    pages += [f"[The advice of `embinit inspect`, judged]({folder}/{ADVICE})"] if diagnosed else []
    if any(summary.name == travel_page.EXPERIMENT for summary in ordered):
        pages.append(f"[How fast pre-trained rows should learn]({folder}/{TRAVEL})")
    rows = tuple(
        (
            Cell(f"[{summary.title}]({folder}/{page_name(summary)})"),
            Cell(str(summary.cost.runs) if summary.cost.runs else NONE),
            Cell(duration(busy([summary.cost])) if summary.cost.runs else NONE),
            Cell(f"`{summary.file or summary.name}`"),
        )
        for summary in ordered
    )
    header = ("experiment", "runs", "device time", "file")
    lines = [
        "# Results",
        "",
        "`make results` writes this page and the pages that it links from the files in `results/`. "
        "It computes every number anew.",
        "",
        *overview.section(ordered, findings(ordered), diagnosed),
        "## Pages",
        "",
        *(f"- {page}" for page in pages),
        "",
        _raw_table(header, rows),
    ]
    return _page(lines)


def _raw_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a Markdown table whose cells are Markdown already: links and code."""
    lines = [" | ".join(header), " | ".join(["---", "--:", "--:", "---"][: len(header)])]
    lines += [" | ".join(cell.text for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def findings_page(summaries: Sequence[Summary]) -> str:
    """Return the page that holds each of the paper's claims against our results."""
    lines = ["# The paper's findings", ""]
    for finding in findings(sorted(summaries, key=_rank)):
        lines += _finding(finding)
    return _page(lines)


def experiment_page(summary: Summary, pictures: Pictures | None = None) -> str:
    """Return an experiment's page: question, answer, tables, figures, and how to read them."""
    legend = [f"- {text(line)}" for line in dict.fromkeys(explanation(summary))]
    return _page([*_experiment(summary, pictures or {}), "## How to read this page", "", *legend])


def _page(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _rank(summary: Summary) -> int:
    """Return the paper's tables first, then its figure of the same runs, those on open questions, and others."""
    measured = any(part.measured is not None and part.paper for part in summary.parts)
    if measured or "paper" in PurePosixPath(summary.file).parts[:-1]:
        return 1 if summary.name.startswith("figure") else 0
    return 2 if overview.is_open(summary) else 3


def _finding(finding: Finding) -> list[str]:
    lines = [f"## {text(finding.title)}", ""]
    for claim in finding.claims:
        said = claim.text[:1].upper() + claim.text[1:]
        lines += [f"**{text(sentence(said))}** {text(sentence(claim.outcome))}{_where(claim)}", ""]
        if claim.cases:
            header = (
                "block", f"{claim.ours} against {claim.against}", "95 %", "p (Holm)", "paper", "outcome", "validation loss",
                "by the loss",
            )  # fmt: skip
            rows = tuple(
                (
                    Cell(case.where),
                    Cell(f"{signed(case.difference.mean, case.metric.digits)} {case.metric.unit}"),
                    Cell(interval(case.difference.low, case.difference.high, case.metric.digits, sign=True)),
                    Cell(probability(case.difference.holm_p)),
                    Cell(signed(case.paper, case.metric.digits)),
                    Cell(case.said),
                    Cell(_loss(case)),
                    Cell(case.loss_outcome or NONE),
                )
                for case in claim.cases
            )
            lines += [table(Table("", header, rows)), ""]
    return lines


def _loss(case: Case) -> str:
    if case.loss is None:
        return NONE
    spread = interval(case.loss.low, case.loss.high, LOSS.digits, sign=True)
    return f"{signed(case.loss.mean, LOSS.digits)} {spread}"


def _where(claim: Claim) -> str:
    """Return where a claim holds, and how many open cases are ones in which the paper's difference is clear."""
    place = holds(claim.cases)
    said = f" {text(sentence(place[:1].upper() + place[1:]))}" if place else ""
    left = [case for case in claim.cases if case.outcome == "open"]
    clear = sum(case.clear for case in left)
    if clear:
        said += f" In {clear} of {plural(len(left), 'open case')} the paper's own difference is larger than its σ."
    by_loss = tallied(claim.cases, by_loss=True)
    return f"{said} By the validation loss: {by_loss}." if by_loss else said


def _experiment(summary: Summary, pictures: Mapping[int, Sequence[str]]) -> list[str]:
    blocks, whole = shown(summary), trimmed(summary)
    lines = [f"# {text(summary.title)}", "", text(summary.question), ""]
    if blocks:
        lines += [f"**{text(sentence(summary.answer))}**", ""]
        said = [*(sentence(one) for one in whole.caveats), *summary.notes]
        lines += [f"- {text(one)}" for one in said] + [""] * bool(said)
        glance = tables.overview(whole)
        lines += [table(glance), ""] if glance is not None else []
        chosen = selection_table(summary.choices)
        lines += [table(chosen), "", text(sentence(chosen.caption)), ""] if chosen is not None else []
    together = _together(blocks)
    for one in blocks if together is None else ():
        lines += _block(one, pictures.get(one.place, ()), len(blocks) == 1)
    if together is not None:
        sources = dict(source for one in blocks for source in one.part.sources)
        about = [f"- {text(name)}: {text(said)}" for name, said in sources.items()]
        lines += [*details(together.caption, [table(together), ""]), *about, *[""] * bool(about)]
    left = not_run(summary)
    if left:
        lines += ["What is missing:", "", *(f"- {text(name)}: {text(_ended(why))}" for name, why in left), ""]
    commands = " and ".join(f"`{command}`" for command in summary.commands)
    took = f"{plural(summary.cost.runs, 'run')}, {duration(busy([summary.cost]))}. " if summary.cost.runs else ""
    return [*lines, f"{took}Again: {commands}.", ""]


def _ended(said: str) -> str:
    return said if said.endswith(".") else f"{said}."


def _together(blocks: Sequence[Shown]) -> Table | None:
    """Return several blocks that were measured as one table, each named once; None where they are no such blocks."""
    found = [(one.part.name, one.part.measured) for one in blocks if one.part.measured is not None]
    if len(found) < 2 or len(found) < len(blocks) or len({made.header for _, made in found}) > 1:
        return None
    rows = [(Cell("" if number else name), *row) for name, made in found for number, row in enumerate(made.rows)]
    first = found[0][1]
    return Table(first.caption, ("block", *first.header), tuple(rows), first.words + 1)


def _block(one: Shown, pictures: Sequence[str], alone: bool) -> list[str]:
    """Return a block: open where it is the only one, a sweep or a figure of the paper; else folded under its answer."""
    part = one.part
    image = [line for picture in pictures for line in (f"![{text(part.name)}]({picture})", "")]
    figured = called(part.paper)[0].startswith("figure") if part.paper else False
    if part.sweep is None and not alone and not figured:
        inside = [*_tables(part, folded=True), *_lengths(part), *_about(one), *image]
        return details(_ended(part.answer), inside, part.name)
    lines = [f"## {text(part.name)}", ""]
    lines += image if part.sweep is not None or figured else []
    # The answer of a block that is alone is the experiment's.
    lines += [] if alone else [text(sentence(part.answer)), ""]
    lines += [*_tables(part, folded=False), *_lengths(part), *_about(one)]
    return lines if part.sweep is not None or figured or not image else [*lines, *details("Validation curves", image)]


def _tables(part: Part, folded: bool) -> list[str]:
    """Return a block's table; where a small one says it, that first, and the long one folded."""
    whole = tables.block_table(part)
    caption = [f"{text(_ended(whole.caption))}", ""] if whole.caption else []
    further = None if part.measured is not None else tables.others(part, part.metric.name)
    caption += [table(further), ""] if further is not None else []
    small = None if part.measured is not None else setting_tables.sweep_grid(part) or setting_tables.grid(part)
    if small is None:
        return [table(whole), "", *caption]
    added = [f"{text(_ended(small.caption))}", ""] if small.caption else []
    fell = fall_table(part)
    cost = [table(fell), "", text(_ended(fell.caption)), ""] if fell is not None else []
    longer = [table(whole), ""]
    return [table(small), "", *caption, *added, *cost, *(longer if folded else details("Intervals and tests", longer))]


def _lengths(part: Part) -> list[str]:
    return [line for made in length_tables(part) for line in (table(made), "", text(_ended(made.caption)), "")]


def _about(one: Shown) -> list[str]:
    by_loss = loss_note(one.part.rows) if one.part.sweep is None else ""
    said = [sentence(note) for note in (by_loss, length_note(one.part.rows, one.part.metric.split)) if note]
    said += [f"{name}: {about}" for name, about in one.part.sources]
    said += [sentence(left) for left in one.left]
    return [f"- {text(line)}" for line in said] + [""] * bool(said)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except EmbinitError as error:
        sys.exit(f"embinit: {error}")
