"""The summary at the top of RESULTS.md: runs, support of each finding, answer to each open question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from embinit.format import duration, ended, plural
from embinit.reports.analysis import published
from embinit.reports.analysis.provenance import busy
from embinit.reports.model import Summary
from embinit.reports.sentences import difference_text
from embinit.reports.writers.completed import completed_blocks, missing_blocks
from embinit.reports.writers.markdown import text
from research.advice import headline
from research.findings import AGAINST, SUPPORTED, Case, Claim, PublishedFinding, support, support_by_kind
from research.trials import Trial


def section(
    summaries: Sequence[Summary], findings: Sequence[PublishedFinding], diagnosed: Sequence[Trial]
) -> list[str]:
    """Return the section with a line for each answer."""
    bullets = [text(cost(summaries))]
    bullets += [f"**{text(ended(entry.title))}** {text(_finding(entry))}" for entry in findings]
    bullets += [
        f"**{text(ended(entry.title))}** {text(str(entry.answer))}"
        for entry in summaries
        if is_open(entry) and completed_blocks(entry)
    ]
    bullets += [f"**The advice of `embinit inspect`.** {text(headline(diagnosed))}"] if diagnosed else []
    bullets += _missing(summaries)
    return ["## In short", "", *(f"- {line}" for line in bullets), ""]


def is_open(summary: Summary) -> bool:
    """Return whether an experiment is about a question that the paper leaves open: its file is in `open/`."""
    return "open" in PurePosixPath(summary.file).parts[:-1]


def cost(summaries: Sequence[Summary]) -> str:
    """Return a sentence on the number of runs and the device time, compared with the paper's."""
    runs = {key for summary in summaries for key in summary.cost.shares}
    devices = ", ".join(dict.fromkeys(device for summary in summaries for device in summary.cost.devices))
    took = duration(busy(summary.cost for summary in summaries))
    return (
        f"{plural(len(runs), 'run')} kept the device{f' ({devices})' if devices else ''} busy for {took}; time that "
        f"runs share counts once. The paper's Table 1 alone took about {paper_hours():.0f} GPU-hours, by its Table 5."
    )


def paper_hours() -> float:
    """Return the hours of the paper's Table 1, from the minutes per epoch, epochs, rows and seeds of each block."""
    tables = published.tables()
    hours = 0.0
    for block in tables["table5"]:
        rows = next(
            len(entry["rows"])
            for entry in tables["table1"]
            if all(entry[key] == block[key] for key in ("task", "embedding"))
        )
        hours += block["minutes"] * block["epochs"] * rows * tables["seeds"][block["task"]] / 60
    return hours


def _finding(finding: PublishedFinding) -> str:
    """Return the support of a finding: over its claims, by kind of task, and in its largest cases."""
    if not finding.cases:
        return "Not tested."
    claims = [claim.support for claim in finding.claims if claim.cases]
    mixed = sum(counts.supported > 0 and counts.against > 0 for counts in claims)
    sentences = [f"Its {plural(len(claims), 'tested claim')}: {support(finding.cases)}."]
    kinds = support_by_kind(finding.cases)
    sentences += (
        [f"{'; '.join(f'{name.capitalize()}: {counts}' for name, counts in kinds.items())}."] if len(kinds) > 1 else []
    )
    sentences += [f"{plural(mixed, 'claim')} {'has' if mixed == 1 else 'have'} cases on both sides."] if mixed else []
    for head, outcome in (("Largest in support", SUPPORTED), ("Largest against", AGAINST)):
        if any(case.outcome == outcome for case in finding.cases):
            sentences.append(f"{head}: {_largest(finding.claims, outcome)}.")
    return " ".join(sentences)


def _largest(claims: Sequence[Claim], outcome: str) -> str:
    cases: list[tuple[Claim, Case]] = [
        (claim, case) for claim in claims for case in claim.cases if case.outcome == outcome
    ]
    claim, case = max(cases, key=lambda pair: abs(pair[1].difference.mean))
    gain = f" in the gain from {claim.gain}" if claim.gain else ""
    return f"{claim.ours} against {claim.against} {difference_text(case.difference, case.metric)}{gain} ({case.where})"


def _missing(summaries: Sequence[Summary]) -> list[str]:
    missing = {(summary.name, block.name): block for summary in summaries for block in missing_blocks(summary)}
    # Several tables of the paper have blocks with the same name.
    without_files = len({block.name for block in missing.values() if block.lacks_files})
    waiting = sum(not block.lacks_files for block in missing.values())
    parts = (
        [f"{plural(without_files, 'block needs', 'blocks need')} files that are missing here"] if without_files else []
    )
    parts += (
        [f"{plural(waiting, 'block')} can be run, but {'has' if waiting == 1 else 'have'} not been yet"]
        if waiting
        else []
    )
    return [f"Not run: {'; '.join(parts)}. The page of each experiment lists its missing blocks."] if parts else []
