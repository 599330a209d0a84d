"""The verdict: the advice for a matrix in a host, decided from its measurements."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from embinit.diagnosis.absorption import Absorption
from embinit.diagnosis.basis import Basis
from embinit.diagnosis.findings import Finding, Severity, position_findings, rounding_findings, row_findings
from embinit.diagnosis.wording import Advice, Case, advice_of, advice_text, fraction, headline
from embinit.display import Panel
from embinit.recipes.names import named_recipes
from embinit.recipes.recipe import Recipe
from embinit.recipes.recipe import recipe as recipe_of
from embinit.seeds import stream
from embinit.types import TEXT_TASKS, Aligned, Host, Matrix, xavier_std

#: The thresholds of the verdict: table -> name -> number, as in `verdict.toml`.
Thresholds = Mapping[str, Mapping[str, float]]

_TO_HOST = "pretrained | center | scale to=host"


@dataclass(frozen=True)
class Verdict:
    """The advice for vectors in a model: a recipe, a learning rate, and the findings behind them."""

    #: the rule that decided; it gives the advice and the headline
    case: Case
    #: the advised recipe
    recipe: str
    #: the single findings, each with its severity and its sentence
    findings: tuple[Finding, ...]
    #: the factor on the rows' learning rate: 1 is the rate of the other weights
    rate: float = 1.0
    #: the recipe if all weights share one learning rate; None if the advised rate is 1
    at_full_rate: str | None = None
    #: the ratio of rows to positions that the recipe scales to, if the headline names it
    target: float | None = None
    #: the model that the advice is for
    host: Host | None = None
    #: the fill of the recipe that was diagnosed
    fill: str = Recipe.fill

    def __repr__(self) -> str:
        return self.panel().text()

    def _repr_html_(self) -> str:
        return self.panel().html()

    def panel(self) -> Panel:
        """Return the summary for a notebook or a page."""
        from embinit.diagnosis.panel import verdict_panel

        return verdict_panel(self)

    @property
    def advice(self) -> Advice:
        """Return the advice: `as is`, `as is or lightly scaled`, `standardize`, `scale down` or `enlarge`."""
        return advice_of(self.case)

    @property
    def headline(self) -> str:
        """Return the advice as a sentence, with its reason."""
        return headline(self.case, self.target, self.rate)

    @property
    def summary(self) -> str:
        """Return the advice in a few words, with its learning rate."""
        return advice_text(self.advice, self.rate)

    def matrix(self, aligned: Aligned, *, seed: int = 0, full_rate: bool = False) -> Matrix:
        """Return the matrix that the advice asks for: the advised recipe, in the model that the advice is for.

        Parameters
        ----------
        aligned
            The vectors that were diagnosed.
        seed
            The seed of the missing rows and of random steps. `embinit make --seed` draws the same numbers.
        full_rate
            Whether all weights of your model share one learning rate. The recipe is then `at_full_rate`, if there is one.

        Returns
        -------
        Matrix
            float32 numbers of shape (tokens, dimensions).

        Raises
        ------
        EmbinitError
            If no token was found, or a step does not fit the rows.

        Examples
        --------
        >>> verdict = embinit.diagnose(aligned, host="gpt2").verdict                  # doctest: +SKIP
        >>> embinit.set_embedding(model.get_input_embeddings(), verdict.matrix(aligned))      # doctest: +SKIP
        """
        advised = self.at_full_rate if full_rate and self.at_full_rate is not None else self.recipe
        return recipe_of(advised, self.fill)(aligned, stream(seed, "matrix"), self.host)

    def on_rows_of(self, recipe: Recipe) -> Verdict:
        """Return the verdict for rows that a recipe made. The advice to use the rows as they are then names this recipe."""
        if str(recipe) == "pretrained":
            return replace(self, fill=recipe.fill)
        # A recipe without a name is written out as its steps.
        own = recipe.name if recipe.name in named_recipes() else str(recipe)
        at_full_rate = own if self.at_full_rate == "pretrained" else self.at_full_rate
        advised = own if self.recipe == "pretrained" else self.recipe
        return replace(self, recipe=advised, at_full_rate=at_full_rate, fill=recipe.fill)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        findings = [
            {"severity": finding.severity, "name": finding.name, "text": finding.text} for finding in self.findings
        ]
        return {
            "advice": self.advice,
            "headline": self.headline,
            "recipe": self.recipe,
            "rate": self.rate,
            "at_full_rate": self.at_full_rate,
            "findings": findings,
        }


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files("embinit.diagnosis").joinpath("verdict.toml").read_text("utf-8"))


def thresholds() -> Thresholds:
    """Return the thresholds of the verdict; the file also has their evidence."""
    return {table: values for table, values in _data().items() if table != "evidence"}


def verdict(basis: Basis, limits: Thresholds | None = None) -> Verdict:
    """Return the verdict on a matrix with these measurements, by the given thresholds or by those of the package."""
    limits = thresholds() if limits is None else limits
    rate, at_full_rate = 1.0, None
    if basis.absorbed is None:
        decision = _without_positions(basis, limits["stream"])
        findings = list(decision.findings)
    else:
        if basis.table == "classification":
            decision = _for_classifier(basis, basis.absorbed, limits["classification"])
        else:
            decision = _with_positions(basis, basis.absorbed, limits["ratio"])
        if _should_learn_slowly(basis, decision.recipe, limits["rows"]):
            rate, at_full_rate = limits["classification"]["rate"], decision.recipe
            decision = _for_slow_rows(basis, decision, limits)
        findings = [*decision.findings, *position_findings(basis.host)]
        findings += rounding_findings(basis.absorbed, basis.host, limits["rounding"])
    findings += row_findings(basis, limits["rows"])
    if basis.task in TEXT_TASKS:
        findings.append(Finding("note", "task", "untested_language_model"))
    return Verdict(
        decision.case, decision.recipe, tuple(findings), rate, at_full_rate, decision.target, host=basis.host
    )


class _Decision(NamedTuple):
    case: Case
    recipe: str
    findings: Sequence[Finding]
    target: float | None = None


# ---------------------------------------------------------------- models that add positions to rows


def _with_positions(basis: Basis, absorbed: Absorption, limit: Mapping[str, float]) -> _Decision:
    ratio = _round_ratio(absorbed.ratio)
    if ratio > limit["border"]:
        case: Case = "absorbed" if _positions_unreadable(absorbed) else "outweighed"
        recipe = _recipe_into_range(basis, limit)
        return _Decision(case, recipe, [_absorption("harm", case, basis, absorbed, neighbours=False)])
    if ratio > limit["good"]:
        kind = "larger"
        if absorbed.position_readout is not None:
            weak = absorbed.position_readout < limit["readable"]
            kind = "larger_weak" if weak else "larger_readable"
        return _Decision("near", "pretrained", [_absorption("note", kind, basis, absorbed)])
    if ratio >= limit["buried"]:
        return _Decision("fitting", "pretrained", [_absorption("good", "fitting", basis, absorbed)])
    if not basis.meaning:
        return _Decision("random", "pretrained", [_absorption("good", "drowned", basis, absorbed, readout=False)])
    drowned = _absorption("note", "drowned", basis, absorbed, readout=False)
    return _Decision("drowned", _scale_to(limit["aim"]), [drowned])


def _for_classifier(basis: Basis, absorbed: Absorption, limit: Mapping[str, float]) -> _Decision:
    """Decide for a classifier at the full rate: it needs the meaning of its rows more than the positions."""
    ratio, recipe = _round_ratio(absorbed.ratio), _scale_to(limit["aim"])
    if ratio > limit["high"]:
        kind = "classifier_absorbed" if _positions_unreadable(absorbed) else "classifier_outweighed"
        findings = [_absorption("harm", kind, basis, absorbed, neighbours=False), Finding("note", "order", "order")]
        return _Decision("classifier_large", recipe, findings, limit["aim"])
    if ratio >= limit["low"]:
        fitting = _absorption("good", "classifier_fitting", basis, absorbed)
        return _Decision("classifier_fitting", "pretrained", [fitting])
    if not basis.meaning:
        small = _absorption("good", "classifier_small", basis, absorbed, readout=False)
        return _Decision("random", "pretrained", [small])
    small = _absorption("note", "classifier_small", basis, absorbed, readout=False)
    return _Decision("classifier_small", recipe, [small], limit["aim"])


def _should_learn_slowly(basis: Basis, recipe: str, limit: Mapping[str, float]) -> bool:
    """Return whether the rows of this recipe should learn slowly: in a classifier, if most of them have a meaning."""
    has_meaning = basis.meaning or recipe != "pretrained"
    return basis.table == "classification" and has_meaning and basis.coverage[0] >= limit["coverage"]


def _for_slow_rows(basis: Basis, full_rate: _Decision, limits: Thresholds) -> _Decision:
    """Decide for rows that learn slowly: standardize them, whatever their size."""
    limit, spread = limits["classification"], basis.spread
    own_ratio, ratio, recipe = _ratio(basis, spread.std), _ratio(basis, _xavier_std(basis)), "pretrained_xavier"
    if ratio < limit["small"]:
        ratio, recipe = limits["ratio"]["aim"], _scale_to(limits["ratio"]["aim"])
    reasons = [_quoted("rate", "slow_rows", rate=fraction(limit["rate"]))]
    if ratio < (own_ratio if full_rate.recipe == "pretrained" else limit["aim"]):
        reasons.append(_quoted("size", "larger_slow_rows", aim=limit["aim"]))
    centered = abs(spread.mean) <= limits["rows"]["offset"] * spread.std
    if centered and abs(math.log(own_ratio / ratio)) <= math.log(limit["near"]):
        return _Decision("slow_standardized", "pretrained", [*full_rate.findings, *reasons])
    # The size of the rows is good only at the full rate, so the finding becomes a note.
    findings = [
        replace(finding, severity="note") if finding.severity == "good" else finding for finding in full_rate.findings
    ]
    return _Decision("slow" if basis.meaning else "slow_source", recipe, [*findings, *reasons])


def _quoted(name: str, kind: str, **numbers: object) -> Finding:
    """Return a note that quotes published results."""
    return Finding("note", name, kind, {**_data()["evidence"][kind], **numbers})


def _absorption(
    severity: Severity, kind: str, basis: Basis, absorbed: Absorption, *, readout: bool = True, neighbours: bool = True
) -> Finding:
    """Return the finding about rows and positions, with the relevant measurements."""
    tested = basis.host.positions == "sinusoidal" and basis.host.norm == "none"
    numbers = {
        "ratio": absorbed.ratio,
        "readout": absorbed.position_readout if readout else None,
        "neighbours": absorbed.neighbours_kept if neighbours else None,
        "tested": tested,
    }
    return Finding(severity, "absorption", kind, numbers)


def _round_ratio(ratio: float) -> float:
    """Return a ratio in six digits, so that rows that a recipe scaled to a threshold are exactly on it."""
    return float(f"{ratio:.6g}")


def _positions_unreadable(absorbed: Absorption) -> bool:
    return absorbed.position_readout is None or absorbed.position_readout < 0.5


def _xavier_std(basis: Basis) -> float:
    """Return Xavier's σ at the size of the matrix."""
    return xavier_std(basis.rows, basis.spread.dim)


