"""The sentences of a verdict, rendered from its data and the templates in `wording.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

from embinit.format import listed, number, percent

Advice = Literal["as is", "as is or lightly scaled", "standardize", "scale down", "enlarge"]
#: The rule that decided: for rows with added positions, for classifiers, for rows that learn slowly, for other models.
Case = Literal[
    "absorbed",
    "outweighed",
    "near",
    "fitting",
    "drowned",
    "random",
    "classifier_large",
    "classifier_fitting",
    "classifier_small",
    "slow",
    "slow_source",
    "slow_standardized",
    "stream_large",
    "stream_small",
    "stream_fitting",
]
#: The numbers that a sentence quotes, by name.
Numbers = Mapping[str, Any]


@cache
def templates() -> dict[str, dict[str, Any]]:
    """Return the advice and headline of each case, and the sentence of each kind of finding."""
    return tomllib.loads(resources.files("embinit.diagnosis").joinpath("wording.toml").read_text("utf-8"))


def advice_of(case: Case) -> Advice:
    """Return the advice of a case."""
    return templates()["cases"][case]["advice"]  # type: ignore[no-any-return]


def headline(case: Case, target: float | None, rate: float) -> str:
    """Return the headline of a case."""
    template: str = templates()["cases"][case]["headline"]
    return template.format(target=target, rate=fraction(rate))


def advice_text(advice: str, rate: float) -> str:
    """Return an advice together with its learning rate.

    >>> advice_text("as is", 1.0), advice_text("standardize", 0.1)
    ('as is', 'standardize, at a tenth of the rate')
    """
    return advice if rate == 1 else f"{advice}, at {fraction(rate)} of the rate"


def fraction(share: float) -> str:
    """Return a part of the learning rate, in words if there is a common one: `a tenth`, `half`, `0.3`."""
    return {0.1: "a tenth", 0.5: "half"}.get(share, f"{share:g}")


def finding_text(kind: str, numbers: Numbers) -> str:
    """Return the sentence of a finding."""
    template: str = templates()["findings"][kind]
    return template.format(**{**numbers, **_phrases(numbers)})


def _phrases(numbers: Numbers) -> dict[str, str]:
    """Return the phrases for numbers that `str.format` cannot write: shares, lists, and measurements that may be unknown."""
    phrases = {}
    if "tested" in numbers:
        phrases["measured"] = _measured(numbers)
    if "lost" in numbers:
        phrases["lost"] = _lost(numbers["lost"])
    if "share" in numbers:
        phrases["share"] = percent(numbers["share"])
    if "dimensions" in numbers:
        phrases["dimensions"] = ", ".join(map(str, numbers["dimensions"][:5]))
    return phrases


def _measured(numbers: Numbers) -> str:
    parts = [f"the scaled σ is {number(numbers['ratio'])} times the rms of the positions"]
    if numbers["readout"] is not None:
        parts.append(f"a linear read-out finds {percent(numbers['readout'])} of positions (chance is 5 %)")
    if numbers["neighbours"] is not None:
        parts.append(f"{percent(numbers['neighbours'])} of nearest neighbours stay")
    transfer = "" if numbers["tested"] else " The thresholds come from models with sinusoids and post-LN."
    return f"{listed(parts)}.{transfer}"


def _lost(shares: Mapping[str, float]) -> str:
    (worst, share), *others = sorted(shares.items(), key=lambda item: -item[1])
    parts = [f"{percent(share)} of their signal is lost in {worst}"]
    return listed([*parts, *(f"{percent(share)} in {number_format}" for number_format, share in others)])
