"""Tokens as numbers, while a task is prepared."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Encoded:
    """Tokens as numbers in the order of their first occurrence: four bytes a token, where lists of texts take sixty."""

    numbers: dict[str, int]
    ids: npt.NDArray[np.int32]  # (tokens,)
    lengths: npt.NDArray[np.int64]  # (sentences,)


def encode(rows: Iterable[Sequence[str]]) -> Encoded:
    """Return sentences of tokens as numbers."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    ids, lengths = array("i"), array("q")
    for tokens in rows:
        ids.extend(map(numbers.__getitem__, tokens))
        lengths.append(len(tokens))
    return Encoded(dict(numbers), np.frombuffer(ids, dtype=np.int32), np.frombuffer(lengths, dtype=np.int64))
