"""The types that every data set is read into: splits of examples, and a count of the rejected rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from embinit.types import Counts, TaskKind

_EXAMPLES = 5


@dataclass
class Reading:
    """The files that were read, and the rows that were rejected."""

    files: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def reject(self, where: str, reason: str) -> None:
        """Count a rejected row; the first few are kept with their place."""
        self.rejected[reason] += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{where}: {reason}")


@dataclass(frozen=True)
class Split:
    """The examples of one split: a list of texts for each side (source and target, or one or two sentences), and labels."""

    texts: tuple[list[str], ...]
    labels: Counts | None
    reading: Reading

    def __len__(self) -> int:
        return len(self.texts[0])


@dataclass(frozen=True)
class Corpus:
    """A data set: its splits, the names of its labels, and how it differs from the official release."""

    name: str
    task: TaskKind
    splits: dict[str, Split]
    labels: tuple[str, ...] = ()
    #: the languages of the two sides of a translation, or of the sentences
    languages: tuple[str, ...] = ()
    #: sentences about sizes that differ from the official ones
    notes: tuple[str, ...] = ()
    #: the splits that were taken from the training rows, because no file holds them; prepared folders differ by this
    held_out: tuple[str, ...] = ()


def split_of(texts: list[list[str]], labels: list[int] | None, reading: Reading) -> Split:
    """Return a split made from its columns of texts and its labels."""
    numbers = None if labels is None else np.array(labels, dtype=np.int64)
    return Split(tuple(texts), numbers, reading)
