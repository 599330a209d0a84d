"""The numbers that a verdict rests on: what is stored of a diagnosis, so that a verdict can be drawn again."""

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
    """What a verdict rests on, its lines aside: the same numbers with other lines may be another verdict."""

    host: Host
    #: of the whole matrix; the distribution is of those that the source had
    rows: int
    spread: Distribution
    shape: Geometry
    absorbed: Absorption | None
    #: shares of types and, where counts are known, of running tokens
    coverage: tuple[float, float | None]
    #: σ of the rows that the source lacked; None where they are too few to tell
    missing_std: float | None
    #: what the model is for; None: not said, and advised as for translation
    task: TaskKind | None = None
    #: whether the rows are a source's, each where it belongs: random and shuffled ones have nothing to lose
    meaning: bool = True

    @property
    def table(self) -> str:
        """Return the table of `verdict.toml` whose lines decide what is advised."""
        if self.absorbed is None:
            return "stream"
        of_classifiers = self.task == "classification" and self.host.positions == "sinusoidal"
        return "classification" if of_classifiers else "ratio"

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as plain JSON values; `basis_of` reads them."""
        return asdict(self)


def basis_of(content: Mapping[str, Any]) -> Basis:
    """Return what `Basis.as_json` wrote, also after JSON made lists of its tuples."""
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
