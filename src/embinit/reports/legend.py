"""The text of every report beside its numbers: an introduction, how to read them, and how they were made."""

from __future__ import annotations

from embinit.format import duration, plural
from embinit.models.architecture import TABLED
from embinit.reports import metrics
from embinit.reports.analysis.rows import LEVEL
from embinit.reports.model import Summary

_ABOUT = (
    "A transformer’s embedding layer turns every token into a row of numbers, and training needs rows to start from. "
    "The rows can be random, or vectors that were trained elsewhere and carry meaning."
)
_SINUSOIDS = (
    "adds a position encoding of size one to each row. Much larger rows hide it, and then the model cannot tell the order "
    "of the words."
)
_POSITIONS = {
    "learned": "The model adds a position vector to each row, and training learns these vectors.",
    "none": "The model gets no positions.",
    **dict.fromkeys(("rotary", "alibi", "relative"), "Positions act inside attention and are not added to the rows."),
    **dict.fromkeys(TABLED, f"The model {_SINUSOIDS}"),
}
_TRAINED = (
    "Here the same model is trained from each of the starts below. Runs of one seed share all other weights and the order "
    "of the data, so only the start, and the settings named beside it, make a difference."
)


def introduction(summary: Summary) -> str:
    """Return an introduction for readers who do not know the paper."""
    if summary.introduction:
        return summary.introduction
    about = f"{_ABOUT} {_about_positions(summary)}"
    return f"{about} {_TRAINED}" if any(part.rows for part in summary.parts) else about


def _about_positions(summary: Summary) -> str:
    """Return what the positions of the models mean for the rows; measurements assume sinusoids."""
    axis = "model.positions"
    kinds = {part.settings[axis] for part in summary.parts if axis in part.settings}
    kinds |= {value for part in summary.parts for row in part.rows for name, value in row.axes if name == axis}
    texts = {_POSITIONS[kind] for kind in kinds or {"sinusoidal"} if kind in _POSITIONS}
    if len(texts) == 1:
        return texts.pop()
    first = f"With sinusoidal positions, the model {_SINUSOIDS} " if kinds & set(TABLED) else ""
    return f"{first}The positions differ between the models, and the tables name them."


def explanation(summary: Summary) -> list[str]:
    """Return how to read the tables and charts: one or two sentences for each."""
    if any(part.metric.name == "verdict" for part in summary.parts):
        return [
            "The ratio is σ of the rows as the model adds them, over the root mean square of the positions (0.707). "
            "“Positions found” is the share of positions that a linear read-out finds in the sum of row and position; "
            "chance is 5 %. “Neighbours kept” is the share of ten nearest neighbours that stay when positions are added."
        ]
    if not any(part.rows for part in summary.parts):
        return [
            "Range, mean and σ are over all numbers of a matrix; “× √D” is after the model’s multiplication. The paper’s "
            "numbers are of the encoder’s matrix. An analogy is right if the nearest row is the answer; the three rows of "
            "the question do not count."
        ]
    texts = [
        "± is the sample standard deviation over seeds. Intervals are 95 %: from the t distribution below 10 seeds, by "
        "bootstrap from 10. “–” means no run; “(2/5)” means that 2 of 5 seeds are finished.",
        f"Differences are paired by seed. p is that of the paired t test, corrected by Holm over all comparisons of this "
        f"report. *, ** and *** mark p below {LEVEL}, 0.01 and 0.001. There is no mark if the exact permutation test cannot "
        "reach 0.05 with the number of seeds.",
        "The permutation test is exact; its floor is the smallest p that the number of seeds allows. Improvement is the "
        "share of pairs of runs, one of each start, in which the start beats the baseline.",
        "Bold is the best mean of its setting. Curves show the mean over seeds and a band of one σ to each side.",
    ]
    if any(len(row.differences) > 1 for part in summary.parts for row in part.rows):
        texts.append(
            "With several baselines, each difference has a line of its own. A baseline without a setting has the setting of "
            "the start. A mark beside a mean is the weakest mark of its differences, and means better, or worse, than all "
            "baselines. Of two baselines, the later one is compared with the earlier one."
        )
    if any(part.sweep is not None for part in summary.parts):
        texts.append(
            "Sweeps have many places with few seeds each. The bars, the cost of size, and the places that are as good "
            "within noise therefore use one σ, estimated from all places of a block."
        )
    if any(not choice.named for choice in summary.choices):
        texts.append(
            "A chosen start has the highest mean on the seeds of the choice, baselines excluded. It is judged on other "
            "seeds. Holm’s correction of its differences covers only the chosen starts, because other runs had no part in "
            "the choice. Comparisons on the seeds of the choice are corrected among themselves."
        )
    if any(choice.named for choice in summary.choices):
        texts.append(
            "A start that was named beforehand was in the experiment’s file before its block was run. Holm’s correction of "
            "its differences covers only such starts."
        )
    if any(row.paper for part in summary.parts for row in part.rows):
        texts.append("“Within noise” means that our 95 % interval reaches the paper’s mean ± its printed σ.")
    if any(shape.ratio is not None for part in summary.parts for shape in part.shapes):
        texts.append(
            "The ratio is σ of the rows as the model adds them, over the root mean square of the positions (0.707). Well "
            "above 1 the rows hide the positions; well below 1 the positions hide the rows."
        )
    scores = dict.fromkeys(part.metric.name for part in summary.parts)
    texts += [f"{metrics.metric(name, '').label}: {metrics.about(name)}." for name in scores if metrics.about(name)]
    return texts


def reproduction(summary: Summary) -> list[tuple[str, str]]:
    """Return how the numbers were made: runs, time, devices, versions, commits, signatures of scores."""
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
