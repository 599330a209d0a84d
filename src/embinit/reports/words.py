"""Names of scores, histories and settings as a person reads them, and numbers as text."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from embinit.reports.types import Metric

#: Stands where there is nothing.
NONE = "–"
#: How the lowest validation loss of a run is shown.
LOSS = Metric("valid loss", "validation loss", "", factor=1.0, digits=3, higher=False, split="valid")


@cache
def words() -> dict[str, Any]:
    """Return `words.toml`."""
    return tomllib.loads(resources.files("embinit.reports").joinpath("words.toml").read_text("utf-8"))


def metric(score: str, split: str) -> Metric:
    """Return a score by its name; one that is not known is shown as it is."""
    known = words()["score"].get(score, {})
    return Metric(
        name=score,
        label=known.get("label", score),
        unit=known.get("unit", score),
        factor=float(known.get("factor", 1)),
        digits=known.get("digits", 2),
        higher=known.get("higher", not score.endswith("loss")),
        split=split,
    )


def about(score: str) -> str:
    """Return what a score measures, or nothing."""
    return str(words()["score"].get(score, {}).get("about", ""))


def kind(score: str) -> str:
    """Return what kind of task a score is of: `translation`, `classification`; the score's name where it is not known."""
    return str(words()["score"].get(score, {}).get("kind", score))


def history(name: str) -> str:
    """Return what a history is called."""
    return str(words()["history"].get(name, name))


def setting(axis: str, value: str) -> str:
    """Return a value on an axis in words: `pre-LN`, `no positions`, `layers 6`; a recipe or source is its own name.

    >>> setting("training.embedding_rate", "0.5"), setting("training.embedding_rate", "0.1")
    ('rows at 0.5 of the rate', 'rows at a tenth of the rate')
    """
    known = words()["axis"].get(axis, {}).get(value)
    if known is not None:
        return str(known)
    place, _, name = axis.rpartition(".")
    if name == "embedding_rate":
        return f"rows at {value} of the rate"
    if name in ("recipe", "source", "task"):
        return f"{place} {value}" if place in ("encoder", "decoder") else value
    return f"{name} {value}"


def fixed(value: float | None, digits: int) -> str:
    """Return a number with so many digits after the point and a real minus sign; – where there is none."""
    if value is None:
        return NONE
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float | None, digits: int) -> str:
    """Return a difference with its sign, which zero has not."""
    text = fixed(value, digits)
    return text if value is None or text.startswith("−") or float(text) == 0 else f"+{text}"


def interval(low: float | None, high: float | None, digits: int, sign: bool = False) -> str:
    """Return `[0.9, 1.9]`, or – where there is none."""
    if low is None or high is None:
        return NONE
    form = signed if sign else fixed
    return f"[{form(low, digits)}, {form(high, digits)}]"


def probability(value: float | None) -> str:
    """Return a p value in three digits or fewer."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.2g}" if value < 0.995 else "1"


def compact(value: float | None) -> str:
    """Return a number in three significant digits: 0.0157, −792, 1.2e−05."""
    if value is None:
        return NONE
    return "0" if abs(value) < 1e-12 else f"{value:.3g}".replace("-", "−")


def duration(seconds: float) -> str:
    """Return seconds as a person says them: 48 s, 12 min, 3.4 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def plural(count: int, one: str, many: str = "") -> str:
    """Return `1 seed`, `3 seeds`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(texts: list[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}" if texts else ""
