"""Verdicts as data: one type for each conclusion. `sentences.py` puts them into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from embinit.experiments.experiment import Baseline
from embinit.reports.scores import Choice, Difference, Metric
from embinit.statistics import MeanInterval

#: "better" or "worse" than every baseline beyond noise; empty if neither
Direction = Literal["better", "worse", ""]
#: What a tally counts.
Unit = Literal["setting", "comparison", "block"]


@dataclass(frozen=True)
class NotRun:
    """A block cannot be run here."""

    reason: str


@dataclass(frozen=True)
class NothingYet:
    """There is nothing to report: no finished run, no measurement, or no block at all."""

    lacking: Literal["runs", "measurements", "blocks"]


@dataclass(frozen=True)
class NothingLearned:
    """No start of the block is better than chance beyond noise."""

    metric: Metric
    #: the highest mean of all starts
    best: float
    #: the score of guessing, in the metric's unit
    chance: float
    #: "bleu": a fixed line; "matthews": no correlation with the labels; "majority": the share of the largest class;
    #: "uniform": the perplexity of a guess that gives every token the same probability
    by: Literal["bleu", "matthews", "majority", "uniform"]


@dataclass(frozen=True)
class StartNotLearned:
    """The number of a start's runs that did not learn, and of all its runs."""

    start: str
    runs: int
    total: int
    #: the perplexity of a uniform guess: the number of tokens in the vocabulary
    vocabulary: int


@dataclass(frozen=True)
class RunsNotLearned:
    """Runs of language models whose loss is above that of a uniform guess."""

    starts: tuple[StartNotLearned, ...]

    @property
    def all(self) -> bool:
        """Return whether all runs of these starts did not learn."""
        return all(start.runs == start.total for start in self.starts)


@dataclass(frozen=True)
class HighestMean:
    """No baseline is among the starts; this one has the highest mean."""

    start: str
    mean: float
    metric: Metric
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True)
class OnlyBaselines:
    """Only baselines have finished runs: name -> mean."""

    means: tuple[tuple[str, float], ...]
    metric: Metric


@dataclass(frozen=True)
class NoComparison:
    """Starts cannot be compared: the baseline has no run, no seed is shared with it, or one seed alone is."""

    reason: Literal["no baseline run", "no shared seed", "one seed"]
    baselines: tuple[Baseline, ...]


@dataclass(frozen=True)
class BlocksNotComparable:
    """None of these blocks has a start and a baseline to compare."""

    blocks: int


@dataclass(frozen=True)
class StartDifferences:
    """A start and its differences, baseline by baseline."""

    start: str
    differences: tuple[Difference, ...]
    metric: Metric


@dataclass(frozen=True)
class UseStart:
    """The best of the starts that are better than all of their baselines."""

    best: StartDifferences
    #: others that are better too and cannot be told from the best
    equal: tuple[str, ...]

    @property
    def seeds(self) -> int:
        """Return the fewest seeds of a difference."""
        return min(difference.n for difference in self.best.differences)

    @property
    def by_t_test_alone(self) -> bool:
        """Return whether the permutation test could not show any difference with so few seeds."""
        return not all(difference.can_show() for difference in self.best.differences)


@dataclass(frozen=True)
class NoneBetter:
    """No start is better than all of its baselines beyond noise."""

    baselines: tuple[Baseline, ...]
    metric: Metric
    #: starts that are worse; with several baselines they are not listed
    worse: tuple[StartDifferences, ...]
    #: whether every start that was compared is worse
    all_worse: bool
    #: starts that would be better if all of their runs had a score
    diverged: tuple[str, ...]
    #: with several baselines: the start whose smallest gain is the largest
    nearest: StartDifferences | None
    #: with one baseline: the difference that the seeds of the best start that is not worse can show, and their number
    detectable: float | None
    seeds: int
    #: baselines without a run
    lacking: tuple[str, ...]
    #: the start that `detectable` is about; empty if it holds for all starts
    limited: str = ""


