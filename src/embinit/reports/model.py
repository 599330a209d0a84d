"""A report as one plain value. Writers (Markdown, CSV, LaTeX, the page) read nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from embinit.experiments.experiment import Axes
from embinit.reports.scores import Choice, Metric, TableRow
from embinit.reports.verdicts import Answer, InBlock, ReportVerdict
from embinit.statistics import MeanInterval


@dataclass(frozen=True)
class Curve:
    """A history over its epochs: the mean, and mean ± σ over seeds."""

    series: str
    label: str
    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    seeds: int


@dataclass(frozen=True, kw_only=True)
class SweepPoint(MeanInterval):
    """One place of a sweep, and the mean score there."""

    x: float
    label: str


@dataclass(frozen=True)
class Sweep:
    """A score against a number, a line for each series."""

    #: its name in a title, and on the axis
    name: str
    axis: str
    logarithmic: bool
    lines: dict[str, tuple[SweepPoint, ...]]
    #: line -> the words of its name: recipe, settings
    words: dict[str, tuple[str, ...]]
    #: line -> numbers of its colour and of its dashes; 0 is the baseline's colour, and no dashes
    looks: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class MatrixSummary:
    """An embedding matrix at the start of training; numbers are those of the lowest seed."""

    series: str
    label: str
    side: str
    rows: int
    dim: int
    mean: float
    std: float
    min: float
    max: float
    #: σ as the model adds it, over the rms of the positions; None if positions are not added
    ratio: float | None
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    #: share of types and of running tokens that the source has; None for random rows
    types: float | None
    tokens: float | None
    kinds: dict[str, int]
    #: σ that the paper prints for it
    paper: float | None


@dataclass(frozen=True)
class Example:
    """One sentence of the test set, with the output of each row's lowest seed."""

    number: int
    source: str
    reference: str
    #: series -> output
    outputs: dict[str, str]


@dataclass(frozen=True)
class TableCell:
    """The text of a cell, and whether it is bold."""

    text: str
    strong: bool = False
    #: marks and counts, behind the number so that numbers stay aligned
    after: str = ""
    #: a link to a place on the page
    link: str = ""

    def __str__(self) -> str:
        space = " " if self.after.startswith("(") else ""
        return f"{self.text}{space}{self.after}"


@dataclass(frozen=True)
class Table:
    """Column names, and rows of as many cells; the first column holds words, the others numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    #: number of columns with words, from the left
    words: int = 1


@dataclass(frozen=True)
class Part:
    """One block of an experiment."""

    name: str
    task: str
    metric: Metric
    #: why it was not run; empty if it was
    missing: str
    #: table, task, embedding
    paper: tuple[str, ...]
    rows: tuple[TableRow, ...]
    answer: Answer
    notes: tuple[str, ...]
    #: name of a history -> a curve for each row
    curves: dict[str, tuple[Curve, ...]]
    sweep: Sweep | None
    shapes: tuple[MatrixSummary, ...]
    examples: tuple[Example, ...]
    #: pairs of a source's name and its description
    sources: tuple[tuple[str, str], ...]
    #: name of a score -> how it was computed
    signatures: dict[str, str]
    #: settings that all of its runs share
    settings: dict[str, str]
    #: the measurements of an experiment that trains nothing (Tables 2, 4, 6, 8)
    measured: Table | None = None
    #: axes of the start that was named before it was run
    candidate: Axes = ()
    #: the name of the block that it chooses a start for; empty: none
    chooses_for: str = ""
    #: whether it can be measured here but was not yet
    pending: bool = False


@dataclass(frozen=True)
class ExperimentCost:
    """The runs of an experiment: their number, time, devices and versions."""

    runs: int
    planned: int
    #: all of `shares`
    seconds: float
    #: key of a run -> its share of the seconds of its group
    shares: dict[str, float]
    #: the cost that the experiment's file states
    expected: str
    devices: tuple[str, ...]
    versions: dict[str, str]
    commits: tuple[str, ...]
    finished: str
    #: key of a run -> device, begin and end of its group in seconds since 1970, if known
    spans: dict[str, tuple[str, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """A whole report."""

    name: str
    title: str
    question: str
    baseline: str
    answer: Answer
    #: sentences on the limits of the answer: few seeds, missing runs
    caveats: tuple[str, ...]
    notes: tuple[str, ...]
    #: recipes that appear -> their description
    recipes: dict[str, str]
    #: series, the baseline first -> the number of its colour; the paper's starts have the same in every report
    colors: dict[str, int]
    parts: tuple[Part, ...]
    cost: ExperimentCost
    commands: tuple[str, ...]
    #: the experiment's TOML
    file: str = ""
    choices: tuple[Choice, ...] = ()
    #: text instead of the usual introduction, if the runs are not embinit's own
    introduction: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        content: dict[str, Any] = _json_value(asdict(self))
        for part in content["parts"]:
            for row in part["rows"]:
                # The first difference and the others, as in earlier versions.
                row["difference"], row["also"] = (row["differences"] or [None])[0], row["differences"][1:]
        answers = [self.answer, *(part.answer for part in self.parts)]
        for place, answer in zip([content, *content["parts"]], answers, strict=True):
            place["answer"] = str(answer)
            place["verdicts"] = [_verdict(verdict) for verdict in answer.verdicts]
        return content


def _verdict(verdict: ReportVerdict) -> dict[str, Any]:
    """Return a verdict as JSON values; `kind` is the name of its type."""
    inner = {"verdict": _verdict(verdict.verdict)} if isinstance(verdict, InBlock) else {}
    return {"kind": type(verdict).__name__, **_json_value(asdict(verdict)), **inner}


def _json_value(value: Any) -> Any:
    """Return a value with text as its keys and lists as its sequences."""
    if isinstance(value, dict):
        return {str(key): _json_value(inner) for key, inner in value.items()}
    return [_json_value(inner) for inner in value] if isinstance(value, list | tuple) else value
