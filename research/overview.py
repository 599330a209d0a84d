"""RESULTS.md's first lines: what was run, what becomes of each finding, what each open question is answered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from embinit.format import duration, plural
from embinit.reports.analysis import published
from embinit.reports.analysis.provenance import busy
from embinit.reports.analysis.several import by
from embinit.reports.model import Summary
from embinit.reports.writers.completed import not_run, shown
from embinit.reports.writers.markdown import sentence, text
from research.advice import headline
from research.findings import VERDICTS, Case, Claim, Finding, holds, tallied
from research.trials import Trial


def section(summaries: Sequence[Summary], findings: Sequence[Finding], diagnosed: Sequence[Trial]) -> list[str]:
    """Return the section, a line for each answer."""
    said = [text(cost(summaries))]
    said += [f"**{text(sentence(one.title))}** {text(_finding(one))}" for one in findings]
    said += [
        f"**{text(sentence(one.title))}** {text(sentence(one.answer))}"
        for one in summaries
        if is_open(one) and shown(one)
    ]
    said += [f"**The advice of `embinit inspect`.** {text(headline(diagnosed))}"] if diagnosed else []
    said += _left(summaries)
    return ["## In short", "", *(f"- {line}" for line in said), ""]


def is_open(summary: Summary) -> bool:
    """Return whether an experiment is one of those on a question that the paper leaves open: a file in `open/`."""
    return "open" in PurePosixPath(summary.file).parts[:-1]


def cost(summaries: Sequence[Summary]) -> str:
    """Return how many runs there are and for how long devices were at work on them, beside what the paper took."""
    runs = {key for one in summaries for key in one.cost.shares}
    devices = ", ".join(dict.fromkeys(device for one in summaries for device in one.cost.devices))
    took = duration(busy(one.cost for one in summaries))
    return (
        f"{plural(len(runs), 'run')} kept the device{f' ({devices})' if devices else ''} busy for {took}, what ran side by "
        f"side counted once; the paper's Table 1 alone took about {paper_hours():.0f} GPU-hours by its Table 5."
    )


def paper_hours() -> float:
    """Return the hours that the paper's Table 1 took: minutes an epoch, epochs, rows and seeds of each block."""
    known = published.tables()
    hours = 0.0
    for block in known["table5"]:
        rows = next(
            len(one["rows"]) for one in known["table1"] if all(one[key] == block[key] for key in ("task", "embedding"))
        )
        hours += block["minutes"] * block["epochs"] * rows * known["seeds"][block["task"]] / 60
    return hours


def _finding(finding: Finding) -> str:
    """Return what becomes of a finding: its claims by their verdict, where it holds, its largest cases."""
    if not finding.cases:
        return "Not tested."
    verdicts = [claim.verdict for claim in finding.claims]
    counts = [(verdicts.count(word), word) for word in VERDICTS if word in verdicts]
    first = f"{counts[0][0]} of {plural(len(verdicts), 'claim')} {counts[0][1]}"
    whole = f"{', '.join([first, *(f'{count} {word}' for count, word in counts[1:])])} ({tallied(finding.cases)})"
    said = [sentence(whole), sentence(_capital(holds(finding.cases)))] if holds(finding.cases) else [sentence(whole)]
    largest = [
        f"{head} {_largest(finding.claims, outcome)}"
        for head, outcome in (("largest:", "borne out"), ("largest against it:", "contradicted"))
        if any(case.outcome == outcome for case in finding.cases)
    ]
    return " ".join([*said, *([_capital(sentence("; ".join(largest)))] if largest else [])])


def _largest(claims: Sequence[Claim], outcome: str) -> str:
    found: list[tuple[Claim, Case]] = [
        (claim, case) for claim in claims for case in claim.cases if case.outcome == outcome
    ]
    claim, case = max(found, key=lambda one: abs(one[1].difference.mean))
    more = f" in what {claim.gain} gain" if claim.gain else ""
    return f"{claim.ours} against {claim.against} {by(case.difference, case.metric)}{more} ({case.where})"


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _left(summaries: Sequence[Summary]) -> list[str]:
    reasons = {(one.name, name): why for one in summaries for name, why in not_run(one)}
    # The paper's blocks have one name in several of its tables.
    official = len({name for (_, name), why in reasons.items() if why.startswith("not run:")})
    yet = sum(not why.startswith("not run:") for why in reasons.values())
    said = [f"{plural(official, 'block needs', 'blocks need')} files that are not at hand"] if official else []
    said += [f"{plural(yet, 'block')} could be run and {'is' if yet == 1 else 'are'} not yet"] if yet else []
    return [f"Not run: {'; '.join(said)}. They are named at the end of their experiments."] if said else []
