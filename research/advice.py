"""RESULTS.md's section on the advice of `embinit inspect`: how good it was, beside advisers that look at nothing."""

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
    always,
    at_full_rate,
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
    """Return the section, line by line, with what its file notes."""
    whole, trivial = _tallies(found)
    lines = [TITLE, "", f"**{text(headline(found))}**", ""]
    if whole.judged:
        said = [*_reading(found), *(f"- {text(note)}" for note in notes)]
        lines += [table(_advisers(found, whole, trivial)), "", *said, ""]
        lines += [table(_cells([trial for trial in found if not _open(trial)])), ""]
    lines += _opens(found)
    return [*lines, *details("What it saw", _seen(found))]


def headline(found: Sequence[Trial]) -> str:
    """Return how good the advice was, in a sentence."""
    whole, trivial = _tallies(found)
    return _answer(whole, trivial) if whole.judged else f"Open: none of {plural(len(found), 'cell')} can be judged yet."


def _tallies(found: Sequence[Trial]) -> tuple[Tally, dict[str, Tally]]:
    return tally(found, advised), {name: tally(found, always(name)) for name in TRIVIAL}


def _open(trial: Trial) -> str:
    """Return why a cell is open, empty where it can be judged."""
    one = outcome(trial, advised(trial))
    return one.why if one.word == "open" else ""


def _opens(found: Sequence[Trial]) -> list[str]:
    """Return the cells that cannot be judged, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in found:
        if _open(trial):
            reasons.setdefault(_open(trial), []).append(trial.name)
    lines = [f"- Open ({text(why)}): {text('; '.join(names))}." for why, names in reasons.items()]
    return lines + [""] * bool(lines)


def _answer(whole: Tally, trivial: Mapping[str, Tally]) -> str:
    said = (
        f"The start that it advises was the best one, or not significantly worse, in {whole.hits} of "
        f"{plural(whole.judged, 'cell')}"
    )
    most = max(one.hits for one in trivial.values())
    names = " or ".join(name for name, one in trivial.items() if one.hits == most)
    if most > whole.hits:
        return f"{said}: less often than {names} taken always ({most})."
    if most == whole.hits:
        return f"{said}: no more often than {names} taken always."
    return f"{said}: more often than any one recipe taken always ({names}: {most})."


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
    named |= {f"always {name}": one for name, one in trivial.items()}
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
        "A cell is a block of training that was also diagnosed; a start is a recipe, at the full rate where nothing else is "
        "said. A hit is the start with the highest mean of all that were run in the cell, or one whose paired 95 % interval "
        "against it reaches zero; the regret is how far the highest mean "
        f"lies above it. Cells with fewer than {SEEDS} seeds that all starts share are open and not counted.",
        f"In {len(alike)} of {plural(len(judged), 'cell')} each of the three recipes is a hit: these tell nothing of an "
        "adviser. The interval of the share is Wilson's, as if cells were independent; they share tasks and sources, so "
        "that it is too narrow.",
    ]
    others = [trial.name for trial in judged if stood_for(trial)]
    if others:
        said.append(
            f"For {listed(others)} it advises a scale that was not run (below, in what it saw): the one of pretrained and "
            "pretrained_xavier that is nearer stands for it."
        )
    return [f"- {text(line)}" for line in said]


def _cells(found: Sequence[Trial]) -> Table:
    header = ("block", "ratio", "advised", "best", "advised − best", "95 %", "outcome")
    rows = tuple(_cell(trial, outcome(trial, advised(trial))) for trial in found)
    return Table("Cells", header, rows, words=1)


def _cell(trial: Trial, one: Outcome) -> tuple[TableCell, ...]:
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


def _seen(found: Sequence[Trial]) -> list[str]:
    header = ("block", *VERDICT_HEADER)
    rows = tuple(
        (TableCell(trial.name), *verdict_cells(side.side, side.source, side.basis, verdict(side.basis)))
        for trial in found
        for side in trial.sides
    )
    return [table(Table("Seen", header, rows, words=3)), ""]
