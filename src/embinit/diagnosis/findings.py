"""What is seen in a matrix, a sentence each: of its positions, of rounding, of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from embinit.diagnosis.absorption import Absorption
from embinit.diagnosis.basis import Basis
from embinit.format import percent
from embinit.types import Host

Severity = Literal["good", "note", "harm"]


@dataclass(frozen=True)
class Finding:
    """One thing that was seen, with its number."""

    severity: Severity
    name: str
    text: str


def of_positions(host: Host) -> list[Finding]:
    """Return a word on positions whose size is not known."""
    if not host.position_rms_assumed:
        return []
    text = (
        f"the size of the positions is assumed, rms {host.position_rms:.3g}: {host.name} comes without learned "
        "positions that could be measured"
    )
    return [Finding("note", "positions", text)]


def of_rounding(absorbed: Absorption, host: Host, line: Mapping[str, float]) -> list[Finding]:
    """Return what number formats leave of the positions."""
    lost = {form: share for form, share in absorbed.rounding_loss.items() if share >= line["note"]}
    if not lost:
        return [Finding("good", "rounding", "no number format loses the positions at this scale")]
    first, *others = sorted(lost, key=lambda form: -lost[form])
    listed = ", ".join(
        [
            f"{percent(lost[first])} of their signal is lost in {first}",
            *(f"{percent(lost[form])} in {form}" for form in others),
        ]
    )
    own = lost.get(host.numbers, 0.0) >= line["harm"]
    severity: Severity = "harm" if own else "note"
    if lost[first] < line["harm"]:
        word = "lose a little to rounding"
    else:
        word = "are rounded away" if own else f"would be rounded away in another format than {host.numbers}"
    return [Finding(severity, "rounding", f"positions {word}: {listed}")]


def of_rows(basis: Basis, line: Mapping[str, float]) -> list[Finding]:
    """Return what is odd about the rows themselves, whatever is advised."""
    spread, shape, host = basis.spread, basis.shape, basis.host
    coverage, missing_std = basis.coverage, basis.missing_std
    found: list[Finding] = []

    def say(severity: Severity, name: str, text: str) -> None:
        found.append(Finding(severity, name, text))

    if coverage[0] < line["coverage"]:
        say("harm", "coverage", f"only {percent(coverage[0])} of the vocabulary was found; most rows will be random")
    if missing_std is not None and spread.std > 0:
        unlike = max(missing_std, 1e-12) / spread.std
        if not 1 / line["unlike"] < unlike < line["unlike"]:
            say("note", "missing rows", f"missing rows have σ {missing_std:.3g}, found ones {spread.std:.3g}")
    if spread.std > 0 and abs(spread.mean) > line["offset"] * spread.std:
        say(
            "note",
            "mean",
            f"the mean is {abs(spread.mean) / spread.std:.2f} σ from zero; `pretrained | center` takes it away",
        )
    if shape.mean_cosine > line["cone"]:
        say(
            "note",
            "isotropy",
            f"rows point the same way (mean cosine {shape.mean_cosine:.2f}); `pretrained | all_but_the_top` spreads them",
        )
    if shape.outlier_dimensions:
        listed = ", ".join(map(str, shape.outlier_dimensions[:5]))
        count = len(shape.outlier_dimensions)
        verb = "dimensions dominate" if count > 1 else "dimension dominates"
        say("note", "outlier dimensions", f"{count} {verb} ({listed})")
    for count, what in (
        (shape.zero_rows, "zero rows"),
        (shape.duplicate_rows, "duplicate rows"),
        (shape.bad_rows, "NaN or infinite rows"),
    ):
        if count:
            text = f"{count:,} {what if count > 1 else what.removesuffix('s')}"
            say("harm" if what.startswith("NaN") else "note", what, text)
    logits = spread.std * (1 if host.output_scaled else spread.dim**0.5)
    if host.tied and basis.task != "classification" and logits > line["logits"]:
        text = f"tied embeddings: first logits have σ {logits:.3g}, so that the loss starts far off"
        say("harm", "logits", text)
    return found
