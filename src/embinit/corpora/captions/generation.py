"""Captions without end, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

import numpy as np

from embinit.corpora.captions import english, german
from embinit.corpora.captions.lexicon import labels
from embinit.corpora.captions.meaning import Caption
from embinit.corpora.captions.sentences import caption
from embinit.corpora.captions.splits import SPLITS, Split, split_of
from embinit.errors import EmbinitError, closest
from embinit.seeds import stream as random_stream

_BLOCK = 1 << 14
#: What the numbers of `labelled` stand for.
LABELS = labels()


def pairs(count: int, seed: int, split: Split) -> list[tuple[str, str]]:
    """Return (German, English) captions; the first n of a seed are the same whatever the count."""
    return [(german.sentence(it), english.sentence(it)) for it in islice(_captions(seed, "pairs", split), count)]


def stream(language: Literal["de", "en"], seed: int) -> Iterator[str]:
    """Return endless captions of the training split in one language."""
    say = {"de": german.sentence, "en": english.sentence}.get(language)
    if say is None:
        raise EmbinitError(f"unknown language {language!r}{closest(language, ('de', 'en'))}")
    return map(say, _captions(seed, "stream", "train"))


def labelled(count: int, seed: int, split: Split) -> list[tuple[str, int]]:
    """Return English captions, each with the number of its label: which kind of surroundings the scene is from."""
    number = {name: i for i, name in enumerate(LABELS)}
    chosen = islice(_captions(seed, "labelled", split), count)
    return [(english.sentence(it), number[it.topic.label]) for it in chosen]


def _captions(seed: int, purpose: str, split: Split) -> Iterator[Caption]:
    if split not in SPLITS:
        raise EmbinitError(f"unknown split {split!r}{closest(split, SPLITS)}")
    roll = _draws(random_stream(seed, f"captions: {purpose}, {split}")).__next__
    while True:
        it = caption(roll)
        if split_of(it) == split:
            yield it


def _draws(rng: np.random.Generator) -> Iterator[float]:
    """Return numbers in [0, 1) from the raw bits, whose sequence numpy keeps the same between versions."""
    while True:
        raw = np.asarray(rng.bit_generator.random_raw(_BLOCK))
        yield from ((raw >> np.uint64(11)) * 2.0**-53).tolist()
