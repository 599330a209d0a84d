"""The page on the advice of `embinit inspect`, compared with advisers that do not look at the rows."""

from __future__ import annotations

import statistics as plain
from collections.abc import Mapping, Sequence

from embinit.diagnosis.verdict import verdict
from embinit.format import NONE, compact, fixed, interval, listed, plural, share, signed
from embinit.reports.analysis.measurements import VERDICT_HEADER, verdict_cells
from embinit.reports.model import Table, TableCell
from embinit.reports.writers.markdown import details, table, text
from research.judging import (
    BLIND_RECIPES,
    AdviceOutcome,
    Adviser,
    Tally,
    advised_start,
    advised_start_at_full_rate,
    blind_advisers,
    has_stand_in,
    outcome,
    start_to_compare,
    tally,
    without_task,
)
from research.trials import SEEDS, Trial

TITLE = "# Is the advice of `embinit inspect` good?"
_DIGITS = 2


def section(trials: Sequence[Trial], notes: Sequence[str] = ()) -> list[str]:
    """Return the page, line by line, with the notes of its experiment."""
    ours, blind = _tallies(trials)
    lines = [TITLE, "", f"**{text(headline(trials))}**", ""]
    if ours.judged:
        bullets = [*_reading(trials), *(f"- {text(note)}" for note in notes)]
        lines += [table(_advisers(trials, ours, blind)), "", *bullets, ""]
        lines += [table(_blocks([trial for trial in trials if not _open_reason(trial)])), ""]
    lines += _open_lines(trials)
    return [*lines, *details("What it measured", _measurements(trials))]


def headline(trials: Sequence[Trial]) -> str:
    """Return how good the advice was, compared with the best adviser that does not look at the rows."""
    ours, blind = _tallies(trials)
    return _answer(ours, blind) if ours.judged else f"Open: none of {plural(len(trials), 'block')} can be judged yet."


def _tallies(trials: Sequence[Trial]) -> tuple[Tally, dict[str, Tally]]:
    """Return the tally of the advice, and one for each blind adviser. Advisers with equal choices share a tally."""
    names: dict[tuple[str, ...], str] = {}
    advisers = blind_advisers()
    for name, adviser in advisers.items():
        names.setdefault(tuple(adviser(trial) for trial in trials), name)
    return tally(trials, advised_start), {name: tally(trials, advisers[name]) for name in names.values()}


def _open_reason(trial: Trial) -> str:
    """Return why a block cannot be judged; empty if it can be."""
    judgement = outcome(trial, advised_start(trial))
    return judgement.reason if judgement.status == "open" else ""


