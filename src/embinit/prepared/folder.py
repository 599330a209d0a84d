"""A prepared task, memory-mapped: token ids with offsets, labels, references, vocabularies.

The folder holds plain files:

- `SPLIT.SIDE.ids.npy`: the ids of all sentences, or of all lines of a running text, one after another. There is no
  padding, and no `<bos>` or `<eos>` around a sentence.
- `SPLIT.SIDE.offsets.npy`: the place of each sentence's first id, and the number of all ids.
- `SPLIT.labels.npy`: labels.
- `SPLIT.references.json`: the target side as text and as tokens, but for training.
- `SPLIT.SIDE.sizes.json`: of running text, the number of lines, words and bytes.
- `SIDE.vocabulary.json`: tokens and counts.
- `manifest.json`: settings and sources.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError, closest
from embinit.types import TaskKind, Vocabulary, task_kind

Ids = npt.NDArray[np.unsignedinteger[Any]]
VERSION = 1
#: The token that a masked language model reads in place of a masked one; the fifth of its vocabulary.
MASK = "<mask>"


@dataclass(frozen=True)
class Packed:
    """Sentences of token ids without padding."""

    ids: Ids  # (tokens,)
    offsets: npt.NDArray[np.int64]  # (sentences + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Ids:
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Return the number of tokens of each sentence."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Prepared:
    """A task on disk, opened."""

    path: Path
    manifest: dict[str, Any]

    @property
    def task(self) -> TaskKind:
        """Return the kind of task."""
        return task_kind(str(self.manifest["task"]))

    @property
    def splits(self) -> list[str]:
        """Return the names of the splits."""
        return list(self.manifest["splits"])

    @property
    def sides(self) -> list[str]:
        """Return `source` and `target`, or `text`."""
        return list(self.manifest["vocabularies"])

    @cached_property
    def vocabularies(self) -> dict[str, Vocabulary]:
        """Return the vocabulary of each side."""
        return {side: self._vocabulary(side) for side in self.sides}

    def _vocabulary(self, side: str) -> Vocabulary:
        content = json.loads((self.path / f"{side}.vocabulary.json").read_text("utf-8"))
        counts = np.array(content["counts"], dtype=np.int64)
        return Vocabulary(tuple(content["tokens"]), counts, frozenset(content["specials"]), f"{self.path}, {side}")

    def packed(self, split: str, side: str) -> Packed:
        """Return the sentences of one side of a split."""
        return Packed(self._array(split, f"{side}.ids", side), self._array(split, f"{side}.offsets", side))

    def labels(self, split: str) -> npt.NDArray[np.int64]:
        """Return the labels of a split."""
        return np.asarray(self._array(split, "labels", None))

    def references(self, split: str) -> list[str]:
        """Return the target side of a split as text, for scoring; training has none."""
        return list(self._references(split)["texts"])

    def reference_tokens(self, split: str) -> list[list[str]]:
        """Return the target side of a split as tokens, rare ones included, for scoring over the model's own tokens."""
        return list(self._references(split)["tokens"])

    def sizes(self, split: str) -> dict[str, int]:
        """Return the number of lines, words and bytes of a running text."""
        self._array_name(split, None)
        content: dict[str, int] = json.loads((self.path / f"{split}.text.sizes.json").read_text("utf-8"))
        return content

    def _references(self, split: str) -> dict[str, Any]:
        self._array_name(split, None)
        path = self.path / f"{split}.references.json"
        if not path.is_file():
            raise EmbinitError(f"{self.path} has no references for {split}")
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return content

    def _array(self, split: str, name: str, side: str | None) -> npt.NDArray[Any]:
        self._array_name(split, side)
        loaded: npt.NDArray[Any] = np.load(self.path / f"{split}.{name}.npy", mmap_mode="r", allow_pickle=False)
        return loaded

    def _array_name(self, split: str, side: str | None) -> None:
        if split not in self.splits:
            raise EmbinitError(f"{self.path} has no split {split!r}{closest(split, self.splits)}")
        if side is not None and side not in self.sides:
            raise EmbinitError(f"{self.path} has no side {side!r}{closest(side, self.sides)}")


def open_prepared(path: Path) -> Prepared:
    """Return a prepared task; a folder that is none, or of another version, is an error."""
    manifest = path / "manifest.json"
    if not manifest.is_file():
        raise EmbinitError(f"{path} is not a prepared task: it has no manifest.json")
    try:
        content: dict[str, Any] = json.loads(manifest.read_text("utf-8"))
    except ValueError:
        raise EmbinitError(f"{manifest} is damaged; remove the folder and prepare it again") from None
    if content.get("version") != VERSION:
        raise EmbinitError(f"{path} was prepared by version {content.get('version')} of the format; prepare it again")
    return Prepared(path, content)
