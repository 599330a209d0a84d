"""Endless captions from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

import numpy as np

from embinit.corpora.captions import english, german
from embinit.corpora.captions.lexicon import labels
from embinit.corpora.captions.meaning import Caption
from embinit.corpora.captions.sentences import caption
from embinit.corpora.captions.splits import SPLITS, Split, caption_split
from embinit.errors import EmbinitError, closest
from embinit.seeds import stream as random_stream

_BLOCK = 1 << 14
#: The names of the labels, in the order of their numbers.
LABELS = labels()


def pairs(count: int, seed: int, split: Split) -> list[tuple[str, str]]:
    """Return (German, English) captions; the first n of a seed do not depend on the count."""
    return [(german.sentence(each), english.sentence(each)) for each in islice(_captions(seed, "pairs", split), count)]


def stream(language: Literal["de", "en"], seed: int) -> Iterator[str]:
    """Return endless captions of the training split in one language."""
    render = {"de": german.sentence, "en": english.sentence}.get(language)
    if render is None:
        raise EmbinitError(f"unknown language {language!r}{closest(language, ('de', 'en'))}")
    return map(render, _captions(seed, "stream", "train"))


def labelled(count: int, seed: int, split: Split) -> list[tuple[str, int]]:
    """Return English captions, each with the number of its label: the surroundings that the scene shows."""
    number = {name: i for i, name in enumerate(LABELS)}
    captions = islice(_captions(seed, "labelled", split), count)
    return [(english.sentence(each), number[each.topic.label]) for each in captions]


def _captions(seed: int, purpose: str, split: Split) -> Iterator[Caption]:
    if split not in SPLITS:
        raise EmbinitError(f"unknown split {split!r}{closest(split, SPLITS)}")
    roll = _random_numbers(random_stream(seed, f"captions: {purpose}, {split}")).__next__
    while True:
        drawn = caption(roll)
        if caption_split(drawn) == split:
            yield drawn


def _random_numbers(rng: np.random.Generator) -> Iterator[float]:
    """Yield numbers in [0, 1), made from raw bits because numpy keeps their sequence the same between versions."""
    while True:
        raw = np.asarray(rng.bit_generator.random_raw(_BLOCK))
        yield from ((raw >> np.uint64(11)) * 2.0**-53).tolist()
