"""From numbers to plain words: what will happen, why, and the recipe to use."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from embinit.diagnosis.absorption import Absorption
from embinit.diagnosis.basis import Basis
from embinit.diagnosis.findings import Finding, of_positions, of_rounding, of_rows
from embinit.format import percent
from embinit.types import Host, xavier_std

#: Where a verdict draws its lines: table -> name -> number, as in `verdict.toml`.
Lines = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Verdict:
    """What to do with these vectors in this model."""

    #: `as is`, `as is or lightly scaled`, `standardize`, `scale down` (not as far: for classifiers), `enlarge`
    advice: str
    headline: str
    recipe: str
    findings: tuple[Finding, ...]
    #: what the rows' learning rate is to be multiplied with: 1 is that of the other weights
    rate: float = 1.0
    #: the recipe for rows that cannot have a rate of their own; None where they need none
    at_full_rate: str | None = None

    @property
    def said(self) -> str:
        """Return the advice in a few words, with its rate."""
        return said(self.advice, self.rate)

    def of(self, recipe: str) -> Verdict:
        """Return the same of rows that a recipe made: to leave them as they are is to make them so."""
        at_full_rate = recipe if self.at_full_rate == "pretrained" else self.at_full_rate
        return replace(self, recipe=recipe if self.recipe == "pretrained" else self.recipe, at_full_rate=at_full_rate)


@cache
def limits() -> dict[str, dict[str, float]]:
    """Return the lines that the verdict draws, with what they rest on in the file."""
    return tomllib.loads(resources.files("embinit.diagnosis").joinpath("verdict.toml").read_text("utf-8"))


def part(share: float) -> str:
    """Return what a rate is multiplied with as a person says it."""
    return {0.1: "a tenth", 0.5: "half"}.get(share, f"{share:g}")


def said(advice: str, rate: float) -> str:
    """Return an advice with the rate that goes with it.

    >>> said("as is", 1.0), said("standardize", 0.1)
    ('as is', 'standardize, at a tenth of the rate')
    """
    return advice if rate == 1 else f"{advice}, at {part(rate)} of the rate"


def verdict(basis: Basis, lines: Lines | None = None) -> Verdict:
    """Return the advice for a matrix of which these numbers are known, with every finding; by other lines where given."""
    lines = limits() if lines is None else lines
    rate, at_full_rate = 1.0, None
    if basis.absorbed is not None:
        advice, headline, recipe, findings = _with_positions(basis, basis.absorbed, lines)
        if _slower(basis, recipe, lines["rows"]):
            rate, at_full_rate = lines["classification"]["rate"], recipe
            advice, headline, recipe, findings = _slowly(basis, recipe, findings, lines)
        findings += of_positions(basis.host)
        findings += of_rounding(basis.absorbed, basis.host, lines["rounding"])
    else:
        advice, headline, recipe, findings = _without_positions(basis, lines["stream"])
    findings += of_rows(basis, lines["rows"])
    return Verdict(advice, headline, recipe, tuple(findings), rate, at_full_rate)


_Opinion = tuple[str, str, str, list[Finding]]
_SLOWER = (
    "standardized rows leave the positions to be read, and seem to keep what they mean if they learn slowly: at a tenth of "
    "the rate they gained 1.6 to 3.3 points on MNLI over the full one, and 0.6 to 2.0 on SST-2, where only GloVe's gained "
    "nothing (results/size.results.json)"
)
_SIZED = (
    "at that rate larger rows (1.4 times the positions, or BERT's as they come) did better still in three of eight tests, "
    "by 1.2 to 1.9 points on MNLI, and in none worse beyond noise: compare both (results/size.results.json)"
)


def _slower(basis: Basis, recipe: str, line: Mapping[str, float]) -> bool:
    """Return whether rows of which a recipe is advised should learn slowly: a classifier's, most of which mean something."""
    means = basis.meaning or recipe != "pretrained"
    return basis.table == "classification" and means and basis.coverage[0] >= line["coverage"]


