"""The test of the registered rule, judged: docs/explanation/registered-rule.md says what is compared and what follows."""

from __future__ import annotations

import math
import statistics as plain
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from embinit.experiments.experiment import Block
from embinit.experiments.runs.result import Result
from embinit.format import listed, plural
from embinit.reports.metrics import kind, metric
from embinit.reports.results_reader import ResultsFile
from embinit.statistics import Clustered, pool_blocks, pool_data_sets
from research import power
from research.travel import ENOUGH, RANDOM, STANDARDIZED

#: Experiments of the test, in the order of the designs in registered.toml.
KEPT_ASIDE, FRESH_SEEDS = PARTS = ("kept_aside", "fresh_seeds")
#: A recipe, and the rate of the rows that the source has.
Start = tuple[str, float]
RULE: Start = (STANDARDIZED, 0.1)
#: Starts that the rule is compared with.
COMPARATORS: Mapping[str, Start] = {
    "random rows": (RANDOM, 1.0),
    "standardized rows at the full rate": (STANDARDIZED, 1.0),
}
#: Advisers whose regret is printed. Random rows have no rows of a source, so that both rates are the same runs.
ADVISERS: Mapping[str, Start] = {
    "the rule: always standardized, at a tenth of the rate": RULE,
    "always standardized": (STANDARDIZED, 1.0),
    "always random, at either rate": (RANDOM, 1.0),
    "always raw": ("pretrained", 1.0),
    "always raw, at a tenth of the rate": ("pretrained", 0.1),
}
#: What follows from the test, by its outcome; the sentences of the registration.
OUTCOMES = {
    "held": "The rule, for every task. The README may call it better than random rows.",
    "held where made": (
        "The rule, for every task. The README may say that it was better where it was made, and no worse elsewhere."
    ),
    "not held": "Standardized rows at the full rate, for every task, with the rate as something to compare.",
    "lost": (
        "Standardized rows at the full rate, for every task, with the rate as something to compare. The documentation says "
        "that the rule lost."
    ),
    "open": "",
}
Outcome = Literal["held", "held where made", "not held", "lost", "open"]
Scores = Mapping[Start, Mapping[int, float]]


@dataclass(frozen=True)
class RegisteredBlock:
    """A block of the test."""

    part: str
    #: the task's name
    data: str
    name: str
    unit: str
    #: start -> seed -> score, in BLEU or points, as embinit reports it
    scores: Scores
    #: the same at the epoch of the lowest validation loss; translators are scored there anyway
    by_loss: Scores
    epochs: int
    #: mean best epoch of random rows
    best_random: float
    #: start -> its planned runs that are not there
    missing: Mapping[Start, int]
    #: runs without a score, because their loss became NaN
    unscored: int

    @property
    def long_enough(self) -> bool:
        """Return whether the training is as long as the rule asks for."""
        return self.epochs >= ENOUGH * self.best_random

    @property
    def regrets(self) -> Mapping[Start, float]:
        """Return start -> the distance of its mean to the highest one, of all starts that were run in full.

        Means are over the seeds that all of these starts have.
        """
        whole = {start: by_seed for start, by_seed in self.scores.items() if start not in self.missing}
        common = set.intersection(*(set(by_seed) for by_seed in whole.values())) if whole else set()
        means = {start: plain.fmean(by_seed[seed] for seed in common) for start, by_seed in whole.items() if common}
        best = max(means.values(), default=0.0)
        return {start: best - mean for start, mean in means.items()}


@dataclass(frozen=True)
class Judgement:
    """Both registered criteria on several data sets."""

    #: comparator -> the rule minus it
    differences: Mapping[str, Clustered]
    gain: bool
    no_loss: bool
    #: an upper bound lies below zero
    lost: bool

    @property
    def holds(self) -> bool:
        """Return whether both criteria hold."""
        return self.gain and self.no_loss


def margin() -> float:
    """Return the distance below zero that counts as no loss, in points."""
    return power.designs()[0].margin


def registered_blocks(files: Sequence[ResultsFile]) -> tuple[RegisteredBlock, ...]:
    """Return the blocks of the test that are among the results."""
    blocks = []
    for part in PARTS:
        for file in files:
            if file.experiment.name == part:
                blocks += [_block(part, block, file.results) for block in file.experiment.blocks]
    return tuple(blocks)


def lacking(blocks: Sequence[RegisteredBlock], part: str) -> list[str]:
    """Return what the criteria need of a part and the results lack, a phrase each; they do not need raw rows."""
    design = power.designs()[PARTS.index(part)]
    phrases = []
    for data_set in design.sets:
        there = [block for block in blocks if block.part == part and block.data == data_set.task]
        if len(there) != data_set.blocks:
            phrases.append(f"{data_set.name}: {len(there)} of {plural(data_set.blocks, 'block')}")
        for block in there:
            needed = (RULE, *COMPARATORS.values())
            seeds = {len(block.scores.get(start, {})) for start in needed}
            missing = sum(block.missing.get(start, 0) for start in needed)
            if missing:
                phrases.append(f"{block.name}: {plural(missing, 'run')} missing")
            elif min(seeds) + block.unscored < data_set.seeds:
                phrases.append(f"{block.name}: {min(seeds)} of {plural(data_set.seeds, 'seed')}")
    return phrases


