"""Scores by length: whether a start does as well on long sentences, which need their positions, as on short ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

#: Where a stretch of lengths begins, in tokens that the model reads; the first begins at none.
_BEGINNINGS = (0, 8, 12, 16, 24, 32, 48)
#: A stretch with fewer sentences joins its neighbour: BLEU of so few says little.
_FEWEST = 50


@dataclass(frozen=True)
class Stretch:
    """Sentences of like length, and their score."""

    #: tokens, from `low` to `high`; None: without end
    low: int
    high: int | None
    sentences: int
    score: float


#: split -> name of the score -> the shortest sentences first
Lengths = dict[str, dict[str, list[Stretch]]]


def by_length(lengths: Sequence[int], score: Callable[[list[int]], float]) -> list[Stretch]:
    """Return the score of each stretch of lengths, of which `score` is given the places; none where there is but one."""
    ends = [*(begin - 1 for begin in _BEGINNINGS[1:]), None]
    groups: list[tuple[int, int | None, list[int]]] = [
        (
            low,
            high,
            [place for place, tokens in enumerate(lengths) if low <= tokens and (high is None or tokens <= high)],
        )
        for low, high in zip(_BEGINNINGS, ends, strict=True)
    ]
    while len(groups) > 1:
        few = [number for number, (_, _, places) in enumerate(groups) if len(places) < _FEWEST]
        if not few:
            break
        # The longest first, into the shorter neighbour: so `48 and more` becomes `32 and more`.
        number = max(few[-1], 1)
        (low, _, shorter), (_, high, longer) = groups[number - 1 : number + 1]
        groups[number - 1 : number + 1] = [(low, high, sorted(shorter + longer))]
    if len(groups) < 2:
        return []
    return [Stretch(low, high, len(places), score(places)) for low, high, places in groups]


def as_json(lengths: Lengths) -> dict[str, Any]:
    """Return lengths as JSON has them: a stretch is [low, high, sentences, score]."""
    return {
        split: {name: [list(astuple(one)) for one in found] for name, found in scores.items()}
        for split, scores in lengths.items()
    }


def from_json(content: dict[str, Any]) -> Lengths:
    """Return what `as_json` wrote."""
    return {
        split: {name: [Stretch(*one) for one in found] for name, found in scores.items()}
        for split, scores in content.items()
    }
