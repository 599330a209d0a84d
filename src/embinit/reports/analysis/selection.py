"""Judge starts that were chosen on other seeds (a block with `chooses_for`), or that were named beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embinit.experiments.experiment import Baseline
from embinit.reports.analysis.rows import decide
from embinit.reports.model import Part
from embinit.reports.scores import Choice, TableRow
from embinit.reports.sentences import answer
from embinit.reports.verdicts import AwaitedChoices, JudgedChoices, NamedStart


def choices(parts: Sequence[Part]) -> tuple[Choice, ...]:
    """Return the start that each block with `chooses_for` chooses, judged on other seeds, then each block's `candidate`.

    The start with the highest mean that is no baseline is chosen. The other starts of the held-out block played no part in
    the choice, so p is Holm's over the differences of chosen starts only. Starts that were named beforehand are corrected
    among themselves in the same way.
    """
    by_name = {part.name: part for part in parts}
    chosen = []
    for part in parts:
        if part.chooses_for:
            target = by_name[part.chooses_for]
            best = _best(part)
            if best is not None:
                chosen.append(_choice(part, best, target))
    named = [_named(part, row) for part in parts for row in part.rows if part.candidate and row.axes == part.candidate]
    return (*_decided(chosen), *_decided(named))


def _decided(choices: Sequence[Choice]) -> list[Choice]:
    decided = iter(decide([(choice.metric, difference) for choice in choices for difference in choice.differences]))
    return [replace(choice, differences=tuple(next(decided) for _ in choice.differences)) for choice in choices]


def _candidates(part: Part) -> list[TableRow]:
    return [row for row in part.rows if not row.baseline]


def _best(part: Part) -> TableRow | None:
    there = [(row, row.statistic.mean) for row in _candidates(part) if row.statistic is not None and not row.unscored]
    sign = 1 if part.metric.higher else -1
    return max(there, key=lambda pair: sign * pair[1])[0] if there else None


def _choice(part: Part, best: TableRow, target: Part) -> Choice:
    assert best.statistic is not None
    row = next((row for row in target.rows if row.axes == best.axes), None)
    # Seeds that chose a start cannot judge it.
    judged = row is not None and not best.scores.keys() & row.scores.keys()
    return Choice(
        block=target.name,
        metric=target.metric,
        label=best.label,
        seeds=tuple(sorted(best.scores, key=int)),
        there=best.statistic,
        complete=all(
            len(candidate.scores) + candidate.unscored == candidate.planned for candidate in _candidates(part)
        ),
        held_out=row.statistic if row is not None and judged else None,
        differences=row.differences if row is not None and judged else (),
        lacking=row.lacking if row is not None else (),
    )


def _named(part: Part, row: TableRow) -> Choice:
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


def choice_verdicts(
    choices: Sequence[Choice], baselines: Sequence[Baseline]
) -> tuple[JudgedChoices | AwaitedChoices, ...]:
    """Return the verdicts on starts that were chosen on other seeds, then on starts that were named beforehand.

    Chosen starts that are not judged yet are listed only if all candidates were run.
    """
    chosen, named = ([choice for choice in choices if choice.named == way] for way in (False, True))
    judged = [tuple(choice for choice in group if choice.differences) for group in (chosen, named)]
    verdicts: list[JudgedChoices | AwaitedChoices] = []
    waiting = tuple(choice for choice in chosen if choice.complete)
    if judged[0]:
        verdicts.append(JudgedChoices(judged[0], tuple(baselines)))
    elif waiting:
        verdicts.append(AwaitedChoices(waiting))
    if judged[1]:
        verdicts.append(JudgedChoices(judged[1], tuple(baselines), second=bool(judged[0])))
    return tuple(verdicts)


def with_named(parts: Sequence[Part], choices: Sequence[Choice]) -> tuple[Part, ...]:
    """Return the blocks; the answer of a block with a named start begins with the verdict on this start."""
    named = {choice.block: NamedStart(choice) for choice in choices if choice.named and choice.differences}
    return tuple(
        replace(part, answer=answer([named[part.name], *part.answer.verdicts])) if part.name in named else part
        for part in parts
    )
