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
    AdviceOutcome,
    Adviser,
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


def section(trials: Sequence[Trial], notes: Sequence[str] = ()) -> list[str]:
    """Return the page, line by line, with the notes of its experiment."""
    whole, trivial = _tallies(trials)
    lines = [TITLE, "", f"**{text(headline(trials))}**", ""]
    if whole.judged:
        bullets = [*_reading(trials), *(f"- {text(note)}" for note in notes)]
        lines += [table(_advisers(trials, whole, trivial)), "", *bullets, ""]
        lines += [table(_blocks([trial for trial in trials if not _open(trial)])), ""]
    lines += _opens(trials)
    return [*lines, *details("What it measured", _measurements(trials))]


def headline(trials: Sequence[Trial]) -> str:
    """Return how good the advice was, beside the best of the advisers that look at no rows."""
    whole, trivial = _tallies(trials)
    return (
        _answer(whole, trivial) if whole.judged else f"Open: none of {plural(len(trials), 'block')} can be judged yet."
    )


def _tallies(trials: Sequence[Trial]) -> tuple[Tally, dict[str, Tally]]:
    """Return the tally of the advice, and those of the advisers that look at no rows, each choice of starts once."""
    named: dict[tuple[str, ...], str] = {}
    advisers = comparators()
    for name, adviser in advisers.items():
        named.setdefault(tuple(adviser(trial) for trial in trials), name)
    return tally(trials, advised), {name: tally(trials, advisers[name]) for name in named.values()}


def _open(trial: Trial) -> str:
    """Return why a block is open; empty if it can be judged."""
    judgement = outcome(trial, advised(trial))
    return judgement.why if judgement.word == "open" else ""


def _opens(trials: Sequence[Trial]) -> list[str]:
    """Return the blocks that cannot be judged, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        if _open(trial):
            reasons.setdefault(_open(trial), []).append(trial.name)
    lines = [f"- Open ({text(why)}): {text('; '.join(names))}." for why, names in reasons.items()]
    return lines + [""] * bool(lines)


def _answer(whole: Tally, trivial: Mapping[str, Tally]) -> str:
    most = max(rival.hits for rival in trivial.values())
    rivals = {name: rival for name, rival in trivial.items() if rival.hits == most}
    word = "fewer than" if most > whole.hits else "as many as" if most == whole.hits else "more than"
    others = listed([f"“{name}” ({_regret(rival)})" for name, rival in rivals.items()])
    return (
        f"The start that it advises was the best one, or not significantly worse, in {whole.hits} of "
        f"{plural(whole.judged, 'block')}, with a mean regret of {_regret(whole)}. That is {word} the {most} of {others}, "
        f"the best of {len(trivial)} advisers that look at no rows."
    )


def _regret(tallied: Tally) -> str:
    """Return the mean regret in each unit: `0.12 BLEU and 0.91 points`."""
    return listed([f"{fixed(value, _DIGITS)} {unit}" for unit, value in tallied.regret.items()])


def _advisers(trials: Sequence[Trial], whole: Tally, trivial: Mapping[str, Tally]) -> Table:
    units = list(dict.fromkeys(unit for tallied in (whole, *trivial.values()) for unit in tallied.regret))
    header = ("adviser", "hits", "share", "95 %", *(f"mean regret, {unit}" for unit in units))
    named = {"embinit inspect": whole}
    others: dict[str, Adviser] = {
        "embinit inspect, the larger rows that it says to compare": to_compare,
        "embinit inspect, where all weights share one rate": at_full_rate,
        "embinit inspect without --task": lambda trial: advised(untold(trial)),
    }
    for name, adviser in others.items():
        if any(advised(trial) != adviser(trial) for trial in trials if not trial.open):
            named[name] = tally(trials, adviser)
    named |= trivial
    rows = tuple(
        (
            TableCell(name),
            TableCell(f"{tallied.hits} of {tallied.judged}"),
            TableCell(share(tallied.hits / tallied.judged if tallied.judged else None)),
            TableCell(_bounds(tallied)),
            *(TableCell(fixed(tallied.regret.get(unit), _DIGITS)) for unit in units),
        )
        for name, tallied in named.items()
    )
    return Table("Advisers", header, rows)


def _bounds(tallied: Tally) -> str:
    if tallied.low is None or tallied.high is None:
        return NONE
    return f"{interval(100 * tallied.low, 100 * tallied.high, 0)} %"


def _reading(trials: Sequence[Trial]) -> list[str]:
    judged = [trial for trial in trials if not trial.open]
    alike = [trial for trial in judged if all(outcome(trial, name).word == "hit" for name in TRIVIAL)]
    bullets = [
        "A start is a recipe, at the full rate unless a rate is named. A hit is the start with the highest mean of all "
        "that were run in the block, or one whose paired 95 % interval against it reaches zero. The regret is the distance "
        f"to the highest mean. Blocks in which all starts share fewer than {SEEDS} seeds are open and not counted.",
        f"In {len(alike)} of {plural(len(judged), 'block')} each of the three recipes is a hit, so they say nothing about "
        "an adviser. The interval of the share is Wilson's, as if blocks were independent; they share tasks and sources, so "
        "it is too narrow.",
    ]
    others = [trial.name for trial in judged if stood_for(trial)]
    if others:
        bullets.append(
            f"For {listed(others)} it advises a scale that was not run (see its measurements below). The nearer of "
            "pretrained and pretrained_xavier stands for it."
        )
    return [f"- {text(line)}" for line in bullets]


def _blocks(trials: Sequence[Trial]) -> Table:
    header = ("block", "ratio", "advised", "best", "advised − best", "95 %", "outcome")
    rows = tuple(_block(trial, outcome(trial, advised(trial))) for trial in trials)
    return Table("Blocks", header, rows, words=1)


def _block(trial: Trial, judgement: AdviceOutcome) -> tuple[TableCell, ...]:
    digits, best = trial.metric.digits, trial.best
    ratios = [compact(side.basis.absorbed.ratio) for side in trial.sides if side.basis.absorbed is not None]
    reached = f"{best} {fixed(plain.fmean(trial.scores[best].values()), digits)}" if best else NONE
    gap, bounds = NONE, NONE
    if judgement.difference is not None:
        gap = f"{signed(judgement.difference.mean, digits)} {trial.metric.unit}"
        bounds = interval(judgement.difference.low, judgement.difference.high, digits, sign=True)
    elif judgement.word == "hit":
        gap = "it is the best"
    outcome_text = f"{judgement.word}: {judgement.why}" if judgement.why else judgement.word
    texts = (trial.name, " / ".join(ratios) or NONE, judgement.start, reached, gap, bounds, outcome_text)
    return tuple(TableCell(word, strong=judgement.word == "miss" and word == outcome_text) for word in texts)


def _measurements(trials: Sequence[Trial]) -> list[str]:
    header = ("block", *VERDICT_HEADER)
    rows = tuple(
        (TableCell(trial.name), *verdict_cells(side.side, side.source, side.basis, verdict(side.basis)))
        for trial in trials
        for side in trial.sides
    )
    return [table(Table("Measurements", header, rows, words=3)), ""]
