"""Scores as a report shows them: metrics, the table rows of a block, differences to baselines, and chosen starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from embinit.experiments.experiment import Axes
from embinit.experiments.runs.length_buckets import LengthBucket
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
    #: the name in tables: BLEU, accuracy
    label: str
    #: the unit in sentences: BLEU, points
    unit: str
    #: multiplies results: 100 for shares
    factor: float
    digits: int
    higher: bool
    split: str


@dataclass(frozen=True, kw_only=True)
class Difference(Comparison):
    """A table row against its baseline, paired by seed. `improvement` respects scores of which lower ones are better."""

    baseline: str
    #: the smallest difference that these seeds show in 80 % of cases; None below two seeds
    detectable: float | None
    #: a sentence on the differences that these seeds can show
    power: str
    #: the t test's p after Holm over the report's table
    holm_p: float | None = None
    #: "better", "worse", or empty if noise explains it
    verdict: str = ""
    #: *, **, ***; also empty if the exact test cannot show significance with these seeds
    mark: str = ""


@dataclass(frozen=True)
class PaperScore:
    """A number of the paper, and our difference to it."""

    table: str
    mean: float
    std: float | None
    epoch: float | None
    #: ours minus the paper's
    difference: float | None
    #: whether our interval reaches the paper's mean ± σ; None if we have no interval
    within: bool | None
    #: the lowest validation loss, if the paper prints it (Table 3)
    loss: float | None = None


@dataclass(frozen=True)
class LengthScores:
    """The scores of a table row on the sentences of one length bucket."""

    low: int
    high: int | None
    sentences: int
    #: seed -> score, in the metric's unit
    scores: dict[str, float]

    @property
    def bucket(self) -> LengthBucket:
        """Return the bucket."""
        return LengthBucket(self.low, self.high, self.sentences)


@dataclass(frozen=True)
class EpochChoice:
    """The validation score at the epochs that a criterion chooses, over seeds."""

    #: "highest score" (what a classifier keeps) or "lowest loss"
    criterion: str
    #: mean epoch
    epoch: float
    score: MeanInterval


@dataclass(frozen=True)
class TableRow:
    """A start in one setting: runs that differ only by seed."""

    label: str
    axes: Axes
    #: the recipe, or all axes if there is no recipe; it decides the colour
    series: str
    #: values of the axes that are not a recipe, as text; rows of one setting are compared with each other
    setting: str
    baseline: bool
    planned: int
    #: runs whose loss became NaN, and the number of them without a score
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
    #: against each of its baselines
    differences: tuple[Difference, ...] = ()
    #: baselines that it cannot be compared with yet
    lacking: tuple[str, ...] = ()
    paper: PaperScore | None = None
    #: the other scores, and the paper's
    others: dict[ScoreName, MeanInterval] = field(default_factory=dict)
    others_paper: dict[ScoreName, PaperScore] = field(default_factory=dict)
    #: each score by the length of the input, the shortest first
    lengths: dict[ScoreName, tuple[LengthScores, ...]] = field(default_factory=dict)
    #: for classifiers: the validation score by both criteria for the epoch
    epoch_choices: tuple[EpochChoice, ...] = ()

    @property
    def loss(self) -> float | None:
        """Return the mean of the lowest validation losses."""
        return sum(self.losses.values()) / len(self.losses) if self.losses else None

    @property
    def difference(self) -> Difference | None:
        """Return the difference to the first baseline; None if it is compared with none."""
        return self.differences[0] if self.differences else None

    @property
    def verdict(self) -> str:
        """Return `better` or `worse` if it is that against every baseline; empty otherwise, or if a baseline is missing."""
        verdicts = {difference.verdict for difference in self.differences}
        return verdicts.pop() if len(verdicts) == 1 and not self.lacking else ""

    @property
    def mark(self) -> str:
        """Return the weakest of its marks, if it is better or worse than every baseline."""
        return min((difference.mark for difference in self.differences), key=len) if self.verdict else ""


@dataclass(frozen=True)
class Choice:
    """A start that a block with `chooses_for` chose, or that a block names as its `candidate`, judged on other runs."""

    block: str
    metric: Metric
    label: str
    #: the seeds of the choice, and its mean there; empty and None if it was named
    seeds: tuple[str, ...]
    there: MeanInterval | None
    #: whether all starts to choose from were run
    complete: bool
    #: its mean on held-out seeds; None if it has no run there
    held_out: MeanInterval | None
    #: against each baseline there; Holm's p is over the differences of all that were chosen, or of all that were named
    differences: tuple[Difference, ...]
    #: baselines that it cannot be compared with yet
    lacking: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        """Return whether it was named beforehand, and not chosen."""
        return self.there is None

    @property
    def verdict(self) -> str:
        """Return `better` or `worse` if it is that against every baseline."""
        verdicts = {difference.verdict for difference in self.differences}
        return verdicts.pop() if len(verdicts) == 1 and not self.lacking else ""
