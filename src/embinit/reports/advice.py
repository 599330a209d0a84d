"""RESULTS.md's section on the advice of `embinit inspect`: how good it was, beside advisers that look at nothing."""

from __future__ import annotations

import statistics as plain
from collections.abc import Mapping, Sequence

from embinit.diagnosis.verdict import verdict
from embinit.reports.cells import SEEDS, Trial
from embinit.reports.markdown import details, table, text
from embinit.reports.measures import VERDICT_HEADER, verdict_cells
from embinit.reports.tables import share
from embinit.reports.thresholds import HALVES, Adjusted, adjusted
from embinit.reports.types import Cell, Table
from embinit.reports.verdicts import (
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
from embinit.reports.words import NONE, compact, fixed, interval, listed, plural, signed

TITLE = "## Is the advice of `embinit inspect` good?"
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
    lines += details("Would other lines do better?", _thresholds(found)) if whole.judged else []
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
            Cell(name),
            Cell(f"{one.hits} of {one.judged}"),
            Cell(share(one.hits / one.judged if one.judged else None)),
            Cell(_bounds(one)),
            *(Cell(fixed(one.regret.get(unit), _DIGITS)) for unit in units),
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
    header = ("block", "half", "ratio", "advised", "best", "advised − best", "95 %", "outcome")
    rows = tuple(_cell(trial, outcome(trial, advised(trial))) for trial in found)
    return Table("Cells", header, rows, words=2)


def _cell(trial: Trial, one: Outcome) -> tuple[Cell, ...]:
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
    texts = (trial.name, trial.half, " / ".join(ratios) or NONE, one.start, reached, gap, bounds, said)
    return tuple(Cell(word, strong=one.word == "miss" and word == said) for word in texts)


def _thresholds(found: Sequence[Trial]) -> list[str]:
    made = [one for half in HALVES if (one := adjusted(found, half)) is not None]
    if not made:
        return ["Open: each half needs a cell that can be judged.", ""]
    shipped = listed([f"{name} {compact(ratio)}" for name, ratio in made[0].shipped.items()])
    header = ("adjusted on", *made[0].shipped, "hits on that half", "hits on the other half", "regret there")
    rows = tuple(_line(one) for one in made)
    return [
        text(
            "The lines of verdict.toml that decide which recipe is advised (buried and border in translation, low and high "
            "in classification), adjusted on one half of the cells and applied to the other: as they are → adjusted. They "
            "say nothing of a rate: what they advise is held against starts at the full rate alone. In the file they are "
            f"{shipped}. Adjusted are those with the most hits, then the least regret, then the least change; regret is the "
            "mean over cells, in points of either score."
        ),
        "",
        table(Table("Lines", header, rows)),
        "",
        text(" ".join(map(_worth, made))),
        "",
    ]


def _line(one: Adjusted) -> tuple[Cell, ...]:
    other = next(half for half in HALVES if half != one.on)
    texts = [
        f"half {one.on}",
        *map(compact, one.lines.values()),
        *(_change(one.before[half], one.after[half]) for half in (one.on, other)),
        f"{fixed(one.before[other].cost, _DIGITS)} → {fixed(one.after[other].cost, _DIGITS)}",
    ]
    return tuple(Cell(word) for word in texts)


def _change(before: Tally, after: Tally) -> str:
    return f"{before.hits} of {before.judged} → {after.hits} of {after.judged}"


def _worth(one: Adjusted) -> str:
    """Return what the adjusting on the first half is worth on the second, in a sentence."""
    other = next(half for half in HALVES if half != one.on)
    if not one.moved:
        return f"None of {one.tried} sets of lines does better on half {one.on} than the one in the file."
    hits = one.after[other].hits - one.before[other].hits
    cost = (one.before[other].cost or 0) - (one.after[other].cost or 0)
    changed = (
        f"{plural(abs(hits), 'hit')} {'more' if hits > 0 else 'fewer'}"
        if hits
        else f"as many hits, and {compact(abs(cost))} points {'less' if cost > 0 else 'more'} regret"
        if abs(cost) > 1e-9
        else "no change"
    )
    return f"Of {one.tried} sets of lines, the one that does best on half {one.on} gives {changed} on half {other}."


def _seen(found: Sequence[Trial]) -> list[str]:
    header = ("block", *VERDICT_HEADER)
    rows = tuple(
        (Cell(trial.name), *verdict_cells(side.side, side.source, side.basis, verdict(side.basis)))
        for trial in found
        for side in trial.sides
    )
    return [table(Table("Seen", header, rows, words=3)), ""]
