"""Decide the verdicts on a block and on an experiment that their seeds support, and list the limits of these verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from embinit.experiments.experiment import Baseline
from embinit.format import interval, listed, plural, signed
from embinit.reports.analysis.chance import nothing_learned, unlearned_rows
from embinit.reports.analysis.lengths import length_note
from embinit.reports.analysis.rows import LEVEL, difference
from embinit.reports.analysis.selection import choice_verdicts
from embinit.reports.analysis.size_costs import size_changes
from embinit.reports.analysis.sweeps import best_places, sweep_verdicts
from embinit.reports.metrics import LOSS
from embinit.reports.model import Part, Sweep
from embinit.reports.scores import Choice, Difference, Metric, TableRow
from embinit.reports.sentences import NAMED
from embinit.reports.verdicts import (
    BlocksNotComparable,
    BlockVerdict,
    HighestMean,
    InBlock,
    NoComparison,
    NoneBetter,
    NothingLearned,
    NothingYet,
    NotRun,
    OnlyBaselines,
    ReportVerdict,
    RunsNotLearned,
    SettingDifferences,
    StartDifferences,
    StartTallies,
    StartTally,
    Unit,
    UseStart,
)


def block_verdicts(
    rows: Sequence[TableRow],
    metric: Metric,
    baselines: Sequence[Baseline],
    sweep: Sweep | None,
    missing: str = "",
    majority: float | None = None,
    unlearned_runs: RunsNotLearned | None = None,
) -> tuple[BlockVerdict, ...]:
    """Return the verdicts on a block.

    Parameters
    ----------
    rows
        The table rows of the block, compared with their baselines.
    metric
        The score that the block is judged by.
    baselines
        Those of the experiment.
    sweep
        The block as a sweep, if it is one.
    missing
        Why the block cannot be run here; empty if it can.
    majority
        The share of the largest class, if it is known, in the metric's unit.
    unlearned_runs
        The runs of language models that are no better than a uniform guess, if there are any.
    """
    if missing:
        return (NotRun(missing),)
    if not any(row.statistic for row in rows):
        return (NothingYet("runs"),)
    unlearned = nothing_learned(rows, metric, majority, unlearned_runs)
    some = () if unlearned_runs is None else (unlearned_runs,)
    if sweep is not None and sweep.lines:
        return (*some, *sweep_verdicts(rows, metric, sweep)) if unlearned is None else (unlearned,)
    verdict = _compared(rows, metric, baselines, unlearned_rows(rows, unlearned_runs))
    if unlearned is None:
        return (*some, verdict)
    return (unlearned, verdict) if isinstance(verdict, UseStart) else (unlearned,)


def _compared(
    rows: Sequence[TableRow], metric: Metric, baselines: Sequence[Baseline], unlearned: Set[str]
) -> BlockVerdict:
    known = _of_block(rows, baselines)
    if _in_own_setting(baselines) and len({row.setting for row in rows}) > 1:
        return _tallies([rows], baselines, "setting") or _highest(rows, metric, known)
    starts = [row for row in rows if row.differences and not row.baseline]
    if not starts:
        return _not_compared(rows, metric, known)
    if all(difference.n < 2 for row in starts for difference in row.differences):
        return NoComparison("one seed", known)
    better = [row for row in starts if row.verdict == "better"]
    sound = sorted([row for row in better if not row.unscored], key=lambda row: _height(row, metric), reverse=True)
    if not sound:
        return _none_better(starts, better, metric, known, unlearned)
    equal = [row.label for row in sound[1:] if not is_beaten(sound[0], row, metric)][:NAMED]
    return UseStart(_differences(sound[0], metric), tuple(equal))


def _in_own_setting(baselines: Sequence[Baseline]) -> bool:
    """Return whether there is one baseline, in the setting of each table row; settings are then judged one by one."""
    return len(baselines) == 1 and not baselines[0].at


def _of_block(rows: Sequence[TableRow], baselines: Sequence[Baseline]) -> tuple[Baseline, ...]:
    """Return the baselines without pins on axes that these rows do not differ on."""
    values: dict[str, set[str]] = {}
    for axis, value in (pair for row in rows for pair in row.axes):
        values.setdefault(axis, set()).add(value)
    return tuple(
        replace(baseline, at=tuple(pair for pair in baseline.at if len(values.get(pair[0], ())) > 1))
        for baseline in baselines
    )


def _not_compared(rows: Sequence[TableRow], metric: Metric, baselines: tuple[Baseline, ...]) -> BlockVerdict:
    """Return why nothing is compared. Baselines in several settings are compared with the pinned one."""
    pinned = [_differences(row, metric) for row in rows if any(difference.n > 1 for difference in row.differences)]
    if pinned:
        return SettingDifferences(tuple(pinned[:NAMED]), max(0, len(pinned) - NAMED))
    bases = [row for row in rows if row.baseline]
    means = [(row.label, row.statistic.mean) for row in bases if row.statistic is not None]
    if not bases:
        return _highest(rows, metric, baselines)
    if not means:
        return NoComparison("no baseline run", baselines)
    if all(row.baseline for row in rows if row.statistic is not None):
        return OnlyBaselines(tuple(means[:NAMED]), metric)
    return NoComparison("no shared seed", baselines)


def _none_better(
    starts: Sequence[TableRow],
    diverged: Sequence[TableRow],
    metric: Metric,
    baselines: tuple[Baseline, ...],
    unlearned: Set[str],
) -> NoneBetter:
    worse = [row for row in starts if row.verdict == "worse"]
    nearest = max(starts, key=lambda row: min(_gain(difference, metric) for difference in row.differences))
    several = len(baselines) > 1
    # The spread of runs that did not learn says nothing about the others.
    learned = [row for row in starts if row.label not in unlearned]
    judged = [] if several else [row for row in learned if row.differences[0].detectable is not None]
    undecided = [row for row in judged if not row.verdict]
    limited = max(undecided, key=lambda row: _gain(row.differences[0], metric), default=None)
    seeds = {row.differences[0].n for row in undecided}
    return NoneBetter(
        baselines=baselines,
        metric=metric,
        worse=() if several else tuple(_differences(row, metric) for row in worse),
        all_worse=len(worse) == len(starts),
        diverged=tuple(row.label for row in diverged),
        nearest=_differences(nearest, metric) if several else None,
        detectable=None if limited is None else _detectable(limited.differences[0], judged),
        seeds=(limited or nearest).differences[0].n,
        lacking=tuple(dict.fromkeys(title for row in starts for title in row.lacking)) if several else (),
        limited="" if limited is None or (len(undecided) == len(starts) and len(seeds) == 1) else limited.label,
    )


def _detectable(difference: Difference, starts: Sequence[TableRow]) -> float | None:
    """Return the smallest difference that a start's seeds can show.

    With few seeds, the differences of one start may agree by chance. The σ that is pooled over all starts with as many
    seeds is then larger, and decides.
    """
    limits = [row.differences[0].detectable for row in starts if row.differences[0].n == difference.n]
    known = [limit for limit in limits if limit is not None]
    if difference.detectable is None:
        return None
    return max(difference.detectable, math.sqrt(sum(limit**2 for limit in known) / len(known)))


def _differences(row: TableRow, metric: Metric) -> StartDifferences:
    return StartDifferences(row.label, row.differences, metric)


def _highest(rows: Sequence[TableRow], metric: Metric, baselines: tuple[Baseline, ...]) -> HighestMean:
    best = max((row for row in rows if row.statistic is not None), key=lambda row: _height(row, metric))
    assert best.statistic is not None
    return HighestMean(best.label, best.statistic.mean, metric, baselines)


def _height(row: TableRow, metric: Metric) -> float:
    """Return the mean of a table row, negated if lower scores are better."""
    assert row.statistic is not None
    return row.statistic.mean if metric.higher else -row.statistic.mean


def _gain(difference: Difference, metric: Metric) -> float:
    return difference.mean if metric.higher else -difference.mean


def is_beaten(best: TableRow, other: TableRow, metric: Metric) -> bool:
    """Return whether the interval of the difference excludes that the other start is as good."""
    gap = difference(best.scores, other.scores, other.label, metric)
    if gap is None or gap.low is None or gap.high is None:
        return False
    return gap.low > 0 if metric.higher else gap.high < 0


def _tallies(tables: Sequence[Sequence[TableRow]], baselines: Sequence[Baseline], unit: Unit) -> StartTallies | None:
    """Return how often each start is better or worse than its baselines, best first; None if nothing is compared.

    Starts of several settings have one tally if each is compared in its own setting.
    """
    own = _in_own_setting(baselines)
    counts: dict[str, list[int]] = {}
    blocks = 0
    for rows in tables:
        starts = [row for row in rows if not row.baseline and any(difference.n > 1 for difference in row.differences)]
        blocks += bool(starts)
        for row in starts:
            count = counts.setdefault(row.series if own else row.label, [0, 0, 0])
            count[0] += row.verdict == "better" and not row.unscored
            count[1] += row.verdict == "worse"
            count[2] += 1
    tallies = [StartTally(start, *count) for start, count in counts.items()]
    tallies.sort(key=lambda tally: (tally.worse - tally.better, tally.worse) if own else (-tally.better, 0))
    return StartTallies(tuple(baselines), unit, tuple(tallies), blocks) if tallies else None


def report_verdicts(
    parts: Sequence[Part], baselines: Sequence[Baseline], choices: Sequence[Choice] = ()
) -> tuple[ReportVerdict, ...]:
    """Return the verdicts on the whole experiment: those of its only block, or how often each start helps.

    Blocks in which nothing was learned come first. Starts that were chosen on other seeds follow, then the best places of
    sweeps and the cost of large rows.
    """
    with_scores = [part for part in parts if not part.missing and any(row.statistic for row in part.rows)]
    if not with_scores:
        if parts and not all(part.missing for part in parts):
            return (NothingYet("runs"),)
        return tuple(_in_blocks(parts)) or (NothingYet("blocks"),)
    swept = [part for part in with_scores if part.sweep is not None and part.sweep.lines]
    size = size_changes(swept, baselines[0].recipe)
    if len(with_scores) == 1:
        return (*with_scores[0].answer.verdicts, *size)
    unlearned = _in_blocks(with_scores, lambda verdict: isinstance(verdict, NothingLearned | RunsNotLearned))
    if sum(isinstance(block.verdict, NothingLearned) for block in unlearned) == len(with_scores):
        return tuple(unlearned)
    chosen = choice_verdicts(choices, baselines)
    verdicts: list[ReportVerdict] = [*chosen, *([best_places(swept)] if swept else []), *size]
    if not chosen:  # otherwise the tables show the other starts of those blocks
        judged = [part.rows for part in with_scores if part.sweep is None and not part.chooses_for]
        tallies = _tallies(judged, baselines, "comparison" if _in_own_setting(baselines) else "block")
        verdicts += [tallies] if tallies is not None else []
    if not verdicts and len(with_scores) > NAMED:
        verdicts = [BlocksNotComparable(len(with_scores))]
    return (*unlearned, *verdicts) if verdicts else tuple(_in_blocks(with_scores))


def _in_blocks(parts: Sequence[Part], wanted: Callable[[ReportVerdict], bool] = lambda _: True) -> list[InBlock]:
    """Return the wanted verdicts of several blocks, each with its block."""
    return [
        InBlock(part.name, verdict)
        for part in parts
        for verdict in part.answer.verdicts
        if not isinstance(verdict, InBlock) and wanted(verdict)
    ]


def caveats(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the limits of the answer: missing or diverged runs, few seeds, and blocks that were not run."""
    rows = [row for part in parts if not part.missing for row in part.rows]
    planned, there = sum(row.planned for row in rows), sum(len(row.scores) for row in rows)
    unscored, diverged = sum(row.unscored for row in rows), sum(row.diverged for row in rows)
    missing = planned - there - unscored
    texts = []
    if missing > 0:
        texts.append(f"{plural(missing, 'run')} of {planned:,} {'is' if missing == 1 else 'are'} missing.")
    if unscored:
        texts.append(
            f"{plural(unscored, 'run')} {'has' if unscored == 1 else 'have'} no score. The means leave "
            f"{'it' if unscored == 1 else 'them'} out and so look better than they are; such rows are never marked best."
        )
    if diverged > unscored:
        texts.append(f"{plural(diverged - unscored, 'run')} diverged after the epoch that was scored.")
    few = [
        difference for row in rows for difference in row.differences if difference.floor and difference.floor > LEVEL
    ]
    if few:
        floors = {difference.n: f"{difference.floor:.3g}" for difference in sorted(few, key=lambda few: few.n)}
        seeds = f"{listed([str(count) for count in floors])} {'seed' if list(floors) == [1] else 'seeds'}"
        rows_with = "such rows" if len(floors) == 1 else "rows with these numbers of seeds"
        texts.append(
            f"With {seeds} the exact permutation test's p cannot fall below {listed(list(floors.values()))}"
            f"{' respectively' if len(floors) > 1 else ''}: {rows_with} get no mark of significance, and their intervals "
            "rest on the t distribution."
        )
    return (*texts, *missing_blocks(parts))


