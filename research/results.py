"""Write RESULTS.md and its pages from the committed results: `python -m research.results results/ RESULTS.md`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from embinit.errors import EmbinitError
from embinit.files import component, replacing
from embinit.format import NONE, duration, ended, interval, plural, probability, signed
from embinit.reports.analysis.answers import loss_note
from embinit.reports.analysis.lengths import length_note, length_tables
from embinit.reports.analysis.provenance import busy
from embinit.reports.analysis.published import called
from embinit.reports.analysis.size_costs import size_table
from embinit.reports.legend import explanation
from embinit.reports.metrics import LOSS
from embinit.reports.model import Part, Summary, Table, TableCell
from embinit.reports.results_reader import ResultsFile, read_compact
from embinit.reports.writers import tables
from embinit.reports.writers.axis_marks import marks
from embinit.reports.writers.completed import CompletedBlock, completed_blocks, completed_only, missing_blocks
from embinit.reports.writers.figures import figures, names, remove_others
from embinit.reports.writers.markdown import details, table, text
from embinit.reports.writers.tables import selection_table
from research import advice, overview, registered_page, setting_tables, travel_page, versus_paper
from research.findings import OPEN, Case, Claim, PublishedFinding, findings, pooled_by_task, support, support_by_kind
from research.registered import PARTS
from research.trials import Trial, trials

#: Number of a block -> the links to its pictures.
Pictures = Mapping[int, Sequence[str]]
#: Pages about several experiments.
FINDINGS, VERSUS_PAPER, ADVICE, TRAVEL = "findings.md", "versus_paper.md", "advice.md", "travel_rule.md"
REGISTERED = "registered_rule.md"


def main(words: Sequence[str]) -> None:
    """Write RESULTS.md, a page for each experiment, and the figures: `FOLDER OUT [--no-figures]`."""
    draw = "--no-figures" not in words
    places = [word for word in words if not word.startswith("--")]
    if len(places) != 2:
        raise EmbinitError("expected the folder of results and the file to write: results/ RESULTS.md")
    folder, out = Path(places[0]), Path(places[1])
    files = read_files(folder)
    summaries = sorted((file.summary() for file in files if file.experiment.kind != "verdict"), key=_rank)
    figure_folder = folder / "figures"
    if draw:
        axis_marks = marks(files)
        drawn = [path for summary in summaries for path in figures(summary, figure_folder, marks=axis_marks)]
        remove_others(figure_folder, drawn)
        travel_page.figure(files, figure_folder / travel_page.FIGURE)
    diagnosed = trials(files)
    notes = [note for file in files if file.experiment.kind == "verdict" for note in file.experiment.notes]
    for path, page in _pages(summaries, folder, diagnosed, notes):
        _write(path, page)
    for name, lines in ((TRAVEL, travel_page.page(files)), (REGISTERED, registered_page.page(files))):
        if lines:
            _write(folder / name, _page(lines))
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
    """Return the file name of an experiment's page."""
    return f"{component(summary.name, 'the name of the experiment')}.md"


def read_results(folder: Path) -> list[Summary]:
    """Return the summaries of all results in a folder, sorted by file name."""
    return [file.summary() for file in read_files(folder)]


def read_files(folder: Path) -> list[ResultsFile]:
    """Return all results in a folder, sorted by file name."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise EmbinitError(f"{folder} holds no results (*.json)")
    return [read_compact(path) for path in paths]


def short_document(summaries: Sequence[Summary], diagnosed: Sequence[Trial] = (), folder: str = "results") -> str:
    """Return RESULTS.md: short answers, and a link to the page of each experiment."""
    ordered = sorted(summaries, key=_rank)
    pages = [f"[The paper's findings, claim by claim]({folder}/{FINDINGS})"]
    pages += [f"[Our numbers beside the paper's]({folder}/{VERSUS_PAPER})"]
    pages += [f"[The advice of `embinit inspect`, judged]({folder}/{ADVICE})"] if diagnosed else []
    if any(summary.name == travel_page.EXPERIMENT for summary in ordered):
        pages.append(f"[How fast pre-trained rows should learn]({folder}/{TRAVEL})")
    if any(summary.name in PARTS for summary in ordered):
        pages.append(f"[The test of the registered rule]({folder}/{REGISTERED})")
    rows = tuple(
        (
            TableCell(f"[{summary.title}]({folder}/{page_name(summary)})"),
            TableCell(str(summary.cost.runs) if summary.cost.runs else NONE),
            TableCell(duration(busy([summary.cost])) if summary.cost.runs else NONE),
            TableCell(f"`{summary.file or summary.name}`"),
        )
        for summary in ordered
    )
    header = ("experiment", "runs", "device time", "file")
    lines = [
        "# Results",
        "",
        "`make results` writes this page and the pages that it links from the files in `results/`. "
        "It recomputes every number.",
        "",
        *overview.section(ordered, findings(ordered), diagnosed),
        "## Pages",
        "",
        *(f"- {page}" for page in pages),
        "",
        _raw_table(header, rows),
    ]
    return _page(lines)


def _raw_table(header: Sequence[str], rows: Sequence[Sequence[TableCell]]) -> str:
    """Return a Markdown table whose cells contain Markdown: links and code."""
    lines = [" | ".join(header), " | ".join(["---", "--:", "--:", "---"][: len(header)])]
    lines += [" | ".join(cell.text for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def findings_page(summaries: Sequence[Summary]) -> str:
    """Return the page that tests each of the paper's claims with our results."""
    lines = ["# The paper's findings", ""]
    for finding in findings(sorted(summaries, key=_rank)):
        lines += _finding(finding)
    return _page(lines)


