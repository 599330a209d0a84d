"""Compare standardized rows at a tenth of the rate with other starts, in all results: paired by seed, pooled by data set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Side, Spec
from embinit.reports.metrics import metric
from embinit.reports.results_reader import ResultsFile
from embinit.statistics import Clustered, pool_blocks

SLOW = 0.1
#: Setting that slows rows -> its description.
MECHANISMS = {"embedding_rate": "all rows at a tenth", "found_rate": "the source's rows at a tenth"}
#: Name of a comparator of standardized slow rows -> (recipe, whether slow).
COMPARATORS = {
    "random rows": ("xavier", False),
    "standardized rows at the full rate": ("pretrained_xavier", False),
    "raw rows": ("pretrained", False),
    "random rows at a tenth": ("xavier", True),
    "raw rows at a tenth": ("pretrained", True),
}
_OURS = ("pretrained_xavier", True)
_Start = tuple[str, bool]


@dataclass
class RateSetting:
    """The runs of one setting and source: start -> seed -> score, in BLEU or percent."""

    data: str
    name: str
    mechanism: str
    scores: dict[_Start, dict[int, float]] = field(default_factory=dict)

    def differences(self, comparator: str) -> dict[int, float]:
        """Return seed -> our score minus the comparator's, for seeds that both have."""
        ours, theirs = self.scores.get(_OURS, {}), self.scores.get(COMPARATORS[comparator], {})
        return {seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())}


def rate_settings(files: Iterable[ResultsFile]) -> tuple[RateSetting, ...]:
    """Return every setting with standardized rows at a tenth of the rate, with the other starts in that setting."""
    runs: dict[str, tuple[str, str, str, Result]] = {}
    for file in files:
        if file.experiment.kind != "training":
            continue
        for block in file.experiment.blocks:
            for planned in block.runs:
                result = file.results.get(planned.spec.key)
                if result is not None and not result.diverged:
                    runs.setdefault(planned.spec.key, (block.name, block.score, block.split, result))
    settings: list[RateSetting] = []
    for mechanism in MECHANISMS:
        settings += _settings_of(list(runs.values()), mechanism)
    return tuple(sorted(settings, key=lambda setting: (setting.mechanism, setting.data, setting.name)))


def pooled(settings: Sequence[RateSetting], comparator: str) -> dict[str, Clustered]:
    """Return data set -> the pooled difference to a comparator over its settings, clustered by seed."""
    by_data: dict[str, list[dict[int, float]]] = {}
    for setting in settings:
        differences = setting.differences(comparator)
        if len(differences) > 1:
            by_data.setdefault(setting.data, []).append(differences)
    return {data: pool_blocks(blocks) for data, blocks in by_data.items()}


def seed_std(settings: Sequence[RateSetting], comparator: str) -> dict[str, float]:
    """Return data set -> σ between seeds of the paired difference, pooled over its settings."""
    squares: dict[str, list[float]] = {}
    freedom: dict[str, int] = {}
    for setting in settings:
        values = list(setting.differences(comparator).values())
        if len(values) > 1:
            mean = math.fsum(values) / len(values)
            squares.setdefault(setting.data, []).append(math.fsum((value - mean) ** 2 for value in values))
            freedom[setting.data] = freedom.get(setting.data, 0) + len(values) - 1
    return {data: math.sqrt(math.fsum(sums) / freedom[data]) for data, sums in squares.items()}


def _settings_of(runs: Sequence[tuple[str, str, str, Result]], mechanism: str) -> list[RateSetting]:
    sourced: dict[tuple[str, tuple[str, ...]], RateSetting] = {}
    random: dict[str, dict[_Start, dict[int, float]]] = {}
    for name, score, split, result in runs:
        spec = result.spec
        slow = _slow(spec, mechanism)
        value = result.scores.get(split, {}).get(score)
        if slow is None or value is None:
            continue
        recipes = {side.recipe for _, side in spec.sides}
        recipe = next(iter(recipes))
        if len(recipes) > 1 or recipe not in {compared for compared, _ in COMPARATORS.values()}:
            continue
        setting, sources = _setting(spec), tuple(side.rows or side.source for _, side in spec.sides)
        scaled = value * (1 if metric(score, split).unit == "BLEU" else 100)
        if any(sources):
            rate_setting = sourced.setdefault((setting, sources), RateSetting(spec.task.name, name, mechanism))
            rate_setting.scores.setdefault((recipe, slow), {})[spec.seed] = scaled
        else:
            random.setdefault(setting, {}).setdefault((recipe, slow), {})[spec.seed] = scaled
    for (setting, _), rate_setting in sourced.items():
        rate_setting.scores |= random.get(setting, {})
    return [entry for entry in sourced.values() if _OURS in entry.scores and len(entry.scores) > 1]


def _slow(spec: Spec, mechanism: str) -> bool | None:
    """Return whether a mechanism slows the rows; None if they have another rate or another mechanism."""
    training = dict(spec.training)
    rates = {name: float(training.get(name, 1.0)) for name in MECHANISMS}
    random = not any(side.source for _, side in spec.sides)
    key = "embedding_rate" if random else mechanism
    if any(rate != 1 for name, rate in rates.items() if name != key) or rates[key] not in (1.0, SLOW):
        return None
    return rates[key] == SLOW


def _setting(spec: Spec) -> str:
    """Return a key of a run's settings without its seed, its rows and their rate."""
    empty_sides = tuple((name, Side("", "")) for name, _ in spec.sides)
    training = tuple(pair for pair in spec.training if pair[0] not in MECHANISMS)
    return replace(spec, sides=empty_sides, seed=0, training=training).key
