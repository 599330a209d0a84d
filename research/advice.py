"""The page on the advice of `embinit inspect`: how good it was, beside advisers that look at no rows."""

from __future__ import annotations

import statistics as plain
from collections.abc import Mapping, Sequence

from embinit.diagnosis.verdict import verdict
from embinit.format import NONE, compact, fixed, interval, listed, plural, share, signed
from embinit.reports.analysis.measurements import VERDICT_HEADER, verdict_cells
from embinit.reports.model import Table, TableCell
from embinit.reports.writers.markdown import details, table, text
from research.judging import (
    TRIVIAL,
    Adviser,
    Outcome,
    Tally,
    advised,
    at_full_rate,
    comparators,
    outcome,
    stood_for,
    tally,
    to_compare,
    untold,
)
from research.trials import SEEDS, Trial

TITLE = "# Is the advice of `embinit inspect` good?"
_DIGITS = 2


def section(found: Sequence[Trial], notes: Sequence[str] = ()) -> list[str]:
    """Return the page, line by line, with the notes of its experiment."""
    whole, trivial = _tallies(found)
    lines = [TITLE, "", f"**{text(headline(found))}**", ""]
    if whole.judged:
        said = [*_reading(found), *(f"- {text(note)}" for note in notes)]
        lines += [table(_advisers(found, whole, trivial)), "", *said, ""]
        lines += [table(_blocks([trial for trial in found if not _open(trial)])), ""]
    lines += _opens(found)
    return [*lines, *details("What it measured", _measurements(found))]


def headline(found: Sequence[Trial]) -> str:
    """Return how good the advice was, beside the best of the advisers that look at nothing."""
    whole, trivial = _tallies(found)
    return (
        _answer(whole, trivial) if whole.judged else f"Open: none of {plural(len(found), 'block')} can be judged yet."
    )


def _tallies(found: Sequence[Trial]) -> tuple[Tally, dict[str, Tally]]:
    """Return the tally of the advice, and those of the advisers that look at no rows, each choice of starts once."""
    named: dict[tuple[str, ...], str] = {}
    advisers = comparators()
    for name, adviser in advisers.items():
        named.setdefault(tuple(adviser(trial) for trial in found), name)
    return tally(found, advised), {name: tally(found, advisers[name]) for name in named.values()}


def _open(trial: Trial) -> str:
    """Return why a block is open; empty if it can be judged."""
    one = outcome(trial, advised(trial))
    return one.why if one.word == "open" else ""


