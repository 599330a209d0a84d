"""A report as one plain value: what every writer (Markdown, CSV, LaTeX, the page) reads, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from embinit.experiments.experiment import Axes
from embinit.statistics import Comparison, MeanInterval


class ScoreName(NamedTuple):
    """A score and the split that it was computed on; JSON joins the two: `test bleu`."""

    split: str
    score: str

    def __str__(self) -> str:
        return f"{self.split} {self.score}"


@dataclass(frozen=True)
class Metric:
    """A score and how to show it."""

    name: str
    #: as a person reads it: BLEU, accuracy
    label: str
    #: what one point of it is called in a sentence: BLEU, points
    unit: str
    #: what results are multiplied by: 100 for shares
    factor: float
    digits: int
    higher: bool
    split: str


@dataclass(frozen=True, kw_only=True)
class Difference(Comparison):
    """A table row against its baseline, paired by seed; `improvement` counts a lower score as better where it is."""

    baseline: str
    #: the smallest difference that so many seeds see four times in five; None below two
    detectable: float | None
    #: what these seeds can show, in a sentence
    power: str
    #: the t test's p after Holm over the report's table
    holm_p: float | None = None
    #: "better", "worse", or empty where noise explains it
    verdict: str = ""
    #: *, **, *** ; empty too where the exact test could never say it
    mark: str = ""


@dataclass(frozen=True)
class Beside:
    """The paper's number beside ours."""

    table: str
    mean: float
    std: float | None
    epoch: float | None
    #: ours minus the paper's
    difference: float | None
    #: whether our interval reaches the paper's mean ± σ; None where we have no interval
    within: bool | None
    #: the lowest validation loss, where it is printed (Table 3)
    loss: float | None = None


@dataclass(frozen=True)
class Stretched:
    """Sentences of like length, from `low` tokens to `high` (None: without end), and what a row reaches on them."""

    low: int
    high: int | None
    sentences: int
    #: seed -> score, in the metric's unit
    scores: dict[str, float]


@dataclass(frozen=True)
class Row:
    """Runs that differ by seed alone."""

    label: str
    axes: Axes
    #: what its colour goes by: the recipe, or all axes where there is none
    series: str
    #: values of the axes that are not a recipe, as text; rows of one setting are compared with each other
    setting: str
    baseline: bool
    planned: int
    #: runs whose loss became NaN, and those of them that left nothing to score
    diverged: int
    unscored: int
    #: seed -> score, in the metric's unit
    scores: dict[str, float]
    statistic: MeanInterval | None
    best: bool = False
    #: mean epoch whose weights were scored
    epoch: float | None = None
    #: seed -> the lowest validation loss
    losses: dict[str, float] = field(default_factory=dict)
    #: against the first baseline, then against the others
    difference: Difference | None = None
    also: tuple[Difference, ...] = ()
    #: baselines that it cannot be compared with yet
    lacking: tuple[str, ...] = ()
    paper: Beside | None = None
    #: the other scores, and what the paper has for them
    others: dict[ScoreName, MeanInterval] = field(default_factory=dict)
    others_paper: dict[ScoreName, Beside] = field(default_factory=dict)
    #: each score by the length of what was read, the shortest first
    lengths: dict[ScoreName, tuple[Stretched, ...]] = field(default_factory=dict)

    @property
    def loss(self) -> float | None:
        """Return the mean of the lowest validation losses."""
        return sum(self.losses.values()) / len(self.losses) if self.losses else None

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Return all differences, baseline by baseline."""
        return (() if self.difference is None else (self.difference,)) + self.also

    @property
    def verdict(self) -> str:
        """Return `better` or `worse` where it is that against every baseline; empty where one says otherwise, or lacks."""
        found = {one.verdict for one in self.differences}
        return found.pop() if len(found) == 1 and not self.lacking else ""

    @property
    def mark(self) -> str:
        """Return the mark that it has against every baseline: the shortest."""
        return min((one.mark for one in self.differences), key=len) if self.verdict else ""


@dataclass(frozen=True)
class Curve:
    """A history over the epochs that have it: mean, and mean ± σ over seeds."""

    series: str
    label: str
    epochs: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    seeds: int


@dataclass(frozen=True, kw_only=True)
class Point(MeanInterval):
    """One place of a sweep, and the mean score there."""

    x: float
    label: str


@dataclass(frozen=True)
class Sweep:
    """A score against a number, a line for each series."""

    #: what it is called in a title, and on the axis
    name: str
    axis: str
    logarithmic: bool
    lines: dict[str, tuple[Point, ...]]
    #: line -> places of its colour and of its dashes; 0 is the baseline's colour, and no dashes
    looks: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Shape:
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
    #: σ as the model adds it to the positions, over their rms; None where positions are not added
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
    """One sentence of the test set, as each row's lowest seed put it."""

    number: int
    source: str
    reference: str
    #: series -> what came out
    outputs: dict[str, str]


