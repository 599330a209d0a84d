"""Starts that are chosen on some seeds and judged on others: a block `X, chosen on` beside a block `X`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embinit.experiments.experiment import Baseline
from embinit.reports.rows import decide
from embinit.reports.several import over, versus
from embinit.reports.tables import against, mean
from embinit.reports.types import Cell, Choice, Part, Row, Table
from embinit.reports.words import NONE, listed, plural, probability

_CHOSEN = ", chosen on"


def is_choosing(name: str, names: Sequence[str]) -> bool:
    """Return whether a block of this name is there to choose for another one."""
    return name.endswith(_CHOSEN) and name.removesuffix(_CHOSEN) in names


def choices(parts: Sequence[Part]) -> tuple[Choice, ...]:
    """Return what each block `X, chosen on` chooses and how that does in `X`; p is Holm's over these differences alone.

    Chosen is the start with the highest mean that is no baseline. Whatever else is in the held-out blocks played no part in
    the choice, so that it is no reason to correct for it.
    """
    by_name = {part.name: part for part in parts}
    made = []
    for part in parts:
        if is_choosing(part.name, list(by_name)):
            held = by_name[part.name.removesuffix(_CHOSEN)]
            best = _best(part)
            if best is not None:
                made.append(_choice(part, best, held))
    decided = iter(decide([(one.metric, found) for one in made for found in one.differences]))
    return tuple(replace(one, differences=tuple(next(decided) for _ in one.differences)) for one in made)


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


def choice_answer(made: Sequence[Choice], baselines: Sequence[Baseline]) -> str:
    """Return how many of the chosen starts are better than all of their baselines on held-out seeds; empty for none.

    Where none has been judged there, it says what was chosen from all that was to choose from.
    """
    judged = [one for one in made if one.differences]
    if not judged:
        chosen = [f"{one.label} for {one.block}" for one in made if one.complete]
        return f"not judged on other seeds yet: {listed(chosen)}" if chosen else ""
    if len(judged) == 1:
        (one,) = judged
        outcome = {"better": "is better than", "worse": "is worse than"}.get(
            one.verdict, "is not better beyond noise than"
        )
        return (
            f"{one.label}, chosen on other seeds for {one.block}, {outcome} {versus(baselines)}: "
            f"{over(one.differences, one.metric)}"
        )
    where: dict[str, list[str]] = {}
    for one in judged:
        if one.verdict == "better":
            where.setdefault(one.label, []).append(one.block)
    count = sum(map(len, where.values()))
    first = f"of {plural(len(judged), 'start')} chosen on other seeds, {count or 'none'} {'is' if count < 2 else 'are'}"
    better = ", ".join(f"{label} in {listed(blocks)}" for label, blocks in where.items())
    return f"{first} better than {versus(baselines)} beyond noise{f': {better}' if better else ''}"


def choice_table(made: Sequence[Choice]) -> Table | None:
    """Return each choice and its differences on held-out seeds, a line each; None where nothing was chosen."""
    if not made:
        return None
    lines: list[tuple[Cell, ...]] = []
    for one in made:
        held = (
            "no run on other seeds" if one.held_out is None else f"{mean(one.held_out, one.metric)} {one.metric.label}"
        )
        head = (one.block, f"{one.label}{'' if one.complete else ' (so far)'}", mean(one.there, one.metric), held)
        for found in one.differences or (None,):
            first = found is None or found is one.differences[0]
            told = (NONE,) * 3
            if found is not None:
                told = (found.baseline, against(found, one.metric), probability(found.holm_p))
            lines.append(tuple(Cell(text) for text in (*(head if first else ("",) * 4), *told)))
    seeds = listed(sorted({seed for one in made for seed in one.seeds}, key=int))
    caption = f"Chosen on seeds {seeds}, judged on others; p is Holm's over the lines of this table alone"
    header = ("block", "chosen", "mean there", "held out", "against", "difference", "p (Holm)")
    return Table(caption, header, tuple(lines), words=2)
