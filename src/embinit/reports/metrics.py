"""Names of scores, histories and settings in reports."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from embinit.reports.scores import Metric

#: Between the words of a label: `xavier · no positions`.
SEPARATOR = " · "
#: The lowest validation loss of a run, as reports show it.
LOSS = Metric("valid loss", "validation loss", "", factor=1.0, digits=3, higher=False, split="valid")


@cache
def words() -> dict[str, Any]:
    """Return `metrics.toml`."""
    return tomllib.loads(resources.files("embinit.reports").joinpath("metrics.toml").read_text("utf-8"))


def metric(score: str, split: str) -> Metric:
    """Return a score by its name; an unknown score is shown as it is."""
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
    """Return a description of a score; empty if there is none."""
    return str(words()["score"].get(score, {}).get("about", ""))


def kind(score: str) -> str:
    """Return the kind of task of a score: `translation`, `classification`; the score's name if it is unknown."""
    return str(words()["score"].get(score, {}).get("kind", score))


def history(name: str) -> str:
    """Return the name of a history."""
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
        return f"{place} {value}" if place in ("encoder", "decoder", "output") else value
    return f"{name} {value}"