def by_data(blocks: Sequence[RegisteredBlock]) -> dict[str, list[RegisteredBlock]]:
    """Return data set -> its blocks."""
    grouped: dict[str, list[RegisteredBlock]] = {}
    for block in blocks:
        grouped.setdefault(block.data, []).append(block)
    return grouped


def judge(blocks: Sequence[RegisteredBlock], by_loss: bool = False) -> Judgement:
    """Return the criteria on these blocks: paired by seed, means over blocks, then over data sets."""
    differences = {
        name: pool_data_sets(
            [_differences(listed_blocks, start, by_loss) for listed_blocks in by_data(blocks).values()]
        )
        for name, start in COMPARATORS.items()
    }
    bounds = [(one.low, one.high) for one in differences.values()]
    low = differences["random rows"].low
    return Judgement(
        differences,
        gain=low is not None and low > 0,
        no_loss=all(bound is not None and bound > -margin() for bound, _ in bounds),
        lost=any(bound is not None and bound < 0 for _, bound in bounds),
    )


def alone(blocks: Sequence[RegisteredBlock], by_loss: bool = False) -> dict[str, dict[str, Clustered]]:
    """Return comparator -> data set -> the rule minus the comparator on this data set alone."""
    return {
        name: {
            data: pool_blocks(_differences(listed_blocks, start, by_loss))
            for data, listed_blocks in by_data(blocks).items()
        }
        for name, start in COMPARATORS.items()
    }


def outcome(blocks: Sequence[RegisteredBlock]) -> Outcome:
    """Return the registered outcome; open as long as a run that it depends on is missing."""
    if lacking(blocks, KEPT_ASIDE):
        return "open"
    aside = judge([block for block in blocks if block.part == KEPT_ASIDE])
    if aside.holds:
        return "held"
    if aside.lost:
        return "lost"
    if lacking(blocks, FRESH_SEEDS):
        return "open"
    return "held where made" if judge(blocks).holds else "not held"


def regret(blocks: Sequence[RegisteredBlock], start: Start) -> float | None:
    """Return a start's regret, the mean over data sets of the means over blocks; None if a block did not run it."""
    means = []
    for blocks_of_set in by_data(blocks).values():
        regrets = [block.regrets.get(start) for block in blocks_of_set]
        known = [one for one in regrets if one is not None]
        if len(known) < len(regrets):
            return None
        means.append(plain.fmean(known))
    return plain.fmean(means) if means else None


def open_text(blocks: Sequence[RegisteredBlock]) -> str:
    """Return what the verdict waits for."""
    phrases = [phrase for part in PARTS for phrase in lacking(blocks, part)]
    return listed(phrases)


def _differences(blocks: Sequence[RegisteredBlock], comparator: Start, by_loss: bool) -> list[dict[int, float]]:
    """Return for each block the rule minus a comparator at each seed that both have."""
    pairs = []
    for block in blocks:
        scores = block.by_loss if by_loss else block.scores
        ours, theirs = scores.get(RULE, {}), scores.get(comparator, {})
        pairs.append({seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())})
    return pairs


def _block(part: str, block: Block, results: Mapping[str, Result]) -> RegisteredBlock:
    factor = metric(block.score, block.split).factor
    scores: dict[Start, dict[int, float]] = {}
    by_loss: dict[Start, dict[int, float]] = {}
    best, missing, unscored = [], dict[str, Start](), set[str]()
    for planned in block.runs:
        spec = planned.spec
        recipe = spec.sides[0][1].recipe
        start = (recipe, 1.0 if recipe == RANDOM else float(dict(spec.training).get("found_rate", 1.0)))
        result = results.get(spec.key)
        value = None if result is None else result.scores.get(block.split, {}).get(block.score)
        if result is None:
            missing[spec.key] = start
        elif result.diverged or value is None:
            unscored.add(spec.key)
        else:
            scores.setdefault(start, {})[spec.seed] = factor * value
            by_loss.setdefault(start, {})[spec.seed] = _by_loss(block, result, factor * value)
            best += [result.best_epoch] if recipe == RANDOM else []
    spec = block.runs[0].spec
    return RegisteredBlock(
        part=part,
        data=spec.task.name,
        name=block.name,
        unit=metric(block.score, block.split).unit,
        scores=scores,
        by_loss=by_loss,
        epochs=int(dict(spec.training)["epochs"]),
        best_random=plain.fmean(best) if best else math.inf,
        missing=Counter(missing.values()),
        unscored=len(unscored),
    )


def _by_loss(block: Block, result: Result, kept: float) -> float:
    """Return a classifier's validation accuracy at the epoch of its lowest validation loss; a translator's own score."""
    if kind(block.score) == "translation":
        return kept
    records = [record for record in result.history if record.get("accuracy") is not None]
    record = min(records, key=lambda one: math.inf if (loss := one.get("valid loss")) is None else loss)
    return 100 * float(record["accuracy"] or 0)
