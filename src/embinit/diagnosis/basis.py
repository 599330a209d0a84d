"""The measurements that decide a verdict. They are stored, so that other thresholds can be applied later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from embinit.diagnosis.absorption import Absorption
from embinit.diagnosis.distribution import Distribution
from embinit.diagnosis.geometry import Geometry
from embinit.types import Host, TaskKind


@dataclass(frozen=True)
class Basis:
    """The measurements that decide a verdict together with the thresholds."""

    host: Host
    #: rows of the complete matrix
    rows: int
    #: the distribution and the shape of the rows that the source has
    spread: Distribution
    shape: Geometry
    #: None if the host does not add positions
    absorbed: Absorption | None
    #: shares of types and, if counts are known, of running tokens
    coverage: tuple[float, float | None]
    #: σ of the missing rows; None if they are too few to measure
    missing_std: float | None
    #: the task of the model; None gives the same advice as translation
    task: TaskKind | None = None
    #: whether tokens have their own rows of a source; random and shuffled rows have no meaning to lose
    meaning: bool = True

    @property
    def table(self) -> str:
        """Return the table of `verdict.toml` whose thresholds decide the advice."""
        if self.absorbed is None:
            return "stream"
        for_classifiers = self.task == "classification" and self.host.positions == "sinusoidal"
        return "classification" if for_classifiers else "ratio"

    def as_json(self) -> dict[str, Any]:
        """Return the measurements as plain data; `basis_of` reads them."""
        return asdict(self)


def basis_of(content: Mapping[str, Any]) -> Basis:
    """Return the measurements of `Basis.as_json`, also after JSON turned tuples into lists."""
    shape, absorbed = content["shape"], content["absorbed"]
    types, tokens = content["coverage"]
    return Basis(
        host=Host(**content["host"]),
        rows=int(content["rows"]),
        spread=Distribution(**content["spread"]),
        shape=Geometry(**{**shape, "outlier_dimensions": tuple(shape["outlier_dimensions"])}),
        absorbed=None if absorbed is None else Absorption(**absorbed),
        coverage=(types, tokens),
        missing_std=content["missing_std"],
        task=content.get("task"),
        meaning=content.get("meaning", True),
    )
