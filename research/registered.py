"""Judge the test of the registered rule, as docs/explanation/registered-rule.md defines it."""

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
#: A recipe, and the rate of the source's rows.
Start = tuple[str, float]
RULE: Start = (STANDARDIZED, 0.1)
#: Name of a comparator -> its start.
COMPARATORS: Mapping[str, Start] = {
    "random rows": (RANDOM, 1.0),
    "standardized rows at the full rate": (STANDARDIZED, 1.0),
}
#: Adviser whose regret is printed -> its start. Random rows have no source, so both rates are the same runs.
ADVISERS: Mapping[str, Start] = {
    "the rule: always standardized, at a tenth of the rate": RULE,
    "always standardized": (STANDARDIZED, 1.0),
    "always random, at either rate": (RANDOM, 1.0),
    "always raw": ("pretrained", 1.0),
    "always raw, at a tenth of the rate": ("pretrained", 0.1),
}
#: Outcome of the test -> the advice that follows, in the words of the registration.
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
    #: scores at the epoch of the lowest validation loss, where translators are scored anyway
    by_loss: Scores
    epochs: int
    #: mean best epoch of random rows
    best_random: float
    #: start -> number of planned runs without a result
    missing: Mapping[Start, int]
    #: start -> number of runs without a score because their loss became NaN
    unscored: Mapping[Start, int]

    @property
    def long_enough(self) -> bool:
        """Return whether the training is as long as the rule requires."""
        return self.epochs >= ENOUGH * self.best_random

    @property
    def regrets(self) -> Mapping[Start, float]:
        """Return start -> the distance of its mean to the highest mean, for all starts without missing runs.

        Means are over the seeds that all of these starts have.
        """
        complete = {start: by_seed for start, by_seed in self.scores.items() if start not in self.missing}
        common = set.intersection(*(set(by_seed) for by_seed in complete.values())) if complete else set()
        means = {start: plain.fmean(by_seed[seed] for seed in common) for start, by_seed in complete.items() if common}
        best = max(means.values(), default=0.0)
        return {start: best - mean for start, mean in means.items()}


@dataclass(frozen=True)
class Judgement:
    """The two registered criteria on several data sets."""

    #: comparator -> the rule minus it
    differences: Mapping[str, Clustered]
    gain: bool
    no_loss: bool
    #: whether an upper bound lies below zero
    lost: bool

    @property
    def holds(self) -> bool:
        """Return whether both criteria hold."""
        return self.gain and self.no_loss


def margin() -> float:
    """Return the largest difference below zero that counts as no loss, in points."""
    return power.designs()[0].margin


def registered_blocks(files: Sequence[ResultsFile]) -> tuple[RegisteredBlock, ...]:
    """Return the blocks of the test in the results."""
    blocks = []
    for part in PARTS:
        for file in files:
            if file.experiment.name == part:
                blocks += [_block(part, block, file.results) for block in file.experiment.blocks]
    return tuple(blocks)


def missing_parts(blocks: Sequence[RegisteredBlock], part: str) -> list[str]:
    """Return a phrase for each thing that the criteria need of a part and the results lack. Raw rows are not needed."""
    design = power.designs()[PARTS.index(part)]
    phrases = []
    for data_set in design.sets:
        available = [block for block in blocks if block.part == part and block.data == data_set.task]
        if len(available) != data_set.blocks:
            phrases.append(f"{data_set.name}: {len(available)} of {plural(data_set.blocks, 'block')}")
        for block in available:
            needed = (RULE, *COMPARATORS.values())
            seeds = [len(block.scores.get(start, {})) + block.unscored.get(start, 0) for start in needed]
            missing = sum(block.missing.get(start, 0) for start in needed)
            if missing:
                phrases.append(f"{block.name}: {plural(missing, 'run')} missing")
            elif min(seeds) < data_set.seeds:
                phrases.append(f"{block.name}: {min(seeds)} of {plural(data_set.seeds, 'seed')}")
    return phrases


def by_data(blocks: Sequence[RegisteredBlock]) -> dict[str, list[RegisteredBlock]]:
    """Return data set -> its blocks."""
    grouped: dict[str, list[RegisteredBlock]] = {}
    for block in blocks:
        grouped.setdefault(block.data, []).append(block)
    return grouped