def _opens(found: Sequence[Trial]) -> list[str]:
    """Return the blocks that cannot be judged, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in found:
        if _open(trial):
            reasons.setdefault(_open(trial), []).append(trial.name)
    lines = [f"- Open ({text(why)}): {text('; '.join(names))}." for why, names in reasons.items()]
    return lines + [""] * bool(lines)


def _answer(whole: Tally, trivial: Mapping[str, Tally]) -> str:
    most = max(one.hits for one in trivial.values())
    rivals = {name: one for name, one in trivial.items() if one.hits == most}
    word = "fewer than" if most > whole.hits else "as many as" if most == whole.hits else "more than"
    others = listed([f"“{name}” ({_regret(one)})" for name, one in rivals.items()])
    return (
        f"The start that it advises was the best one, or not significantly worse, in {whole.hits} of "
        f"{plural(whole.judged, 'block')}, with a mean regret of {_regret(whole)}. That is {word} the {most} of {others}, "
        f"the best of {len(trivial)} advisers that look at no rows."
    )


def _regret(one: Tally) -> str:
    """Return the mean regret in each unit: `0.12 BLEU and 0.91 points`."""
    return listed([f"{fixed(value, _DIGITS)} {unit}" for unit, value in one.regret.items()])


def _advisers(found: Sequence[Trial], whole: Tally, trivial: Mapping[str, Tally]) -> Table:
    units = list(dict.fromkeys(unit for one in (whole, *trivial.values()) for unit in one.regret))
    header = ("adviser", "hits", "share", "95 %", *(f"mean regret, {unit}" for unit in units))
    named = {"embinit inspect": whole}
    others: dict[str, Adviser] = {
        "embinit inspect, the larger rows that it says to compare": to_compare,
        "embinit inspect, where all weights share one rate": at_full_rate,
        "embinit inspect without --task": lambda trial: advised(untold(trial)),
    }
    for name, adviser in others.items():
        if any(advised(trial) != adviser(trial) for trial in found if not trial.open):
            named[name] = tally(found, adviser)
    named |= trivial
    rows = tuple(
        (
            TableCell(name),
            TableCell(f"{one.hits} of {one.judged}"),
            TableCell(share(one.hits / one.judged if one.judged else None)),
            TableCell(_bounds(one)),
            *(TableCell(fixed(one.regret.get(unit), _DIGITS)) for unit in units),
        )
        for name, one in named.items()
    )
    return Table("Advisers", header, rows)


def _bounds(one: Tally) -> str:
    if one.low is None or one.high is None:
        return NONE
    return f"{interval(100 * one.low, 100 * one.high, 0)} %"


def _reading(found: Sequence[Trial]) -> list[str]:
    judged = [trial for trial in found if not trial.open]
    alike = [trial for trial in judged if all(outcome(trial, name).word == "hit" for name in TRIVIAL)]
    said = [
        "A start is a recipe, at the full rate unless a rate is named. A hit is the start with the highest mean of all "
        "that were run in the block, or one whose paired 95 % interval against it reaches zero. The regret is the distance "
        f"to the highest mean. Blocks in which all starts share fewer than {SEEDS} seeds are open and not counted.",
        f"In {len(alike)} of {plural(len(judged), 'block')} each of the three recipes is a hit, so they say nothing about "
        "an adviser. The interval of the share is Wilson's, as if blocks were independent; they share tasks and sources, so "
        "it is too narrow.",
    ]
    others = [trial.name for trial in judged if stood_for(trial)]
    if others:
        said.append(
            f"For {listed(others)} it advises a scale that was not run (see its measurements below). The nearer of "
            "pretrained and pretrained_xavier stands for it."
        )
    return [f"- {text(line)}" for line in said]


def _blocks(found: Sequence[Trial]) -> Table:
    header = ("block", "ratio", "advised", "best", "advised − best", "95 %", "outcome")
    rows = tuple(_block(trial, outcome(trial, advised(trial))) for trial in found)
    return Table("Blocks", header, rows, words=1)


def _block(trial: Trial, one: Outcome) -> tuple[TableCell, ...]:
    digits, best = trial.metric.digits, trial.best
    ratios = [compact(side.basis.absorbed.ratio) for side in trial.sides if side.basis.absorbed is not None]
    reached = f"{best} {fixed(plain.fmean(trial.scores[best].values()), digits)}" if best else NONE
    gap, bounds = NONE, NONE
    if one.difference is not None:
        gap = f"{signed(one.difference.mean, digits)} {trial.metric.unit}"
        bounds = interval(one.difference.low, one.difference.high, digits, sign=True)
    elif one.word == "hit":
        gap = "it is the best"
    said = f"{one.word}: {one.why}" if one.why else one.word
    texts = (trial.name, " / ".join(ratios) or NONE, one.start, reached, gap, bounds, said)
    return tuple(TableCell(word, strong=one.word == "miss" and word == said) for word in texts)


def _measurements(found: Sequence[Trial]) -> list[str]:
    header = ("block", *VERDICT_HEADER)
    rows = tuple(
        (TableCell(trial.name), *verdict_cells(side.side, side.source, side.basis, verdict(side.basis)))
        for trial in found
        for side in trial.sides
    )
    return [table(Table("Measurements", header, rows, words=3)), ""]
