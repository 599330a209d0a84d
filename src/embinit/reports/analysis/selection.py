"""Starts that are judged by themselves: chosen on other seeds (a block with `chooses_for`), or named beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embinit.experiments.experiment import Baseline
from embinit.format import listed, plural
from embinit.reports.analysis.rows import decide
from embinit.reports.analysis.several import over, versus
from embinit.reports.model import Choice, Part, Row

_VERDICTS = {"better": "is better than", "worse": "is worse than", "": "is not better beyond noise than"}


def choices(parts: Sequence[Part]) -> tuple[Choice, ...]:
    """Return the start that each block with `chooses_for` chooses and its result there, then each block's `candidate`.

    Chosen is the start with the highest mean that is no baseline. Whatever else is in the held-out blocks played no part in
    the choice, so that it is no reason to correct for it: p is Holm's over the differences of what was chosen alone.
    What was named beforehand is corrected by itself likewise.
    """
    by_name = {part.name: part for part in parts}
    chosen = []
    for part in parts:
        if part.chooses_for:
            held = by_name[part.chooses_for]
            best = _best(part)
            if best is not None:
                chosen.append(_choice(part, best, held))
    named = [_named(part, row) for part in parts for row in part.rows if part.candidate and row.axes == part.candidate]
    return (*_decided(chosen), *_decided(named))


def _decided(made: Sequence[Choice]) -> list[Choice]:
    decided = iter(decide([(one.metric, found) for one in made for found in one.differences]))
    return [replace(one, differences=tuple(next(decided) for _ in one.differences)) for one in made]


def _candidates(part: Part) -> list[Row]:
    return [row for row in part.rows if not row.baseline]


def _best(part: Part) -> Row | None:
    there = [(row, row.statistic.mean) for row in _candidates(part) if row.statistic is not None and not row.unscored]
    sign = 1 if part.metric.higher else -1
    return max(there, key=lambda one: sign * one[1])[0] if there else None


def _choice(part: Part, best: Row, held: Part) -> Choice:
    assert best.statistic is not None
    row = next((row for row in held.rows if row.axes == best.axes), None)
    # Seeds that chose it tell nothing new of it.
    judged = row is not None and not best.scores.keys() & row.scores.keys()
    return Choice(
        block=held.name,
        metric=held.metric,
        label=best.label,
        seeds=tuple(sorted(best.scores, key=int)),
        there=best.statistic,
        complete=all(len(one.scores) + one.unscored == one.planned for one in _candidates(part)),
        held_out=row.statistic if row is not None and judged else None,
        differences=row.differences if row is not None and judged else (),
        lacking=row.lacking if row is not None else (),
    )


def _named(part: Part, row: Row) -> Choice:
    return Choice(
        block=part.name,
        metric=part.metric,
        label=row.label,
        seeds=(),
        there=None,
        complete=True,
        held_out=row.statistic,
        differences=row.differences,
        lacking=row.lacking,
    )


def choice_answer(made: Sequence[Choice], baselines: Sequence[Baseline]) -> str:
    """Return how many of the chosen starts are better than all of their baselines on held-out seeds; empty for none.

    Where none has been judged there, it says what was chosen from all that was to choose from. Those that were named
    beforehand come second.
    """
    chosen, named = ([one for one in made if one.named == way] for way in (False, True))
    said = _outcome(chosen, "chosen on other seeds", versus(baselines))
    if not said:
        waiting = [f"{one.label} for {one.block}" for one in chosen if one.complete]
        said = f"not judged on other seeds yet: {listed(waiting)}" if waiting else ""
    known = any(one.differences for one in chosen)
    return "; ".join(filter(None, (said, _outcome(named, "named beforehand", "these" if known else versus(baselines)))))


def with_named(parts: Sequence[Part], made: Sequence[Choice]) -> tuple[Part, ...]:
    """Return blocks whose answers begin with what was named there, which is not corrected for all that ran beside it."""
    said = {
        one.block: f"{one.label}, named beforehand, {_VERDICTS[one.verdict]} all of its baselines; corrected for all runs"
        for one in made
        if one.named and one.differences
    }
    return tuple(
        replace(part, answer=f"{said[part.name]}, {part.answer}") if part.name in said else part for part in parts
    )


def _outcome(made: Sequence[Choice], how: str, whom: str) -> str:
    """Return which of the starts that have been judged are better than their baselines; empty where none has been."""
    judged = [one for one in made if one.differences]
    if not judged:
        return ""
    if len(judged) == 1:
        (one,) = judged
        return (
            f"{one.label}, {how} for {one.block}, {_VERDICTS[one.verdict]} {whom}: {over(one.differences, one.metric)}"
        )
    where: dict[str, list[str]] = {}
    for one in judged:
        if one.verdict == "better":
            where.setdefault(one.label, []).append(one.block)
    count = sum(map(len, where.values()))
    first = f"of {plural(len(judged), 'start')} {how}, {count or 'none'} {'is' if count < 2 else 'are'}"
    better = ", ".join(f"{label} in {listed(blocks)}" for label, blocks in where.items())
    return f"{first} better than {whom} beyond noise{f': {better}' if better else ''}"