def judge(blocks: Sequence[RegisteredBlock], by_loss: bool = False) -> Judgement:
    """Return both criteria on these blocks. Differences are paired by seed, averaged over blocks, then over data sets."""
    differences = {
        name: pool_data_sets(
            [_differences(listed_blocks, start, by_loss) for listed_blocks in by_data(blocks).values()]
        )
        for name, start in COMPARATORS.items()
    }
    bounds = [(difference.low, difference.high) for difference in differences.values()]
    low = differences["random rows"].low
    return Judgement(
        differences,
        gain=low is not None and low > 0,
        no_loss=all(bound is not None and bound > -margin() for bound, _ in bounds),
        lost=any(bound is not None and bound < 0 for _, bound in bounds),
    )


def judge_separately(blocks: Sequence[RegisteredBlock], by_loss: bool = False) -> dict[str, dict[str, Clustered]]:
    """Return comparator -> data set -> the rule minus the comparator on this data set."""
    return {
        name: {
            data: pool_blocks(_differences(listed_blocks, start, by_loss))
            for data, listed_blocks in by_data(blocks).items()
        }
        for name, start in COMPARATORS.items()
    }


def outcome(blocks: Sequence[RegisteredBlock]) -> Outcome:
    """Return the registered outcome; open while a run that it depends on is missing."""
    if missing_parts(blocks, KEPT_ASIDE):
        return "open"
    aside = judge([block for block in blocks if block.part == KEPT_ASIDE])
    if aside.holds:
        return "held"
    if aside.lost:
        return "lost"
    if missing_parts(blocks, FRESH_SEEDS):
        return "open"
    return "held where made" if judge(blocks).holds else "not held"


def regret(blocks: Sequence[RegisteredBlock], start: Start) -> float | None:
    """Return the regret of a start, averaged over blocks, then over data sets; None if a block lacks the start."""
    means = []
    for blocks_of_set in by_data(blocks).values():
        regrets = [block.regrets.get(start) for block in blocks_of_set]
        known = [regret for regret in regrets if regret is not None]
        if len(known) < len(regrets):
            return None
        means.append(plain.fmean(known))
    return plain.fmean(means) if means else None


def open_text(blocks: Sequence[RegisteredBlock]) -> str:
    """Return everything that is missing for the outcome."""
    phrases = [phrase for part in PARTS for phrase in missing_parts(blocks, part)]
    return listed(phrases)


def _differences(blocks: Sequence[RegisteredBlock], comparator: Start, by_loss: bool) -> list[dict[int, float]]:
    """Return for each block: seed -> the rule minus a comparator, for seeds that both have."""
    differences = []
    for block in blocks:
        scores = block.by_loss if by_loss else block.scores
        ours, theirs = scores.get(RULE, {}), scores.get(comparator, {})
        differences.append({seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())})
    return differences


def _block(part: str, block: Block, results: Mapping[str, Result]) -> RegisteredBlock:
    factor = metric(block.score, block.split).factor
    scores: dict[Start, dict[int, float]] = {}
    by_loss: dict[Start, dict[int, float]] = {}
    best_epochs, missing, unscored = [], dict[str, Start](), dict[str, Start]()
    for planned in block.runs:
        spec = planned.spec
        recipe = spec.sides[0][1].recipe
        start = (recipe, 1.0 if recipe == RANDOM else float(dict(spec.training).get("found_rate", 1.0)))
        result = results.get(spec.key)
        value = None if result is None else result.scores.get(block.split, {}).get(block.score)
        if result is None:
            missing[spec.key] = start
        elif result.diverged or value is None:
            unscored[spec.key] = start
        else:
            scores.setdefault(start, {})[spec.seed] = factor * value
            by_loss.setdefault(start, {})[spec.seed] = _by_loss(block, result, factor * value)
            best_epochs += [result.best_epoch] if recipe == RANDOM else []
    spec = block.runs[0].spec
    return RegisteredBlock(
        part=part,
        data=spec.task.name,
        name=block.name,
        unit=metric(block.score, block.split).unit,
        scores=scores,
        by_loss=by_loss,
        epochs=int(dict(spec.training)["epochs"]),
        best_random=plain.fmean(best_epochs) if best_epochs else math.inf,
        missing=Counter(missing.values()),
        unscored=Counter(unscored.values()),
    )


def _by_loss(block: Block, result: Result, score: float) -> float:
    """Return a classifier's validation accuracy at the epoch of the lowest validation loss, or a translator's score."""
    if kind(block.score) == "translation":
        return score
    records = [record for record in result.history if record.get("accuracy") is not None]
    lowest = min(records, key=lambda record: math.inf if (loss := record.get("valid loss")) is None else loss)
    return 100 * float(lowest["accuracy"] or 0)