@dataclass(frozen=True)
class SettingDifferences:
    """One start in several settings, against the setting that is the baseline."""

    starts: tuple[StartDifferences, ...]
    #: settings that are not listed
    more: int


@dataclass(frozen=True)
class StartTally:
    """How often a start is better or worse than its baselines."""

    start: str
    better: int
    worse: int
    total: int


@dataclass(frozen=True)
class StartTallies:
    """The tallies of all starts, the most helpful first."""

    baselines: tuple[Baseline, ...]
    unit: Unit
    tallies: tuple[StartTally, ...]
    blocks: int


@dataclass(frozen=True)
class SweepOptimum:
    """The best place of one line of a sweep."""

    line: str
    block: str
    x: float
    mean: float
    metric: Metric
    #: places next to it, up to which the line is as good within noise
    low: float
    high: float


@dataclass(frozen=True)
class SweepOptima:
    """The best place of each line of one sweep, the best line first."""

    optima: tuple[SweepOptimum, ...]
    #: lines that are not listed
    more: int


@dataclass(frozen=True)
class BestPlaces:
    """The best place of several sweeps, one each."""

    optima: tuple[SweepOptimum, ...]


@dataclass(frozen=True)
class SweepDifference:
    """Places of a sweep at which a line is better or worse than the baseline's line."""

    line: str
    direction: Direction
    baseline: str
    places: tuple[float, ...]


@dataclass(frozen=True)
class SizeChange:
    """How the score of one line changes from the smallest rows to the largest."""

    name: str
    change: MeanInterval
    metric: Metric


@dataclass(frozen=True)
class SizeChanges:
    """The changes of all lines of a recipe between two scales. The intervals have one σ, pooled over a block's lines."""

    recipe: str
    low: float
    high: float
    changes: tuple[SizeChange, ...]


@dataclass(frozen=True)
class JudgedChoices:
    """Starts that were all chosen, or all named, with their differences."""

    choices: tuple[Choice, ...]
    baselines: tuple[Baseline, ...]
    #: whether chosen starts are judged beside these named ones, against the same baselines
    second: bool = False


@dataclass(frozen=True)
class AwaitedChoices:
    """Starts that were chosen from all candidates and are not judged yet."""

    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class NamedStart:
    """The start that a block names, against all of its baselines."""

    choice: Choice


@dataclass(frozen=True)
class MatrixAgreement:
    """The number of measured matrices with the σ that the paper prints."""

    agreeing: int
    printed: int
    measured: int


@dataclass(frozen=True)
class AnalogiesKept:
    """The share of analogies that are right once positions are added: name -> accuracy."""

    accuracies: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class MatrixAdvice:
    """The advice for each matrix of a block: (source, side, advice)."""

    matrices: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class AdviceCounts:
    """How often each advice is given, over all blocks."""

    counts: tuple[tuple[str, int], ...]


BlockVerdict: TypeAlias = (
    NotRun
    | NothingYet
    | NothingLearned
    | RunsNotLearned
    | HighestMean
    | OnlyBaselines
    | NoComparison
    | BlocksNotComparable
    | UseStart
    | NoneBetter
    | SettingDifferences
    | StartTallies
    | SweepOptima
    | BestPlaces
    | SweepDifference
    | SizeChanges
    | JudgedChoices
    | AwaitedChoices
    | NamedStart
    | MatrixAgreement
    | AnalogiesKept
    | MatrixAdvice
    | AdviceCounts
)


@dataclass(frozen=True)
class InBlock:
    """A verdict on one block of several."""

    block: str
    verdict: BlockVerdict


ReportVerdict: TypeAlias = BlockVerdict | InBlock


@dataclass(frozen=True)
class Answer:
    """The verdicts on a block or on a whole experiment, and the sentences that state them."""

    verdicts: tuple[ReportVerdict, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.sentences)