def _ratio(basis: Basis, std: float) -> float:
    """Return the ratio of rows with this σ to the positions."""
    return std * basis.host.multiplier(basis.spread.dim) / basis.host.position_rms


def _scale_to(ratio: float) -> str:
    return f"pretrained | center | scale ratio={ratio}"


def _recipe_into_range(basis: Basis, limit: Mapping[str, float]) -> str:
    """Return the recipe that scales rows into the range: the paper's if Xavier's σ at this size is inside."""
    if basis.host.positions != "sinusoidal":
        return _TO_HOST
    if limit["buried"] <= _ratio(basis, _xavier_std(basis)) <= limit["good"]:
        return "pretrained_xavier"
    return _scale_to(limit["aim"])


# ---------------------------------------------------------------- models that do not add positions


def _without_positions(basis: Basis, limit: Mapping[str, float]) -> _Decision:
    spread, host = basis.spread, basis.host
    own = host.initial_std(basis.rows, spread.dim)
    ratio = spread.std / own
    numbers = {"positions": host.positions, "std": spread.std, "ratio": ratio, "own": own, "host": host.name}
    if ratio > limit["high"]:
        return _Decision(
            "stream_large", _TO_HOST, [Finding("harm", "scale", "scale", numbers), *_rotary_note(basis, own)]
        )
    if ratio < limit["low"]:
        return _Decision(
            "stream_small", _TO_HOST, [Finding("note", "scale", "scale", numbers), *_rotary_note(basis, own)]
        )
    findings = [Finding("good", "scale", "scale", numbers), *_rotary_note(basis, spread.std)]
    return _Decision("stream_fitting", "pretrained", findings)


def _rotary_note(basis: Basis, std: float) -> list[Finding]:
    """Return a note for a classifier with rotary positions whose rows will have this σ, if larger rows did better."""
    measured = basis.task == "classification" and basis.host.positions == "rotary" and basis.meaning
    if not measured or std >= basis.spread.dim**-0.5:
        return []
    return [_quoted("task", "larger_rotary_rows")]
