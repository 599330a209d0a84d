"""Decide whether a block learned anything: compare its best start with guessing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from embinit.experiments.runs.result import Result
from embinit.reports import metrics
from embinit.reports.scores import Metric, ScoreName, TableRow
from embinit.reports.verdicts import NothingLearned, RunsNotLearned, StartNotLearned
from embinit.statistics import MeanInterval
from embinit.statistics.student import t_quantile
from embinit.types import TEXT_TASKS

#: A translator below this BLEU has learned nothing, because common words in any order reach as much.
_LEAST_BLEU = 1.0
_BLEU = ("bleu", "sacrebleu")


def runs_not_learned(results: Mapping[str, Sequence[Result]], split: str) -> RunsNotLearned | None:
    """Return the runs of language models whose loss is above that of a uniform guess; None if there are none.

    Parameters
    ----------
    results
        The finished runs of each start.
    split
        The split whose loss is read.
    """
    starts = []
    for start, runs in results.items():
        # A results file has the matrices of the lowest seed alone.
        vocabulary = max((matrix["rows"] for result in runs for matrix in result.matrices.values()), default=0)
        losses = [loss for result in runs if (loss := result.scores.get(split, {}).get("loss")) is not None]
        high = sum(loss > math.log(vocabulary) for loss in losses) if vocabulary else 0
        if high and all(result.spec.task.kind in TEXT_TASKS for result in runs):
            starts.append(StartNotLearned(start, high, len(losses), vocabulary))
    return RunsNotLearned(tuple(starts)) if starts else None


def unlearned_rows(rows: Sequence[TableRow], unlearned_runs: RunsNotLearned | None) -> set[str]:
    """Return the labels of table rows that have runs that did not learn, or are compared with such a baseline."""
    unlearned = set() if unlearned_runs is None else {start.start for start in unlearned_runs.starts}
    bases = [row for row in rows if row.baseline]

    def compared_with(row: TableRow) -> Iterator[str]:
        for series in {difference.baseline for difference in row.differences}:
            own = [base.label for base in bases if (base.series, base.setting) == (series, row.setting)]
            yield from own or [base.label for base in bases if base.series == series]

    return {row.label for row in rows if not unlearned.isdisjoint((row.label, *compared_with(row)))}


def nothing_learned(
    rows: Sequence[TableRow],
    metric: Metric,
    majority: float | None = None,
    unlearned_runs: RunsNotLearned | None = None,
) -> NothingLearned | None:
    """Return the verdict that no start is better than guessing beyond noise; None if one is, or if chance is not known.

    A translator learned nothing below 1 BLEU. A classifier learned nothing if its Matthews correlation is zero within
    noise; without that score, if its accuracy is at the share of the largest class (`majority`, in the metric's unit).
    Language models learned nothing if all of their runs are among `unlearned_runs`.
    """
    means = [row.statistic for row in rows if row.statistic is not None]
    if not means:
        return None
    best = (max if metric.higher else min)(mean.mean for mean in means)
    if unlearned_runs is not None and unlearned_runs.all and len(unlearned_runs.starts) == len(means):
        return NothingLearned(metric, best, max(start.vocabulary for start in unlearned_runs.starts), "uniform")
    if not metric.higher:
        return None
    if metric.name in _BLEU:
        return NothingLearned(metric, best, _LEAST_BLEU, "bleu") if best < _LEAST_BLEU else None
    if metrics.kind(metric.name) != "classification":
        return None
    matthews = ScoreName(metric.split, "matthews")
    correlations = means if metric.name == "matthews" else [row.others.get(matthews) for row in rows if row.statistic]
    known = [mean for mean in correlations if mean is not None]
    if len(known) == len(means):
        return None if _any_above(known, 0.0) else NothingLearned(metric, best, 0.0, "matthews")
    if majority is None or metric.name != "accuracy" or _any_above(means, majority):
        return None
    return NothingLearned(metric, best, majority, "majority")


def majority_share(labels: Sequence[str]) -> float | None:
    """Return the share of the most frequent label.

    >>> majority_share(["yes", "no", "yes", "yes"])
    0.75
    """
    return max(Counter(labels).values()) / len(labels) if labels else None


def _any_above(means: Sequence[MeanInterval], chance: float) -> bool:
    """Return whether a mean lies above chance by its 95 % interval, with one σ that is pooled over all of them."""
    freedom = sum(mean.n - 1 for mean in means if mean.std is not None)
    if freedom == 0:
        return any(mean.mean > chance for mean in means)
    squares = math.fsum((mean.n - 1) * mean.std**2 for mean in means if mean.std is not None)
    reach = t_quantile(0.975, freedom) * math.sqrt(squares / freedom)
    return any(mean.mean - reach / math.sqrt(mean.n) > chance for mean in means)