def missing_blocks(parts: Sequence[Part]) -> list[str]:
    """Return the blocks that were not run, with the reasons; only their number if they are many."""
    missing = [part for part in parts if part.missing]
    if len(missing) > NAMED:
        return [f"{len(missing)} of {len(parts)} blocks were not run; each block names its reason."]
    return [f"{part.name} not run: {part.missing}." for part in missing]


def block_notes(
    rows: Sequence[TableRow], sweep: Sweep | None, split: str, unlearned_runs: RunsNotLearned | None = None
) -> tuple[str, ...]:
    """Return notes on a block: diverged runs, rows that cannot be drawn, the power of its seeds, losses, and lengths.

    The power of runs that did not learn says nothing.
    """
    notes = [
        f"{row.label}: {plural(row.diverged, 'run')} of {row.planned} diverged"
        + (f", {row.unscored} without a score." if row.unscored else ".")
        for row in rows
        if row.diverged
    ]
    if sweep is not None:
        drawn = {point.label for line in sweep.lines.values() for point in line}
        left = [row.label for row in rows if row.statistic is not None and row.label not in drawn]
        notes += [f"Not in the chart, because they have no number for the axis: {listed(left)}."] if left else []
    if any(row.paper is not None and row.statistic is not None and row.paper.difference is None for row in rows):
        notes.append(
            "The paper's numbers are on other data or over other tokens, and so are shown without a difference."
        )
    if any(len(row.differences) > 1 for row in rows):  # the table shows these differences
        return tuple(notes)
    unlearned = unlearned_rows(rows, unlearned_runs)
    notes += [
        f"{row.label}: {gap.power}."
        for row in rows
        if sweep is None and (gap := row.difference) is not None and gap.n > 1 and not gap.verdict
        if row.label not in unlearned
    ]
    by_loss = "" if sweep is not None else loss_note(rows)
    return (*notes, *(note for note in (by_loss, length_note(rows, split)) if note))


def loss_note(rows: Sequence[TableRow]) -> str:
    """Return the differences of the lowest validation losses to the baseline's; losses vary less between seeds than scores.

    Empty if there is not one baseline, or only one seed.
    """
    bases = [row for row in rows if row.baseline]
    if len(bases) != 1 or any(len(row.differences) > 1 for row in rows):
        return ""
    (base,) = bases
    differences = [
        (row.label, difference(row.losses, base.losses, base.label, LOSS)) for row in rows if row is not base
    ]
    losses = [
        f"{label} {signed(gap.mean, LOSS.digits)} {interval(gap.low, gap.high, LOSS.digits, sign=True)}"
        for label, gap in differences
        if gap is not None and gap.n > 1
    ]
    return f"Validation loss against {base.label}; lower is better: {', '.join(losses)}." if losses else ""
