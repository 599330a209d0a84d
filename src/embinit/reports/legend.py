"""What every report says beside its numbers: how to read them, and what made them."""

from __future__ import annotations

from embinit.format import duration, plural
from embinit.reports import metrics
from embinit.reports.analysis.rows import LEVEL
from embinit.reports.model import Summary

_ABOUT = (
    "A transformer’s embedding layer turns every token into a row of numbers, and training has to start from some rows. "
    "They can be random, or vectors that were learned elsewhere and carry meaning. A position encoding of size one is "
    "added to each row: rows that are much larger hide it, and the model can no longer tell where a word stands."
)
_TRAINED = (
    "Here the same model is trained from each of the starts below. Runs of one seed share all other weights and the order "
    "of the data, so that the start, and what is said beside it, alone makes the difference."
)


def introduction(summary: Summary) -> str:
    """Return what is compared and why, for someone who has not seen the paper."""
    if summary.introduction:
        return summary.introduction
    return f"{_ABOUT} {_TRAINED}" if any(part.rows for part in summary.parts) else _ABOUT


def explanation(summary: Summary) -> list[str]:
    """Return how to read the tables and charts, a sentence or two each."""
    if any(part.metric.name == "verdict" for part in summary.parts):
        return [
            "The ratio is σ of the rows as the model adds them, over the root mean square of the positions (0.707). "
            "Positions told is the share of positions that a linear read-out tells from the sum, chance being 5 %; "
            "neighbours kept is the share of ten nearest neighbours that stay when positions are added."
        ]
    if not any(part.rows for part in summary.parts):
        return [
            "Range, mean and σ are those of all numbers of a matrix; × √D is as the model multiplies them. The paper’s are "
            "of the encoder’s matrix. An analogy is right where the nearest row, the three of the question aside, is the "
            "one asked for."
        ]
    texts = [
        "± is the sample standard deviation over seeds. Intervals are 95 %: from the t distribution below 10 seeds, by "
        "bootstrap from 10. – is a cell without a run; (2/5) means that 2 of 5 seeds are there.",
        f"Differences are paired by seed. p is the paired t test’s, corrected by Holm over all comparisons of this report; "
        f"*, ** and *** mark p below {LEVEL}, 0.01 and 0.001, but never where so few seeds were run that the exact "
        "permutation test could not reach 0.05 whatever the data.",
        "The permutation test is exact; its floor is the smallest p that so many seeds can give. Improvement is the share "
        "of pairs of runs, one of each kind, in which the row beats the baseline.",
        "Bold is the highest mean of its setting. Curves show the mean over seeds and a band of one σ to each side.",
    ]
    if any(row.also for part in summary.parts for row in part.rows):
        texts.append(
            "Where rows have several baselines, each difference has a line of its own; a baseline without a setting is in "
            "the row’s own. Beside a mean, a mark means that it is better, or worse, than all of its baselines: it is the "
            "weakest of its marks. Of two baselines the one that is named later is compared with the other."
        )
    if any(part.sweep is not None for part in summary.parts):
        texts.append(
            "Sweeps have many places with few seeds each. Their bars, what size costs and which places are as good within "
            "noise go by one σ, that within all places of a block."
        )
    if any(not choice.named for choice in summary.choices):
        texts.append(
            "What is chosen is the start with the highest mean on its own few seeds, baselines aside. It is judged on other "
            "seeds, by differences that Holm corrects among themselves: what else was run there had no part in the choice. "
            "Comparisons on the seeds that only choose are corrected by themselves as well."
        )
    if any(choice.named for choice in summary.choices):
        texts.append(
            "A start that was named beforehand stands in the experiment’s file since before its block was run. Its "
            "differences to all baselines of all such blocks are corrected by Holm among themselves."
        )
    if any(row.paper for part in summary.parts for row in part.rows):
        texts.append(
            "Beside the paper’s number, “within noise” means that our 95 % interval reaches the paper’s mean ± its σ, as "
            "printed."
        )
    if any(part.shapes for part in summary.parts):
        texts.append(
            "The ratio is σ of the rows as the model adds them, over the root mean square of the positions (0.707): well "
            "above 1 the rows hide the positions, well below 1 the positions hide the rows."
        )
    scores = dict.fromkeys(part.metric.name for part in summary.parts)
    texts += [f"{metrics.metric(name, '').label}: {metrics.about(name)}." for name in scores if metrics.about(name)]
    return texts


def reproduction(summary: Summary) -> list[tuple[str, str]]:
    """Return what made the numbers: runs, time, devices, versions, commits, how scores were computed."""
    cost = summary.cost
    facts = [("runs", f"{cost.runs:,} of {cost.planned:,}")] if cost.planned else []
    facts += [("time", f"{duration(cost.seconds)} for {plural(cost.runs, 'run')}")] if cost.seconds else []
    facts += [("expected", cost.expected)] if cost.expected else []
    facts += [("device", ", ".join(cost.devices))] if cost.devices else []
    facts += [("versions", ", ".join(f"{name} {version}" for name, version in cost.versions.items()))] * bool(
        cost.versions
    )
    facts += [("commit", ", ".join(cost.commits))] if cost.commits else []
    facts += [("last run finished", cost.finished)] if cost.finished else []
    signatures = {(name, way): None for part in summary.parts for name, way in part.signatures.items()}
    return facts + [(f"signature of {name}", way) for name, way in signatures]
