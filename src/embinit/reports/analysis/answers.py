"""The answer in one sentence, and what limits it: no claim that the seeds do not carry."""

from __future__ import annotations

from collections.abc import Sequence

from embinit.experiments.experiment import Baseline
from embinit.format import fixed, interval, listed, plural, signed
from embinit.reports.analysis import several
from embinit.reports.analysis.lengths import length_note
from embinit.reports.analysis.rows import LEVEL, difference
from embinit.reports.analysis.selection import choice_answer
from embinit.reports.analysis.several import beaten, by
from embinit.reports.analysis.size_costs import fall_sentence
from embinit.reports.analysis.sweeps import best_places, sweep_answer
from embinit.reports.metrics import LOSS
from embinit.reports.model import Choice, Metric, Part, Row, Sweep

#: How many settings, recipes or lines a sentence names.
_NAMED = 3


def block_answer(
    rows: Sequence[Row], metric: Metric, baselines: Sequence[Baseline], sweep: Sweep | None, missing: str
) -> str:
    """Return what a block says, in one sentence."""
    if missing:
        return f"not run: {missing}"
    if not any(row.statistic for row in rows):
        return "nothing has been run yet"
    if sweep is not None and sweep.lines:
        return sweep_answer(rows, metric, sweep)
    if not several.is_plain(baselines):
        return several.block_answer(rows, metric, baselines)
    baseline = baselines[0].recipe
    settings = list(dict.fromkeys(row.setting for row in rows))
    if len(settings) == 1:
        return _setting_answer(rows, metric, baseline)
    return counted([row for row in rows if row.difference], baseline, "setting") or _highest(rows, metric, baseline)


def _setting_answer(rows: Sequence[Row], metric: Metric, baseline: str) -> str:
    base = next((row for row in rows if row.baseline), None)
    if base is None:
        return _highest(rows, metric, baseline)
    if base.statistic is None:
        return f"{baseline} has not been run, so there is nothing to compare with"
    compared = [row for row in rows if row.difference is not None]
    if not compared:
        return f"only {baseline} has been run: {fixed(base.statistic.mean, metric.digits)} {metric.label}"
    if all(row.difference is not None and row.difference.n < 2 for row in compared):
        return f"one seed tells nothing from chance: run more to compare with {baseline}"
    better = [row for row in compared if row.difference is not None and row.difference.verdict == "better"]
    sound = [row for row in better if not row.unscored]
    if sound:
        return _use(sorted(sound, key=lambda row: _mean(row, metric), reverse=True), metric, baseline)
    return _none_better(compared, better, metric, baseline)


def _use(better: Sequence[Row], metric: Metric, baseline: str) -> str:
    best = better[0]
    found = best.difference
    assert found is not None
    text = (
        f"use {best.series}: {signed(found.mean, metric.digits)} {metric.unit} over {baseline}, "
        f"95 % {interval(found.low, found.high, metric.digits)}, {plural(found.n, 'seed')}"
        f"{', by the t test alone' if (found.floor or 0) > LEVEL else ''}"
    )
    equal = [row.series for row in better[1:] if not beaten(best, row, metric)][:_NAMED]
    return f"{text}; {listed(equal)} {'is' if len(equal) == 1 else 'are'} as good within noise" if equal else text


def _none_better(compared: Sequence[Row], diverged: Sequence[Row], metric: Metric, baseline: str) -> str:
    nearest = max(compared, key=lambda row: _gain(row, metric))
    found = nearest.difference
    assert found is not None
    worse = [row for row in compared if row.difference is not None and row.difference.verdict == "worse"]
    if len(worse) == len(compared):
        text = f"stay with {baseline}: every other initialization is worse beyond noise"
    else:
        text = f"no initialization is better than {baseline} beyond noise"
        if worse:
            named = [f"{row.series} ({by(row.difference, metric)})" for row in worse[:_NAMED] if row.difference]
            text += f", and {listed(named)} {'is' if len(worse) == 1 else 'are'} worse"
    if diverged:
        runs = listed([row.series for row in diverged])
        text += f" ({runs} would be, but for runs that diverged and have no score)"
    if found.detectable is not None and len(worse) < len(compared):
        return (
            f"{text}; with {plural(found.n, 'seed')} a difference under {_two(found.detectable)} {metric.unit} "
            "cannot be seen"
        )
    return text


