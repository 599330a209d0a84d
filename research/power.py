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
    #: σ between seeds of one block's paired difference, in points
    std: float
    #: where `std` comes from
    source: str


@dataclass(frozen=True)
class Design:
    """One of the registered tests."""

    name: str
    #: correlation of two blocks' differences at one seed
    correlation: float
    #: largest difference below zero that still counts as no loss, in points
    margin: float
    effects: tuple[float, ...]
    sets: tuple[DataSet, ...]


@cache
def designs() -> tuple[Design, ...]:
    """Return the designs in registered.toml."""
    content: dict[str, Any] = tomllib.loads(Path(__file__).with_name("registered.toml").read_text("utf-8"))
    return tuple(
        Design(
            name=entry["name"],
            correlation=float(content["correlation"]),
            margin=float(content["margin"]),
            effects=tuple(float(effect) for effect in content["effects"]),
            sets=tuple(DataSet(**data_set) for data_set in entry["set"]),
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
    """Return the share of tests whose pooled 95 % interval lies above a bound, for this true difference everywhere."""
    rng = stream(0, f"power of {design.name} at {effect} over {bound}")
    (low,) = _lower_bounds(design, [effect], rng)
    return float((low > bound).mean())


def power_of_both(design: Design, random: float, standardized: float) -> float:
    """Return the share of tests in which both criteria hold, for these true differences to random and standardized rows.

    The two differences of a seed share the run of the rule, so their correlation is a half.
    """
    rng = stream(0, f"power of {design.name} at {random} and {standardized}")
    gain, loss = _lower_bounds(design, [random, standardized], rng)
    return float(((gain > 0) & (loss > -design.margin)).mean())


def _lower_bounds(design: Design, effects: Sequence[float], rng: np.random.Generator) -> list[npt.NDArray[np.float64]]:
    """Simulate tests with these true differences, and return the lower bounds of their pooled intervals."""
    pooled: list[tuple[list[Any], list[Any]]] = [([], []) for _ in effects]
    freedoms = [data_set.seeds - 1 for data_set in design.sets]
    for data_set in design.sets:
        shape, std = (_REPEATS, data_set.seeds), math.sqrt(_variance(data_set, design.correlation))
        first = rng.normal(0, std, shape)
        for place, (effect, (means, variances)) in enumerate(zip(effects, pooled, strict=True)):
            noise = first if place == 0 else first / 2 + rng.normal(0, std * math.sqrt(0.75), shape)
            values = effect + noise
            means.append(values.mean(axis=1))
            variances.append(values.var(axis=1, ddof=1) / data_set.seeds / len(design.sets) ** 2)
    bounds = []
    for means, variances in pooled:
        mean, variance = np.mean(means, axis=0), np.sum(variances, axis=0)
        squares = sum(part**2 / freedom for part, freedom in zip(variances, freedoms, strict=True))
        reach = np.array([t_quantile(0.975, round(float(freedom), 1)) for freedom in variance**2 / squares])
        bounds.append(mean - reach * np.sqrt(variance))
    return bounds


def powers(design: Design) -> Mapping[float, tuple[float, float, float]]:
    """Return effect -> the power to show a gain, to show no loss beyond the margin, and of the registered decision.

    For the registered decision, the difference to standardized rows is half of the effect, which is the difference to
    random rows.
    """
    return {
        effect: (
            power(design, effect),
            power(design, effect, -design.margin),
            power_of_both(design, effect, effect / 2),
        )
        for effect in design.effects
    }


def together(all_designs: Sequence[Design]) -> Design:
    """Return one design with the data sets of all designs."""
    name = f"all {len(sets_of(all_designs))} data sets"
    return replace(all_designs[0], name=name, sets=sets_of(all_designs))


def _variance(data_set: DataSet, correlation: float) -> float:
    """Return the variance between seeds of the mean over a data set's blocks."""
    return data_set.std**2 * (1 + (data_set.blocks - 1) * correlation) / data_set.blocks


def sets_of(all_designs: Sequence[Design]) -> tuple[DataSet, ...]:
    """Return the data sets of all_designs designs."""
    return tuple(data_set for design in all_designs for data_set in design.sets)
