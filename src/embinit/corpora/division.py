"""Validation and test rows for a user's data that has none: chosen by a hash, in sizes that can be scored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from embinit.corpora.examples import Reading, Split

#: A held-out split has this many rows, or a tenth of all rows if that is smaller ...
_ENOUGH, _TENTH = 500, 10
#: ... and a hundredth of large data, up to this many rows: every one of them is decoded for its score.
_HUNDREDTH, _MOST = 100, 2_000
#: A score on fewer rows than this varies much by chance.
FEW = 200
#: Data with fewer rows is not divided: a few held-out rows would be meaningless.
_DIVISIBLE = 20


def held_out_size(rows: int) -> int:
    """Return the number of rows for validation, and for the test, of data with this many rows.

    >>> [held_out_size(rows) for rows in (100, 3_000, 29_000, 100_000, 1_000_000)]
    [10, 300, 500, 1000, 2000]
    """
    return max(min(_ENOUGH, rows // _TENTH), min(_MOST, rows // _HUNDREDTH))


def deciding_text(rows: Split) -> list[str]:
    """Return the texts that decide a row's split: the target of a translation, or the first text."""
    return rows.texts[-1] if rows.labels is None else rows.texts[0]


def hash_share(text: str) -> float:
    """Return a number from 0 to 1 that only the text decides."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def rows_at(rows: Split, places: Sequence[int], first: bool) -> Split:
    """Return some rows of a split; rejected rows are counted only with the `first` part."""
    chosen = list(places)
    texts = tuple([side[i] for i in chosen] for side in rows.texts)
    labels = None if rows.labels is None else rows.labels[chosen]
    return Split(texts, labels, rows.reading if first else Reading(rows.reading.files))


def divide(rows: Split, wanted: Sequence[str]) -> dict[str, Split]:
    """Return the training rows and the wanted splits, each of `held_out_size`; only `train` if there are too few rows.

    Rows with the same target sentence (or the same text, in a classification) are in one split. Sentences are taken in the
    order of their hash, so that added rows move few others.
    """
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(deciding_text(rows)):
        groups.setdefault(text, []).append(place)
    chosen: dict[str, list[int]] = {name: [] for name in wanted}
    size = held_out_size(len(rows))
    if len(groups) >= _DIVISIBLE:
        for text in sorted(groups, key=lambda text: (hash_share(text), text)):
            # A very frequent sentence, for which no split has room, stays in training.
            name = next((name for name in wanted if len(chosen[name]) + len(groups[text]) <= size), None)
            if name is not None:
                chosen[name] += groups[text]
    taken = {place for places in chosen.values() for place in places}
    train = [place for place in range(len(rows)) if place not in taken]
    splits = {"train": rows_at(rows, train, first=True)}
    return splits | {name: rows_at(rows, sorted(places), first=False) for name, places in chosen.items() if places}
