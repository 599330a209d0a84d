"""Examples as every data set gives them, and what was counted while reading."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from embinit.types import Counts, TaskKind

_EXAMPLES = 5


@dataclass
class Reading:
    """What was read and what was left out, file by file."""

    files: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def reject(self, where: str, reason: str) -> None:
        """Count a row that is left out, and keep the first few in words."""
        self.rejected[reason] += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{where}: {reason}")


@dataclass(frozen=True)
class Split:
    """Rows of one split: a list of texts for each side (source and target, or one or two sentences), and labels."""

    texts: tuple[list[str], ...]
    labels: Counts | None
    reading: Reading

    def __len__(self) -> int:
        return len(self.texts[0])


@dataclass(frozen=True)
class Corpus:
    """A data set: its splits, what its labels mean, and what differs from the official one."""

    name: str
    task: TaskKind
    splits: dict[str, Split]
    labels: tuple[str, ...] = ()
    #: languages of the two sides of a translation, or of the sentences
    languages: tuple[str, ...] = ()
    #: in words: sizes that are not the known ones
    notes: tuple[str, ...] = ()


def split_of(texts: list[list[str]], labels: list[int] | None, reading: Reading) -> Split:
    """Return a split from its columns."""
    numbers = None if labels is None else np.array(labels, dtype=np.int64)
    return Split(tuple(texts), numbers, reading)