def _slowly(basis: Basis, at_full_rate: str, seen: list[Finding], lines: Lines) -> _Opinion:
    """Return what to do with rows that learn slowly, of which this was seen: standardize them, whatever their size."""
    line, spread = lines["classification"], basis.spread
    how = f"let them learn at {part(line['rate'])} of the other weights' rate"
    own, ratio, recipe = _ratio(basis, spread.std), _ratio(basis, _xavier(basis)), "pretrained_xavier"
    if ratio < line["small"]:
        ratio, recipe = lines["ratio"]["aim"], _at(lines["ratio"]["aim"])
    why = [Finding("note", "rate", _SLOWER)]
    if ratio < (own if at_full_rate == "pretrained" else line["aim"]):
        why.append(Finding("note", "size", _SIZED))
    centered = abs(spread.mean) <= lines["rows"]["offset"] * spread.std
    if centered and abs(math.log(own / ratio)) <= math.log(line["near"]):
        headline = f"Use these vectors as they are, for they are standardized, and {how}."
        return "as is", headline, "pretrained", [*seen, *why]
    headline = (
        f"{'Standardize these vectors' if basis.meaning else 'Use the rows of the source, standardized'}, and {how}."
    )
    seen = [replace(one, severity="note") if one.severity == "good" else one for one in seen]
    return "standardize", headline, recipe, [*seen, *why]


def _with_positions(basis: Basis, absorbed: Absorption, lines: Lines) -> _Opinion:
    if basis.table == "classification":
        return _in_a_classifier(basis, absorbed, lines["classification"])
    line, ratio = lines["ratio"], _rounded(absorbed.ratio)
    seen, told, kept, taken = _words(basis.host, absorbed)
    if ratio > line["border"]:
        hidden = _hidden(absorbed)
        what = "positions are absorbed" if hidden else "rows outweigh the positions"
        text = f"{what}, which costs long sentences most: {seen}{told}{taken}"
        headline = (
            "Standardize these vectors: as they are the model will do worse than with Xavier's random ones, "
            f"for they {'absorb' if hidden else 'outweigh'} the positions."
        )
        return "standardize", headline, _target(basis, line), [Finding("harm", "absorption", text)]
    if ratio > line["good"]:
        text = f"{_still_told(absorbed, line['told'])}: {seen}{told}{kept}{taken}"
        headline = "Use these vectors as they are, or scale them lightly: they are near the range that does no harm."
        return "as is or lightly scaled", headline, "pretrained", [Finding("note", "absorption", text)]
    if ratio >= line["buried"]:
        text = f"rows and positions are of one size: {seen}{told}{kept}{taken}"
        headline = "Use these vectors as they are: their scale fits the positions."
        return "as is", headline, "pretrained", [Finding("good", "absorption", text)]
    text = f"positions drown the rows: {seen}{kept}{taken}"
    if not basis.meaning:
        return _random(text)
    headline = "Enlarge these vectors: they do no harm, but their meaning drowns in the positions."
    return "enlarge", headline, _at(line["aim"]), [Finding("note", "absorption", text)]


def _in_a_classifier(basis: Basis, absorbed: Absorption, line: Mapping[str, float]) -> _Opinion:
    """Return what to do where rows shall keep their meaning in training more than positions must be read from them."""
    seen, told, kept, taken = _words(basis.host, absorbed)
    size, ratio = f"{line['aim']} times the positions", _rounded(absorbed.ratio)
    if ratio > line["high"]:
        text = f"positions are {'absorbed' if _hidden(absorbed) else 'outweighed'}: {seen}{told}{taken}"
        headline = (
            f"Scale these vectors down to {size}, about the size that classifiers did best with at the full rate."
        )
        order = "at the full rate, where order hardly matters (sentiment), rows may do as well or better as they are"
        findings = [Finding("harm", "absorption", text), Finding("note", "order", order)]
        return "scale down", headline, _at(line["aim"]), findings
    if ratio >= line["low"]:
        text = f"rows are somewhat larger than the positions, or nearly as large: {seen}{told}{kept}{taken}"
        headline = "Use these vectors as they are: about the size that classifiers did best with at the full rate."
        return "as is", headline, "pretrained", [Finding("good", "absorption", text)]
    text = f"rows are small beside the positions: {seen}{kept}{taken}"
    if not basis.meaning:
        return _random(text)
    headline = (
        f"Enlarge these vectors to {size}: so small they do no harm, but training soon overwrites what they mean."
    )
    return "enlarge", headline, _at(line["aim"]), [Finding("note", "absorption", text)]


def _rounded(ratio: float) -> float:
    """Return a ratio in six digits: rows that a recipe scaled to a line are on it."""
    return float(f"{ratio:.6g}")


def _random(seen: str) -> _Opinion:
    headline = "Use these rows as they are: small ones do no harm, and random ones have no meaning to lose."
    return "as is", headline, "pretrained", [Finding("good", "absorption", seen)]