def _open_lines(trials: Sequence[Trial]) -> list[str]:
    """Return the blocks that cannot be judged, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        if _open_reason(trial):
            reasons.setdefault(_open_reason(trial), []).append(trial.name)
    lines = [f"- Open ({text(reason)}): {text('; '.join(names))}." for reason, names in reasons.items()]
    return lines + [""] * bool(lines)


def _answer(ours: Tally, blind: Mapping[str, Tally]) -> str:
    most = max(rival.hits for rival in blind.values())
    best = {name: rival for name, rival in blind.items() if rival.hits == most}
    word = "fewer than" if most > ours.hits else "as many as" if most == ours.hits else "more than"
    others = listed([f"“{name}” ({_regret(rival)})" for name, rival in best.items()])
    return (
        f"The start that it advises was the best one, or not significantly worse, in {ours.hits} of "
        f"{plural(ours.judged, 'block')}, with a mean regret of {_regret(ours)}. That is {word} the {most} of {others}, "
        f"the best of {len(blind)} advisers that ignore the rows."
    )


def _regret(tallied: Tally) -> str:
    """Return the mean regret in each unit: `0.12 BLEU and 0.91 points`."""
    return listed([f"{fixed(value, _DIGITS)} {unit}" for unit, value in tallied.regret.items()])


def _advisers(trials: Sequence[Trial], ours: Tally, blind: Mapping[str, Tally]) -> Table:
    units = list(dict.fromkeys(unit for tallied in (ours, *blind.values()) for unit in tallied.regret))
    header = ("adviser", "hits", "share", "95 %", *(f"mean regret, {unit}" for unit in units))
    tallies = {"embinit inspect": ours}
    others: dict[str, Adviser] = {
        "embinit inspect, the larger rows that it says to compare": start_to_compare,
        "embinit inspect, where all weights share one rate": advised_start_at_full_rate,
        "embinit inspect without --task": lambda trial: advised_start(without_task(trial)),
    }
    for name, adviser in others.items():
        if any(advised_start(trial) != adviser(trial) for trial in trials if not trial.open_reason):
            tallies[name] = tally(trials, adviser)
    tallies |= blind
    rows = tuple(
        (
            TableCell(name),
            TableCell(f"{tallied.hits} of {tallied.judged}"),
            TableCell(share(tallied.hits / tallied.judged if tallied.judged else None)),
            TableCell(_bounds(tallied)),
            *(TableCell(fixed(tallied.regret.get(unit), _DIGITS)) for unit in units),
        )
        for name, tallied in tallies.items()
    )
    return Table("Advisers", header, rows)


def _bounds(tallied: Tally) -> str:
    if tallied.low is None or tallied.high is None:
        return NONE
    return f"{interval(100 * tallied.low, 100 * tallied.high, 0)} %"


def _reading(trials: Sequence[Trial]) -> list[str]:
    judged = [trial for trial in trials if not trial.open_reason]
    alike = [trial for trial in judged if all(outcome(trial, name).status == "hit" for name in BLIND_RECIPES)]
    bullets = [
        "A start is a recipe, at the full rate unless a rate is named. A hit is the start with the highest mean in its "
        "block, or a start whose paired 95 % interval against that one reaches zero. The regret is the distance to the "
        f"highest mean. Blocks in which all starts share fewer than {SEEDS} seeds are open and do not count.",
        f"In {len(alike)} of {plural(len(judged), 'block')} each of the three recipes is a hit, so they say nothing about "
        "an adviser. The interval of the share is Wilson's, which takes blocks as independent. It is too narrow, because "
        "blocks share tasks and sources.",
    ]
    stand_ins = [trial.name for trial in judged if has_stand_in(trial)]
    if stand_ins:
        bullets.append(
            f"For {listed(stand_ins)} it advises a scale that was not run (see its measurements below). The nearer of "
            "pretrained and pretrained_xavier stands for it."
        )
    return [f"- {text(line)}" for line in bullets]


def _blocks(trials: Sequence[Trial]) -> Table:
    header = ("block", "ratio", "advised", "best", "advised − best", "95 %", "outcome")
    rows = tuple(_block(trial, outcome(trial, advised_start(trial))) for trial in trials)
    return Table("Blocks", header, rows, words=1)


def _block(trial: Trial, judgement: AdviceOutcome) -> tuple[TableCell, ...]:
    digits, best = trial.metric.digits, trial.best
    ratios = [compact(side.basis.absorbed.ratio) for side in trial.sides if side.basis.absorbed is not None]
    best_text = f"{best} {fixed(plain.fmean(trial.scores[best].values()), digits)}" if best else NONE
    gap, bounds = NONE, NONE
    if judgement.difference is not None:
        gap = f"{signed(judgement.difference.mean, digits)} {trial.metric.unit}"
        bounds = interval(judgement.difference.low, judgement.difference.high, digits, sign=True)
    elif judgement.status == "hit":
        gap = "it is the best"
    outcome_text = f"{judgement.status}: {judgement.reason}" if judgement.reason else judgement.status
    texts = (trial.name, " / ".join(ratios) or NONE, judgement.start, best_text, gap, bounds, outcome_text)
    return tuple(TableCell(word, strong=judgement.status == "miss" and word == outcome_text) for word in texts)


def _measurements(trials: Sequence[Trial]) -> list[str]:
    header = ("block", *VERDICT_HEADER)
    rows = tuple(
        (TableCell(trial.name), *verdict_cells(side.side, side.source, side.basis, verdict(side.basis)))
        for trial in trials
        for side in trial.sides
    )
    return [table(Table("Measurements", header, rows, words=3)), ""]
