"""A prepared task, memory-mapped: token ids with offsets, labels, references, vocabularies.

The folder holds plain files:

- `SPLIT.SIDE.ids.npy`: the ids of all sentences, or of all lines of a running text, one after another. There is no
  padding, and no `<bos>` or `<eos>` around a sentence.
- `SPLIT.SIDE.offsets.npy`: the place of each sentence's first id, and the number of all ids.
- `SPLIT.labels.npy`: labels.
- `SPLIT.references.json`: the target side as text and as tokens, but for training.
- `SPLIT.SIDE.sizes.json`: of running text, the number of lines, words and bytes.
- `SIDE.vocabulary.json`: tokens and counts.
- `manifest.json`: settings and sources, the fingerprint of the other files, and a checksum of the manifest itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Required, TypedDict

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError, closest
from embinit.records import Damaged, read_json, typed
from embinit.types import TaskKind, Vocabulary, task_kind

Ids = npt.NDArray[np.unsignedinteger[Any]]
VERSION = 1
#: The token that a masked language model reads in place of a masked one; the fifth of its vocabulary.
MASK = "<mask>"
_MANIFEST = "manifest.json"
_REMEDY = "remove the folder and prepare it again"
#: References and vocabularies of large data sets.
_LARGEST = 1 << 31


class _SideCounts(TypedDict, total=False):
    tokens: Required[int]
    longest: Required[int]


class _SplitCounts(TypedDict, total=False):
    rows: Required[int]
    sides: Required[dict[str, _SideCounts]]


class _Manifest(TypedDict, total=False):
    """The parts of a manifest that are read again."""

    version: Required[int]
    name: Required[str]
    task: Required[str]
    settings: Required[dict[str, Any]]
    labels: Required[list[str]]
    vocabularies: Required[dict[str, int]]
    splits: Required[dict[str, _SplitCounts]]
    notes: Required[list[str]]
    #: manifests of earlier versions have neither
    contents: str
    checksum: str


class _VocabularyFile(TypedDict):
    tokens: list[str]
    counts: list[int]
    specials: list[str]


class _ReferencesFile(TypedDict):
    texts: list[str]
    tokens: list[list[str]]


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
        content = read_json(self.path / f"{side}.vocabulary.json", _VocabularyFile, _REMEDY, _LARGEST)
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
        content: dict[str, int] = read_json(self.path / f"{split}.text.sizes.json", dict[str, int], _REMEDY)
        return content

    def _references(self, split: str) -> dict[str, Any]:
        self._array_name(split, None)
        path = self.path / f"{split}.references.json"
        if not path.is_file():
            raise EmbinitError(f"{self.path} has no references for {split}")
        content: dict[str, Any] = read_json(path, _ReferencesFile, _REMEDY, _LARGEST)
        return content

    def _array(self, split: str, name: str, side: str | None) -> npt.NDArray[Any]:
        self._array_name(split, side)
        path = self.path / f"{split}.{name}.npy"
        try:
            loaded: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
        except Exception as error:  # numpy's header parser raises SyntaxError, TokenError and others
            raise Damaged(f"{path} is damaged: {error}; {_REMEDY}") from None
        return loaded

    def _array_name(self, split: str, side: str | None) -> None:
        if split not in self.splits:
            raise EmbinitError(f"{self.path} has no split {split!r}{closest(split, self.splits)}")
        if side is not None and side not in self.sides:
            raise EmbinitError(f"{self.path} has no side {side!r}{closest(side, self.sides)}")


def open_prepared(path: Path) -> Prepared:
    """Return a prepared task; a folder that is none, is damaged, or is of another version is an error.

    The manifest is verified. The other files are large: `is_intact` verifies them.
    """
    manifest = path / _MANIFEST
    if not manifest.is_file():
        raise EmbinitError(f"{path} is not a prepared task: it has no {_MANIFEST}")
    content: dict[str, Any] = read_json(manifest, dict[str, Any], _REMEDY)
    if content.get("version") != VERSION:
        raise EmbinitError(f"{path} was prepared by version {content.get('version')} of the format; prepare it again")
    try:
        typed(content, _Manifest)
        if "train" not in content["splits"] or not content["vocabularies"]:
            raise Damaged("it has no training split, or no vocabulary")
        if content.get("checksum", checksum_of(content)) != checksum_of(content):
            raise Damaged("its checksum differs")
    except Damaged as error:
        raise Damaged(f"{manifest} is damaged: {error}; {_REMEDY}") from None
    return Prepared(path, content)


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a prepared task, with checksums of the other files and of itself."""
    content = {**content, "contents": fingerprint(folder)}
    whole = {**content, "checksum": checksum_of(content)}
    (folder / _MANIFEST).write_text(json.dumps(whole, indent=2, ensure_ascii=False), encoding="utf-8")


def checksum_of(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest without the one that it states."""
    content = {name: value for name, value in manifest.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """Return a checksum of everything in a prepared task's folder that decides what a run sees: all but the manifest."""
    whole = hashlib.sha256()
    try:
        for file in sorted(path.iterdir(), key=lambda file: file.name):
            if file.name != _MANIFEST:
                with file.open("rb") as content:
                    whole.update(f"{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    except OSError as error:
        raise EmbinitError(f"cannot read {error.filename or path}: {error.strerror or error}") from None
    return whole.hexdigest()


def is_intact(path: Path, expected: str | None = None) -> bool:
    """Return whether a prepared task is undamaged, and has the expected fingerprint if one is given.

    A task of an earlier version states no fingerprint. It counts as intact unless one is expected.
    """
    try:
        stated = open_prepared(path).manifest.get("contents")
        if expected is None and stated is None:
            return True
        return fingerprint(path) == (expected or stated)
    except EmbinitError:
        return False