@dataclass(frozen=True)
class Cell:
    """Text of a table, and whether it stands out."""

    text: str
    strong: bool = False
    #: marks and counts, set behind the number so that numbers stay in line
    after: str = ""
    #: where on the page it leads
    link: str = ""

    def __str__(self) -> str:
        space = " " if self.after.startswith("(") else ""
        return f"{self.text}{space}{self.after}"


@dataclass(frozen=True)
class Table:
    """Column names, and rows of as many cells; the first column holds words, the others numbers."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    #: so many columns from the left are words
    words: int = 1


@dataclass(frozen=True)
class Part:
    """One block of an experiment."""

    name: str
    task: str
    metric: Metric
    #: why it was not run, if so
    missing: str
    #: table, task, embedding
    paper: tuple[str, ...]
    rows: tuple[Row, ...]
    answer: str
    notes: tuple[str, ...]
    #: name of a history -> a curve for each row
    curves: dict[str, tuple[Curve, ...]]
    sweep: Sweep | None
    shapes: tuple[Shape, ...]
    examples: tuple[Example, ...]
    #: names of sources -> what they are and whom they stand in for
    sources: tuple[tuple[str, str], ...]
    #: name of a score -> how it was computed
    signatures: dict[str, str]
    #: settings that all of its runs share
    settings: dict[str, str]
    #: what was measured where nothing is trained (Tables 2, 4, 6, 8)
    measured: Table | None = None
    #: axes of the row that was named before it was run
    candidate: Axes = ()
    #: the name of the block that it chooses a start for; empty: none
    chooses_for: str = ""


@dataclass(frozen=True)
class Choice:
    """A start that a block `X, chosen on` chooses, or that a block's `candidate` names, and how it does in the block `X`."""

    block: str
    metric: Metric
    label: str
    #: seeds that it was chosen on, and what it reached there; none where it was named
    seeds: tuple[str, ...]
    there: MeanInterval | None
    #: whether every start's runs were there to choose from
    complete: bool
    #: what it reaches on held-out seeds; None where it has no run there
    held_out: MeanInterval | None
    #: against each baseline there, with Holm's p over the differences of all that were chosen, or of all that were named
    differences: tuple[Difference, ...]
    #: baselines that it cannot be compared with yet
    lacking: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        """Return whether it was named beforehand, and not chosen."""
        return self.there is None

    @property
    def verdict(self) -> str:
        """Return `better` or `worse` where it is that against every baseline."""
        found = {one.verdict for one in self.differences}
        return found.pop() if len(found) == 1 and not self.lacking else ""


@dataclass(frozen=True)
class Cost:
    """What the runs took."""

    runs: int
    planned: int
    #: all of `shares`
    seconds: float
    #: a run's key -> its share of the seconds that it and those beside it took
    shares: dict[str, float]
    #: what the experiment's file says that it takes
    expected: str
    devices: tuple[str, ...]
    versions: dict[str, str]
    commits: tuple[str, ...]
    finished: str
    #: a run's key -> device, and between which seconds since 1970 it and those beside it ran; none where it is not known
    spans: dict[str, tuple[str, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """A whole report."""

    name: str
    title: str
    question: str
    baseline: str
    answer: str
    #: what limits the answer: few seeds, missing runs, stand-ins
    caveats: tuple[str, ...]
    notes: tuple[str, ...]
    #: recipes that appear -> what they are
    recipes: dict[str, str]
    #: series, the baseline first -> the place of its colour; the paper's starts have theirs in every report
    colors: dict[str, int]
    parts: tuple[Part, ...]
    cost: Cost
    commands: tuple[str, ...]
    #: the experiment's TOML
    file: str = ""
    choices: tuple[Choice, ...] = ()
    #: what is compared and why, if it is not embinit's own training
    introduction: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    """Return a value whose keys are text, as JSON wants them."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