def experiment_page(summary: Summary, pictures: Pictures | None = None) -> str:
    """Return the page of an experiment: question, answer, tables, figures, and how to read them."""
    legend = [f"- {text(line)}" for line in dict.fromkeys(explanation(summary))]
    return _page([*_experiment(summary, pictures or {}), "## How to read this page", "", *legend])


def _page(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _rank(summary: Summary) -> int:
    """Return a sort key: the paper's tables, the paper's figure, open questions, other experiments."""
    measured = any(part.measured is not None and part.paper for part in summary.parts)
    if measured or "paper" in PurePosixPath(summary.file).parts[:-1]:
        return 1 if summary.name.startswith("figure") else 0
    return 2 if overview.is_open(summary) else 3


def _finding(finding: PublishedFinding) -> list[str]:
    lines = [f"## {text(finding.title)}", ""]
    for claim in finding.claims:
        lines += [f"**{text(claim.text)}** {text(_support(claim))}", ""]
        if claim.cases:
            header = (
                "block", f"{claim.ours} against {claim.against}", "95 %", "p (Holm)", "paper", "outcome", "validation loss",
                "by the loss",
            )  # fmt: skip
            rows = tuple(
                (
                    TableCell(case.where),
                    TableCell(f"{signed(case.difference.mean, case.metric.digits)} {case.metric.unit}"),
                    TableCell(interval(case.difference.low, case.difference.high, case.metric.digits, sign=True)),
                    TableCell(probability(case.difference.holm_p)),
                    TableCell(signed(case.paper, case.metric.digits)),
                    TableCell(case.outcome_text),
                    TableCell(_loss(case)),
                    TableCell(case.loss_outcome or NONE),
                )
                for case in claim.cases
            )
            lines += [table(Table("", header, rows)), "", *_pooled(claim)]
    return lines


def _pooled(claim: Claim) -> list[str]:
    """Return the table of a claim's differences pooled by data set; nothing unless a data set has several blocks."""
    pooled = pooled_by_task(claim.cases)
    if all(difference.blocks < 2 for difference in pooled.values()):
        return []
    units = {case.task: case.metric for case in claim.cases}
    rows = tuple(
        (
            TableCell(task),
            TableCell(str(difference.blocks)),
            TableCell(str(difference.n)),
            TableCell(f"{signed(difference.mean, units[task].digits)} {units[task].unit}"),
            TableCell(interval(difference.low, difference.high, units[task].digits, sign=True)),
        )
        for task, difference in pooled.items()
    )
    header = ("data set", "blocks", "seeds", "mean difference", "95 %, clustered by seed")
    return [table(Table("", header, rows)), ""]


def _loss(case: Case) -> str:
    if case.loss is None:
        return NONE
    spread = interval(case.loss.low, case.loss.high, LOSS.digits, sign=True)
    return f"{signed(case.loss.mean, LOSS.digits)} {spread}"


def _support(claim: Claim) -> str:
    """Return the support of a claim, and the number of open cases with a clear difference in the paper."""
    counts = str(claim.support)
    sentences = [f"{counts[:1].upper()}{counts[1:]}."]
    kinds = support_by_kind(claim.cases)
    if len(kinds) > 1:
        sentences.append(f"{'; '.join(f'{name.capitalize()}: {of_kind}' for name, of_kind in kinds.items())}.")
    undecided = [case for case in claim.cases if case.outcome == OPEN]
    clear = sum(case.clear for case in undecided)
    if clear:
        sentences.append(
            f"In {clear} of {plural(len(undecided), 'open case')} the paper's own difference is larger than its σ."
        )
    by_loss = support(claim.cases, by_loss=True)
    return " ".join([*sentences, *([f"By the validation loss: {by_loss}."] if by_loss.total else [])])


def _experiment(summary: Summary, pictures: Mapping[int, Sequence[str]]) -> list[str]:
    blocks, completed = completed_blocks(summary), completed_only(summary)
    lines = [f"# {text(summary.title)}", "", text(summary.question), ""]
    if blocks:
        lines += [f"**{text(str(summary.answer))}**", ""]
        bullets = [*completed.caveats, *summary.notes]
        lines += [f"- {text(bullet)}" for bullet in bullets] + [""] * bool(bullets)
        overview_table = tables.overview(completed)
        lines += [table(overview_table), ""] if overview_table is not None else []
        choices = selection_table(summary.choices)
        lines += [table(choices), "", text(ended(choices.caption)), ""] if choices is not None else []
    joined = _join_measured(blocks)
    for block in blocks if joined is None else ():
        lines += _block(block, pictures.get(block.place, ()), len(blocks) == 1)
    if joined is not None:
        sources = dict(source for block in blocks for source in block.part.sources)
        about = [f"- {text(name)}: {text(description)}" for name, description in sources.items()]
        lines += [*details(joined.caption, [table(joined), ""]), *about, *[""] * bool(about)]
    missing = missing_blocks(summary)
    if missing:
        lines += [
            "Blocks without results:",
            "",
            *(f"- {text(block.name)}: {text(block.reason)}" for block in missing),
            "",
        ]
    commands = " and ".join(f"`{command}`" for command in summary.commands)
    cost = f"{plural(summary.cost.runs, 'run')}, {duration(busy([summary.cost]))}. " if summary.cost.runs else ""
    return [*lines, f"{cost}To repeat this experiment, run {commands}.", ""]


def _join_measured(blocks: Sequence[CompletedBlock]) -> Table | None:
    """Return one table of all blocks; None unless there are several, all measured, with equal columns."""
    measured = [(block.part.name, block.part.measured) for block in blocks if block.part.measured is not None]
    if len(measured) < 2 or len(measured) < len(blocks) or len({content.header for _, content in measured}) > 1:
        return None
    rows = [
        (TableCell("" if number else name), *row)
        for name, content in measured
        for number, row in enumerate(content.rows)
    ]
    first = measured[0][1]
    return Table(first.caption, ("block", *first.header), tuple(rows), first.words + 1)


def _block(block: CompletedBlock, pictures: Sequence[str], alone: bool) -> list[str]:
    """Return the lines of a block: unfolded if it is the only one, a sweep or a figure of the paper; otherwise folded."""
    part = block.part
    images = [line for picture in pictures for line in (f"![{text(part.name)}]({picture})", "")]
    is_figure = called(part.paper)[0].startswith("figure") if part.paper else False
    if part.sweep is None and not alone and not is_figure:
        content = [*_tables(part, folded=True), *_further(part), *_about(block), *images]
        return details(str(part.answer), content, part.name)
    lines = [f"## {text(part.name)}", ""]
    lines += images if part.sweep is not None or is_figure else []
    # The answer of a single block is the answer of its experiment.
    lines += [] if alone else [text(str(part.answer)), ""]
    lines += [*_tables(part, folded=False), *_further(part), *_about(block)]
    if part.sweep is not None or is_figure or not images:
        return lines
    return [*lines, *details("Validation curves", images)]


def _tables(part: Part, folded: bool) -> list[str]:
    """Return the table of a block. If there is also a small table, it comes first and the long one is folded."""
    long = tables.block_table(part)
    caption = [f"{text(ended(long.caption))}", ""] if long.caption else []
    further = None if part.measured is not None else tables.others(part, part.metric.name)
    caption += [table(further), ""] if further is not None else []
    small = None if part.measured is not None else setting_tables.sweep_grid(part) or setting_tables.grid(part)
    if small is None:
        return [table(long), "", *caption]
    small_caption = [f"{text(ended(small.caption))}", ""] if small.caption else []
    sizes = size_table(part)
    cost = [table(sizes), "", text(ended(sizes.caption)), ""] if sizes is not None else []
    long_lines = [table(long), ""]
    long_lines = long_lines if folded else details("Intervals and tests", long_lines)
    return [table(small), "", *caption, *small_caption, *cost, *long_lines]


def _further(part: Part) -> list[str]:
    """Return the tables of scores by length and by both criteria for the epoch."""
    epochs = tables.epoch_choices(part)
    further = [*length_tables(part), *([epochs] if epochs is not None else [])]
    return [line for captioned in further for line in (table(captioned), "", text(ended(captioned.caption)), "")]


def _about(block: CompletedBlock) -> list[str]:
    by_loss = loss_note(block.part.rows) if block.part.sweep is None else ""
    bullets = [note for note in (by_loss, length_note(block.part.rows, block.part.metric.split)) if note]
    bullets += [f"{name}: {about}" for name, about in block.part.sources]
    bullets += block.left
    return [f"- {text(line)}" for line in bullets] + [""] * bool(bullets)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except EmbinitError as error:
        sys.exit(f"embinit: {error}")