def _two(value: float) -> str:
    """Return a number in two digits: 0.62, 1.0, 12."""
    return f"{value:#.2g}".removesuffix(".")


def _highest(rows: Sequence[Row], metric: Metric, baseline: str) -> str:
    best = max((row for row in rows if row.statistic is not None), key=lambda row: _mean(row, metric))
    assert best.statistic is not None
    return (
        f"highest mean: {best.label}, {fixed(best.statistic.mean, metric.digits)} {metric.label}; there is no {baseline} "
        "among these to compare with"
    )


def _mean(row: Row, metric: Metric) -> float:
    assert row.statistic is not None
    return row.statistic.mean if metric.higher else -row.statistic.mean


def _gain(row: Row, metric: Metric) -> float:
    assert row.difference is not None
    return row.difference.mean if metric.higher else -row.difference.mean


def counted(compared: Sequence[Row], baseline: str, what: str) -> str:
    """Return how often each recipe was better or worse than the baseline, the most helpful first; empty for none."""
    tallies: dict[str, list[int]] = {}
    for row in compared:
        if row.difference is not None and row.difference.n > 1:
            tally = tallies.setdefault(row.series, [0, 0, 0])
            tally[("better", "worse", "").index(row.difference.verdict)] += 1
    if not tallies:
        return ""
    ordered = sorted(tallies.items(), key=lambda item: (item[1][1] - item[1][0], item[1][1]))
    if all(better == 0 for _, (better, _, _) in ordered):
        worse = [f"{name} is worse in {bad} of {sum(rest) + bad}" for name, (_, bad, *rest) in ordered if bad]
        text = f"no initialization is better than {baseline} beyond noise in any {what}"
        return f"{text}; {listed(worse)}" if worse else text
    return "; ".join(_tallied(name, tally, baseline, what) for name, tally in ordered[:_NAMED])


def _tallied(name: str, tally: list[int], baseline: str, what: str) -> str:
    better, worse, _ = tally
    total = sum(tally)
    where = plural(total, what)
    if better and worse:
        return f"{name} is better than {baseline} in {better} and worse in {worse} of {where}"
    if better or worse:
        count = better or worse
        often = (
            f"{count} of {where}" if count < total or total == 1 else f"both {what}s" if total == 2 else f"all {where}"
        )
        return f"{name} is {'better' if better else 'worse'} than {baseline} in {often}"
    return f"{name} cannot be told from {baseline} in any of {where}"


def answer(parts: Sequence[Part], baselines: Sequence[Baseline], choices: Sequence[Choice] = ()) -> str:
    """Return what the whole experiment says: its one block's answer, or how often each recipe helped.

    Where starts were chosen on seeds of their own, how these do on others comes first; then where sweeps are best, and over
    scale what large rows cost.
    """
    shown = [part for part in parts if not part.missing and any(row.statistic for row in part.rows)]
    if not shown:
        return "nothing has been run yet" if parts and not all(part.missing for part in parts) else _not_run(parts)
    swept = [part for part in shown if part.sweep is not None and part.sweep.lines]
    cost = fall_sentence(swept, baselines[0].recipe)
    if len(shown) == 1:
        return "; ".join(filter(None, (shown[0].answer, cost)))
    judged = [part for part in shown if part.sweep is None and not part.chooses_for]
    said = [choice_answer(choices, baselines), best_places(swept) if swept else "", cost]
    if not said[0]:  # else the tables tell what is in those blocks beside
        compared = [row for part in judged for row in part.rows if row.difference]
        plain = several.is_plain(baselines)
        said.append(
            counted(compared, baselines[0].recipe, "comparison") if plain else several.counted(judged, baselines)
        )
    if not any(said) and len(shown) > _NAMED:
        return f"none of {plural(len(shown), 'block')} has anything to compare with"
    return "; ".join(filter(None, said)) or "; ".join(f"{part.name}: {part.answer}" for part in shown)


