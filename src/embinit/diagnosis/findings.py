"""Findings: observations about a matrix, with their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from embinit.diagnosis.absorption import Absorption
from embinit.diagnosis.basis import Basis
from embinit.diagnosis.wording import Numbers, finding_text
from embinit.types import Host

Severity = Literal["good", "note", "harm"]


@dataclass(frozen=True)
class Finding:
    """An observation with its numbers."""

    severity: Severity
    #: the topic, for example `absorption`
    name: str
    #: the statement about the topic; `wording.toml` has its sentence
    kind: str
    numbers: Numbers = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the sentence of the finding."""
        return finding_text(self.kind, self.numbers)


def position_findings(host: Host) -> list[Finding]:
    """Return a note if the size of the host's positions is assumed, not measured."""
    if not host.position_rms_assumed:
        return []
    return [Finding("note", "positions", "positions_assumed", {"rms": host.position_rms, "host": host.name})]


def rounding_findings(absorbed: Absorption, host: Host, threshold: Mapping[str, float]) -> list[Finding]:
    """Return the part of the positions that rounding to number formats loses."""
    lost = {
        number_format: share for number_format, share in absorbed.rounding_loss.items() if share >= threshold["note"]
    }
    if not lost:
        return [Finding("good", "rounding", "rounding_harmless")]
    numbers = {"lost": lost, "format": host.numbers}
    if lost.get(host.numbers, 0.0) >= threshold["harm"]:
        return [Finding("harm", "rounding", "rounding", numbers)]
    kind = "rounding_elsewhere" if max(lost.values()) >= threshold["harm"] else "rounding_little"
    return [Finding("note", "rounding", kind, numbers)]


def row_findings(basis: Basis, threshold: Mapping[str, float]) -> list[Finding]:
    """Return findings about unusual properties of the rows, whatever the advice is."""
    spread, shape, host, missing_std = basis.spread, basis.shape, basis.host, basis.missing_std
    findings: list[Finding] = []

    def add(severity: Severity, name: str, **numbers: object) -> None:
        findings.append(Finding(severity, name, name.replace(" ", "_"), numbers))

    if host.dim not in (None, spread.dim):
        add("note", "dimension", rows=spread.dim, model=host.dim, host=host.name, project="orthogonal")
    if basis.coverage[0] < threshold["coverage"]:
        add("harm", "coverage", share=basis.coverage[0])
    if missing_std is not None and spread.std > 0:
        factor = max(missing_std, 1e-12) / spread.std
        if not 1 / threshold["unlike"] < factor < threshold["unlike"]:
            add("note", "missing rows", missing=missing_std, found=spread.std)
    if spread.std > 0 and abs(spread.mean) > threshold["offset"] * spread.std:
        add("note", "mean", offset=abs(spread.mean) / spread.std)
    if shape.mean_cosine > threshold["cone"]:
        add("note", "isotropy", cosine=shape.mean_cosine)
    if shape.outlier_dimensions:
        dimensions = shape.outlier_dimensions
        add("note", "outlier dimensions", count=len(dimensions), dimensions=dimensions)
    if shape.zero_rows:
        add("note", "zero rows", count=shape.zero_rows)
    if shape.duplicate_rows:
        add("note", "duplicate rows", count=shape.duplicate_rows)
    if shape.bad_rows:
        findings.append(Finding("harm", "NaN or infinite rows", "bad_rows", {"count": shape.bad_rows}))
    logits = spread.std * (1 if host.output_scaled else spread.dim**0.5)
    if host.tied and not host.headless and basis.task != "classification" and logits > threshold["logits"]:
        add("harm", "logits", std=logits)
    return findings
