"""Scores of anybody's training as a CSV (`start, seed, score`, optionally `block`), and their report.

Each block and each column of scores becomes a block of an experiment, so that the statistics are those of every report.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import stdev

from embinit.errors import EmbinitError, closest
from embinit.experiments.experiment import Block, Experiment, Planned
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Spec, Task
from embinit.files import read_whole
from embinit.format import listed
from embinit.reports.analysis.provenance import report_command
from embinit.reports.model import Summary
from embinit.reports.scores import Metric
from embinit.reports.summarize import summarize

_START, _SEED, _BLOCK = "start", "seed", "block"
#: Names of starts that are the baseline by default: the first of these in the file, otherwise its first start.
_BASELINES = ("xavier", "random", "baseline", "default")
#: Columns whose lower values are better.
_FALLING = re.compile(r"(^|[\W_])(loss|perplexity|ppl|error|wer|cer|nll|mae|mse|rmse|bpc)$", re.IGNORECASE)
#: No table of scores comes near this size.
_LARGEST = 16 << 20
#: A block has a run of each start with each seed; an experiment's grid has this limit too.
_LARGEST_BLOCK = 100_000
#: Sums and squares of larger scores do not fit a float.
_LARGEST_SCORE = 1e100
#: The internal name of every score and split; reports show the metric's label.
_SCORE, _SPLIT = "score", ""
_INTRODUCTION = (
    "Each score is that of one training run. Runs of one seed are compared with each other, so starts should share "
    "everything else under one seed: other weights, order of the data, and settings."
)


@dataclass
class _ScoreLine:
    """One line of the file."""

    block: str
    start: str
    seed: int
    #: column -> score; None if the cell is empty
    scores: dict[str, float | None]


@dataclass(frozen=True)
class ScoreTable:
    """The scores of a file, as an experiment with results."""

    experiment: Experiment
    results: dict[str, Result]
    #: block -> how its score is shown
    metrics: dict[str, Metric]
    #: sentences on ignored columns, missing seeds and guesses
    notes: tuple[str, ...]

    def summary(self, file: str, options: Sequence[str] = ()) -> Summary:
        """Return the report. `file` and `options` are for the command that makes it again."""
        report = summarize(self.experiment, self.results, shown={}, file=file, metrics=self.metrics)
        return replace(
            report,
            caveats=(*self.notes, *report.caveats),
            parts=tuple(replace(part, settings={}) for part in report.parts),
            commands=(report_command(file, options),),
            introduction=_INTRODUCTION,
        )


def read_scores(path: Path, *, baseline: str | None = None, lower_is_better: bool = False) -> ScoreTable:
    """Return the scores of a CSV file, ready for a report.

    Parameters
    ----------
    path
        A table with a header, separated by commas, semicolons or tabs. It has the columns `start` and `seed`, perhaps
        `block`, and one or more columns of scores. An empty cell is a missing run; `nan` is a run that diverged.
    baseline
        The start that the others are compared with; by default `xavier`, `random`, `baseline` or `default`, or else the
        first start of the file.
    lower_is_better
        Whether lower scores are better. Columns named like a loss, an error or a perplexity need no option.

    Returns
    -------
    ScoreTable
        An experiment, its results and metrics.

    Raises
    ------
    EmbinitError
        If the file is not such a table; the message names the line.
    """
    runs, columns, notes = _read_runs(path)
    starts = list(dict.fromkeys(run.start for run in runs))
    if baseline is not None and baseline not in starts:
        raise EmbinitError(f"{path} has no start {baseline!r}{closest(baseline, starts)}")
    base = baseline or next((name for name in _BASELINES if name in starts), starts[0])
    if baseline is None:
        notes.append(f"The baseline is {base}; choose another with --baseline.")
    blocks, results, metrics = [], dict[str, Result](), {}
    for name, column, members in _groups(path, runs, columns):
        block = _block(path, name, column, members, starts)
        blocks.append(block)
        metrics[name] = _metric(column, members, lower_is_better)
        results |= _results(block, column, members)
        notes += _missing_seeds(block, results)
    if falling := list(dict.fromkeys(metric.label for metric in metrics.values() if not metric.higher)):
        notes.append(f"Lower is better for {listed(falling)}.")
    question = f"Which of {len(starts)} starts reaches the best {listed(columns)}?"
    experiment = Experiment(path.stem, path.name, question, tuple(blocks), baseline=base)
    return ScoreTable(experiment, results, metrics, tuple(notes))


# ---------------------------------------------------------------- the file


def _read_runs(path: Path) -> tuple[list[_ScoreLine], list[str], list[str]]:
    """Return the runs, the columns of scores, and notes about columns that were left out."""
    header, lines = _table(path)
    others = [name for name in header if name not in (_START, _SEED, _BLOCK)]
    text_columns = [name for name in others if not any(_is_number(cells[name]) for _, cells in lines)]
    columns = [name for name in others if name not in text_columns]
    if not columns:
        for name in text_columns[-1:]:  # a number that is written differently, such as 2,5 or 2.5 %
            number, cells = next(((number, cells) for number, cells in lines if cells[name]), lines[0])
            _score(f"{path}, line {number}: {name}", cells[name])
        raise EmbinitError(f"{path} has no column of scores beside {listed(header)}; add `score` with a number a line")
    runs = [_run(f"{path}, line {number}", cells, columns) for number, cells in lines]
    seen: dict[tuple[str, str, int], int] = {}
    for run, (number, _) in zip(runs, lines, strict=True):
        first = seen.setdefault((run.block, run.start, run.seed), number)
        if first != number:
            where = f" in block {run.block}" if run.block else ""
            raise EmbinitError(
                f"{path}, lines {first} and {number}: {run.start} has two lines for seed {run.seed}{where}"
            )
    notes = [f"Columns without numbers are left out: {listed(text_columns)}."] if text_columns else []
    return runs, columns, notes


def _table(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the header, and each line's number and cells."""
    try:
        text = read_whole(path, _LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EmbinitError(f"{path} is not UTF-8; save the table as CSV in UTF-8") from None
    first = text.partition("\n")[0]
    reader = csv.reader(text.splitlines(), delimiter=max(",;\t", key=first.count))
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise EmbinitError(f"{path}, line {reader.line_num} cannot be read as CSV: {error}") from None
    if not lines:
        raise EmbinitError(f"{path} is empty; its first line must name the columns start, seed and score")
    header = [name.lower() if name.lower() in (_START, _SEED, _BLOCK) else name for name in lines[0][1]]
    for name in (_START, _SEED):
        if name not in header:
            near = closest(name, filter(None, header))
            hint = near if "did you mean" in near else f"; it has {listed(list(filter(None, header)))}"
            raise EmbinitError(
                f"{path} has no column {name!r}{hint}; its first line must name the columns start, seed and score, for "
                "example `start,seed,score`"
            )
    if len(set(header)) < len(header) or not all(header):
        raise EmbinitError(f"{path}: every column needs a name of its own; the first line has {', '.join(header)}")
    if not lines[1:]:
        raise EmbinitError(f"{path} has a header and no scores; add a line for each run")
    for number, cells in lines:
        if len(cells) != len(header):
            raise EmbinitError(f"{path}, line {number} has {len(cells)} cells, but the header has {len(header)}")
    return header, [(number, dict(zip(header, cells, strict=True))) for number, cells in lines[1:]]


def _run(place: str, cells: Mapping[str, str], columns: Sequence[str]) -> _ScoreLine:
    if not cells[_START]:
        raise EmbinitError(f"{place}: the start is empty; give it a name")
    try:
        seed = int(cells[_SEED])
    except ValueError:
        raise EmbinitError(f"{place}: the seed is {cells[_SEED][:40]!r}, but a whole number is expected") from None
    scores = {name: _score(f"{place}: {name}", cells[name]) for name in columns}
    return _ScoreLine(cells.get(_BLOCK, ""), cells[_START], seed, scores)


def _score(place: str, cell: str) -> float | None:
    """Return the number of a cell, None for an empty one; infinite numbers count as NaN."""
    if not cell:
        return None
    if not _is_number(cell):
        plain = cell.replace(",", ".").removesuffix("%").strip()
        hint = f"; write {plain}" if _is_number(plain) else ""
        raise EmbinitError(f"{place} is {cell[:40]!r}, but a number is expected{hint}")
    value = float(cell)
    if math.isfinite(value) and abs(value) > _LARGEST_SCORE:
        raise EmbinitError(
            f"{place} is {cell[:40]}, but a number from −{_LARGEST_SCORE:g} to {_LARGEST_SCORE:g} is expected"
        )
    return value if math.isfinite(value) else math.nan


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


# ---------------------------------------------------------------- the experiment


def _groups(
    path: Path, runs: Sequence[_ScoreLine], columns: Sequence[str]
) -> Iterator[tuple[str, str, list[_ScoreLine]]]:
    """Yield the name, the column and the runs of each block of the report."""
    for column in columns:
        for block in dict.fromkeys(run.block for run in runs):
            words = [block or path.stem, *([column] if len(columns) > 1 else [])]
            yield ", ".join(words), column, [run for run in runs if run.block == block]


def _block(path: Path, name: str, column: str, members: Sequence[_ScoreLine], starts: Sequence[str]) -> Block:
    """Return a block that plans every seed of it for each of its starts."""
    task = Task(name.removesuffix(f", {column}"))
    seeds = sorted({run.seed for run in members})
    own = {run.start for run in members}
    if len(own) * len(seeds) > _LARGEST_BLOCK:
        raise EmbinitError(
            f"{path}: block {name!r} has {len(own):,} starts and {len(seeds):,} seeds, more than {_LARGEST_BLOCK:,} runs; "
            "number the seeds of every start alike, or give fewer lines"
        )
    planned = [
        Planned(Spec(task, (), seed, ((_START, start), (_SCORE, column)), ()), ((_START, start),))
        for start in starts
        if start in own
        for seed in seeds
    ]
    return Block(name, tuple(planned), _SCORE, _SPLIT)


def _results(block: Block, column: str, members: Sequence[_ScoreLine]) -> dict[str, Result]:
    """Return the results of the runs that have a score or diverged, by key."""
    scores = {(run.start, run.seed): run.scores[column] for run in members}
    results = {}
    for planned in block.runs:
        value = scores.get((dict(planned.axes)[_START], planned.spec.seed))
        if value is not None:
            scores_of_run = {} if math.isnan(value) else {_SPLIT: {_SCORE: value}}
            results[planned.spec.key] = Result(planned.spec, [], 0, math.isnan(value), scores_of_run, {}, {}, {}, {})
    return results


def _missing_seeds(block: Block, results: Mapping[str, Result]) -> list[str]:
    """Return a sentence for each start that lacks seeds that another start has."""
    lacking: dict[str, list[str]] = {}
    for planned in block.runs:
        if planned.spec.key not in results:
            lacking.setdefault(dict(planned.axes)[_START], []).append(str(planned.spec.seed))
    return [
        f"{block.name}: {start} has no score for seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}."
        for start, seeds in lacking.items()
    ]


def _metric(column: str, members: Sequence[_ScoreLine], lower_is_better: bool) -> Metric:
    """Return how the scores of a column are shown: with two digits of their spread over seeds."""
    by_start: dict[str, list[float]] = {}
    for run in members:
        value = run.scores[column]
        if value is not None and not math.isnan(value):
            by_start.setdefault(run.start, []).append(value)
    spreads = [spread for values in by_start.values() if len(values) > 1 and (spread := stdev(values)) > 0]
    digits = min(6, max(0, 1 - math.floor(math.log10(min(spreads))))) if spreads else 2
    higher = not (lower_is_better or _FALLING.search(column))
    unit = "points" if column == _SCORE else column
    return Metric(_SCORE, column, unit, factor=1.0, digits=digits, higher=higher, split=_SPLIT)