def _not_run(parts: Sequence[Part]) -> str:
    return "; ".join(f"{part.name}: {part.answer}" for part in parts) or "there is nothing in this experiment"


def caveats(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return what limits the answer: runs that are missing or diverged, few seeds, stand-ins, sides that differ."""
    rows = [row for part in parts if not part.missing for row in part.rows]
    planned, there = sum(row.planned for row in rows), sum(len(row.scores) for row in rows)
    unscored, diverged = sum(row.unscored for row in rows), sum(row.diverged for row in rows)
    said = []
    if planned > there + unscored:
        said.append(
            f"{plural(planned - there - unscored, 'run')} of {planned:,} {_are(planned - there - unscored)} missing"
        )
    if unscored:
        said.append(
            f"{plural(unscored, 'run')} left nothing to score; the means leave {'it' if unscored == 1 else 'them'} out "
            "and so flatter their rows, which are never called best"
        )
    if diverged > unscored:
        said.append(f"{plural(diverged - unscored, 'run')} diverged after the epoch that was scored")
    few = [one for row in rows for one in row.differences if one.floor and one.floor > LEVEL]
    if few:
        least = min(few, key=lambda found: found.n)
        said.append(
            f"with {plural(least.n, 'seed')} the exact permutation test's p cannot fall below {least.floor:.3g}: "
            "such rows get no mark of significance, and their intervals rest on the t distribution"
        )
    return (*said, *missing_blocks(parts))


def missing_blocks(parts: Sequence[Part]) -> list[str]:
    """Return which blocks are not there and why; of many, only how many."""
    missing = [part for part in parts if part.missing]
    if len(missing) > _NAMED:
        return [f"{len(missing)} of {len(parts)} blocks are not run; each says what it needs"]
    return [f"{part.name} not run: {part.missing}" for part in missing]


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def block_notes(rows: Sequence[Row], sweep: Sweep | None, split: str) -> tuple[str, ...]:
    """Return what to know of a block: rows that diverged or cannot be drawn; but for a sweep, what its seeds can show."""
    said = [
        f"{row.label}: {plural(row.diverged, 'run')} of {row.planned} diverged"
        + (f", {row.unscored} without a score" if row.unscored else "")
        for row in rows
        if row.diverged
    ]
    if sweep is not None:
        drawn = {point.label for line in sweep.lines.values() for point in line}
        left = [row.label for row in rows if row.statistic is not None and row.label not in drawn]
        said += [f"not in the chart, for there is no number to draw them at: {listed(left)}"] if left else []
    if any(row.paper is not None and row.statistic is not None and row.paper.difference is None for row in rows):
        said.append("the paper's numbers are on other data or over other tokens, and so are shown without a difference")
    if any(row.also for row in rows):  # of so many differences the table tells enough
        return tuple(said)
    compared = [row for row in rows if sweep is None and row.difference is not None and row.difference.n > 1]
    said += [
        f"{row.label}: {row.difference.power}" for row in compared if row.difference and not row.difference.verdict
    ]
    by_loss = "" if sweep is not None else loss_note(rows)
    return (*said, *(note for note in (by_loss, length_note(rows, split)) if note))


def loss_note(rows: Sequence[Row]) -> str:
    """Return how far the lowest validation losses lie from the baseline's, which vary less from seed to seed than scores.

    Empty where there is not one baseline, or one seed alone.
    """
    bases = [row for row in rows if row.baseline]
    if len(bases) != 1 or any(row.also for row in rows):
        return ""
    (base,) = bases
    found = [(row.label, difference(row.losses, base.losses, base.label, LOSS)) for row in rows if row is not base]
    said = [
        f"{label} {signed(one.mean, LOSS.digits)} {interval(one.low, one.high, LOSS.digits, sign=True)}"
        for label, one in found
        if one is not None and one.n > 1
    ]
    return f"{LOSS.label} against {base.label}, where less is better: {', '.join(said)}" if said else ""