def _words(host: Host, absorbed: Absorption) -> tuple[str, str, str, str]:
    """Return what was seen in the sum of rows and positions: their sizes, what each keeps, and whose lines it is held to."""
    seen = f"scaled σ is {absorbed.ratio:.3g} times the rms of the positions"
    readout, stay = absorbed.position_readout, absorbed.neighbours_kept
    told = (
        ""
        if readout is None
        else f"; a linear read-out tells {percent(readout)} of positions from the sum (chance is 5 %)"
    )
    kept = "" if stay is None else f"; {percent(stay)} of nearest neighbours stay"
    own = host.positions == "sinusoidal" and host.norm == "none"
    taken = "" if own else " (measured with sinusoids and post-LN; taken over to this model)"
    return seen, told, kept, taken


def _still_told(absorbed: Absorption, line: float) -> str:
    """Return how well positions are seen beside rows that are larger, by what was measured."""
    if absorbed.position_readout is None:
        return "rows are larger than the positions"
    if absorbed.position_readout < line:
        return "positions are still there, though weak"
    return "rows are larger than the positions, which can still be told"


def _hidden(absorbed: Absorption) -> bool:
    return absorbed.position_readout is None or absorbed.position_readout < 0.5


def _xavier(basis: Basis) -> float:
    """Return Xavier's σ at the matrix's size."""
    return xavier_std(basis.rows, basis.spread.dim)


def _ratio(basis: Basis, std: float) -> float:
    """Return rows of this σ, as the model adds them, over the positions' rms."""
    return std * basis.host.multiplier(basis.spread.dim) / basis.host.position_rms


def _at(ratio: float) -> str:
    return f"pretrained | center | scale ratio={ratio}"


def _target(basis: Basis, line: Mapping[str, float]) -> str:
    """Return the recipe that brings rows into the range: the paper's where Xavier's σ lies in it at this size."""
    if basis.host.positions != "sinusoidal":
        return "pretrained | center | scale to=host"
    if line["buried"] <= _ratio(basis, _xavier(basis)) <= line["good"]:
        return "pretrained_xavier"
    return _at(line["aim"])


def _without_positions(basis: Basis, line: Mapping[str, float]) -> _Opinion:
    spread, host = basis.spread, basis.host
    own = host.initial_std(basis.rows, spread.dim)
    ratio = spread.std / own
    seen = f"σ is {spread.std:.3g}, {ratio:.3g} times the {own:.3g} that {host.name} draws"
    note = (
        f"positions are not added here ({host.positions}), so they cannot be absorbed; the scale still counts: {seen}"
    )
    recipe = "pretrained | center | scale to=host"
    if ratio > line["high"]:
        headline = "Scale these vectors down: the first updates of every block are small beside them."
        return "standardize", headline, recipe, [Finding("harm", "scale", note), *_larger(basis, own)]
    if ratio < line["low"]:
        headline = "Enlarge these vectors: they are small beside what the model's blocks add."
        return "enlarge", headline, recipe, [Finding("note", "scale", note), *_larger(basis, own)]
    headline = "Use these vectors as they are: their scale is the model's own."
    return "as is", headline, "pretrained", [Finding("good", "scale", note), *_larger(basis, spread.std)]


def _larger(basis: Basis, std: float) -> list[Finding]:
    """Return what a classifier with rotary positions is told of rows that will be of this σ: larger ones were tried."""
    tried = basis.task == "classification" and basis.host.positions == "rotary" and basis.meaning
    if not tried or std >= basis.spread.dim**-0.5:
        return []
    text = (
        "a classifier may do better with larger rows: with rotary positions, GloVe at σ = 1/√D gained 2.2 points "
        "[1.5, 2.9] over Xavier's σ on MNLI, and at 4.7 times Xavier's σ 1.0 [0.3, 1.7] on SST-2 "
        "(results/both.results.json); compare `pretrained | center | scale to=inverse_sqrt_d`"
    )
    return [Finding("note", "task", text)]


def as_dict(value: Verdict) -> dict[str, Any]:
    """Return the verdict as plain data."""
    return {
        "advice": value.advice,
        "headline": value.headline,
        "recipe": value.recipe,
        "rate": value.rate,
        "at_full_rate": value.at_full_rate,
        "findings": [vars(finding) for finding in value.findings],
    }
