"""The power of the registered test, simulated from the σ between seeds of finished runs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embinit.seeds import stream
from embinit.statistics.student import t_quantile

_REPEATS = 4000


@dataclass(frozen=True)
class DataSet:
    """A data set of the registered test."""

    name: str
    #: its name in experiments
    task: str
    blocks: int
    seeds: int
    #: of one block's paired difference between seeds, in points
    std: float
    #: the source of that σ
    source: str


@dataclass(frozen=True)
class Design:
    """One of the registered tests."""

    name: str
    #: correlation of two blocks' differences at one seed
    correlation: float
    #: a difference may lie this far below zero and still count as no loss, in points
    margin: float
    effects: tuple[float, ...]
    sets: tuple[DataSet, ...]


@cache
def designs() -> tuple[Design, ...]:
    """Return the designs of registered.toml."""
    content: dict[str, Any] = tomllib.loads(Path(__file__).with_name("registered.toml").read_text("utf-8"))
    return tuple(
        Design(
            name=entry["name"],
            correlation=float(content["correlation"]),
            margin=float(content["margin"]),
            effects=tuple(float(effect) for effect in content["effects"]),
            sets=tuple(DataSet(**known) for known in entry["set"]),
        )
        for entry in content["design"]
    )


def standard_error(design: Design) -> float:
    """Return the expected standard error of the mean over data sets.

    >>> one = DataSet("a", "a", blocks=1, seeds=4, std=1.0, source="")
    >>> standard_error(Design("", 0.5, 0.3, (), (one,)))
    0.5
    """
    return math.sqrt(
        math.fsum(_variance(data_set, design.correlation) / data_set.seeds for data_set in design.sets)
    ) / len(design.sets)


def power(design: Design, effect: float, bound: float = 0.0) -> float:
    """Return how often the pooled 95 % interval lies above a bound if every data set has this true difference."""
    rng = stream(0, f"power of {design.name} at {effect} over {bound}")
    (low,) = _lower_bounds(design, [effect], rng)
    return float((low > bound).mean())


def power_of_both(design: Design, random: float, standardized: float) -> float:
    """Return how often both criteria hold, with these true differences to random and to standardized rows.

    The two differences of a seed share the run of the rule, so that they are correlated by a half.
    """
    rng = stream(0, f"power of {design.name} at {random} and {standardized}")
    low, other = _lower_bounds(design, [random, standardized], rng)
    return float(((low > 0) & (other > -design.margin)).mean())


def _lower_bounds(design: Design, effects: Sequence[float], rng: np.random.Generator) -> list[npt.NDArray[np.float64]]:
    """Return the lower bounds of the pooled intervals of differences with these true values, in simulated tests."""
    pooled: list[tuple[list[Any], list[Any]]] = [([], []) for _ in effects]
    freedoms = [data_set.seeds - 1 for data_set in design.sets]
    for data_set in design.sets:
        shape, std = (_REPEATS, data_set.seeds), math.sqrt(_variance(data_set, design.correlation))
        first = rng.normal(0, std, shape)
        for place, (effect, (means, variances)) in enumerate(zip(effects, pooled, strict=True)):
            own = first if place == 0 else first / 2 + rng.normal(0, std * math.sqrt(0.75), shape)
            values = effect + own
            means.append(values.mean(axis=1))
            variances.append(values.var(axis=1, ddof=1) / data_set.seeds / len(design.sets) ** 2)
    lows = []
    for means, variances in pooled:
        mean, variance = np.mean(means, axis=0), np.sum(variances, axis=0)
        squares = sum(part**2 / freedom for part, freedom in zip(variances, freedoms, strict=True))
        reach = np.array([t_quantile(0.975, round(float(freedom), 1)) for freedom in variance**2 / squares])
        lows.append(mean - reach * np.sqrt(variance))
    return lows


def powers(design: Design) -> Mapping[float, tuple[float, float, float]]:
    """Return effect -> the power to show a gain, no loss beyond the margin, and both against half of it.

    The last one is the power of the registered decision if the difference to standardized rows is half of that to
    random ones.
    """
    return {
        effect: (
            power(design, effect),
            power(design, effect, -design.margin),
            power_of_both(design, effect, effect / 2),
        )
        for effect in design.effects
    }


def together(listed_designs: Sequence[Design]) -> Design:
    """Return the test on the data sets of all designs."""
    name = f"all {len(sets_of(listed_designs))} data sets"
    return replace(listed_designs[0], name=name, sets=sets_of(listed_designs))


def _variance(data_set: DataSet, correlation: float) -> float:
    """Return the variance between seeds of the mean over a data set's blocks."""
    return data_set.std**2 * (1 + (data_set.blocks - 1) * correlation) / data_set.blocks


def sets_of(listed_designs: Sequence[Design]) -> tuple[DataSet, ...]:
    """Return the data sets of several designs."""
    return tuple(data_set for design in listed_designs for data_set in design.sets)
