"""Scores by length: they show whether a start does as well on long sentences, which need positions, as on short ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

#: The first length of each bucket, in tokens that the model reads.
_FIRST_LENGTHS = (0, 8, 12, 16, 24, 32, 48)
#: A bucket with fewer sentences joins its neighbour, because their BLEU says little.
_FEWEST = 50


class LengthBucket(NamedTuple):
    """Sentences of similar length: from `low` tokens to `high` (None: no upper end), and their number."""

    low: int
    high: int | None
    sentences: int

    def __str__(self) -> str:
        if self.high is None:
            return f"{self.low} and more"
        return f"{self.low} to {self.high}" if self.low else f"up to {self.high}"


#: split -> name of the score -> score of each bucket, the shortest sentences first
Lengths = dict[str, dict[str, dict[LengthBucket, float]]]


def by_length(lengths: Sequence[int], score: Callable[[list[int]], float]) -> dict[LengthBucket, float]:
    """Return the score of each bucket; nothing if all sentences fall into one bucket.

    Parameters
    ----------
    lengths
        The length of each sentence.
    score
        Returns the score of the sentences with these numbers.
    """
    last_lengths = [*(first - 1 for first in _FIRST_LENGTHS[1:]), None]
    groups: list[tuple[int, int | None, list[int]]] = [
        (
            low,
            high,
            [number for number, tokens in enumerate(lengths) if low <= tokens and (high is None or tokens <= high)],
        )
        for low, high in zip(_FIRST_LENGTHS, last_lengths, strict=True)
    ]
    while len(groups) > 1:
        small = [place for place, (_, _, sentences) in enumerate(groups) if len(sentences) < _FEWEST]
        if not small:
            break
        # The longest small bucket joins its shorter neighbour first: `48 and more` becomes `32 and more`.
        place = max(small[-1], 1)
        (low, _, shorter), (_, high, longer) = groups[place - 1 : place + 1]
        groups[place - 1 : place + 1] = [(low, high, sorted(shorter + longer))]
    if len(groups) < 2:
        return {}
    return {LengthBucket(low, high, len(sentences)): score(sentences) for low, high, sentences in groups}


def as_json(lengths: Lengths) -> dict[str, Any]:
    """Return scores by length as JSON: a bucket is [low, high, sentences, score]."""
    return {
        split: {name: [[*bucket, score] for bucket, score in buckets.items()] for name, buckets in scores.items()}
        for split, scores in lengths.items()
    }


def from_json(content: dict[str, Any]) -> Lengths:
    """Return the scores by length that `as_json` wrote."""
    return {
        split: {name: {LengthBucket(*entry[:3]): entry[3] for entry in buckets} for name, buckets in scores.items()}
        for split, scores in content.items()
    }
