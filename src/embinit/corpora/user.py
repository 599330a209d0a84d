"""A user's own files: parallel text, or tables with a header, with or without ready splits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from embinit.corpora.examples import Corpus, Reading, Split, split_of
from embinit.corpora.tables import Row, column, parallel, table
from embinit.corpora.tasks import by_target
from embinit.errors import EmbinitError

_ENDINGS = ("", ".gz", ".bz2", ".xz")
_SPLITS = {
    "train": ("train",),
    "valid": ("valid", "validation", "val", "dev"),
    "test": ("test",),
    "all": ("data", "all"),
}
_TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
_SOURCE, _TARGET = ("source", "src"), ("target", "tgt", "trg")
_FIRST = ("text", "sentence", "sentence1", "premise", "question", "question1")
_SECOND = ("sentence2", "hypothesis", "question2")
_LABEL = ("label", "gold_label", "class")


def read_files(folder: Path, pair: str | None = None) -> Corpus:
    """Return the corpus of a folder: `train.source.txt` + `train.target.txt`, or `train.tsv` (.csv, .jsonl) with a header.

    Columns `source` and `target` make a translation, a text column (and maybe a second) with `label` a classification.
    Without splits (`source.txt` + `target.txt`, `data.tsv`) rows are split 98, 1, 1 % by their target or text.
    """
    if not folder.is_dir():
        raise EmbinitError(f"no such folder: {folder}")
    splits: dict[str, Split] = {}
    labels: list[str] = []
    for split, names in _SPLITS.items():
        reading = Reading()
        rows = _rows(folder, names, split == "all", reading)
        if rows is None:
            continue
        splits[split] = _split(rows, reading, labels)
        if not len(splits[split]):
            why = f": {reading.examples[0]}" if reading.examples else ""
            raise EmbinitError(f"{split}: no good row in {', '.join(reading.files)}{why}")
    if "all" in splits and "train" not in splits:
        splits = by_target(splits["all"])
    splits.pop("all", None)
    if "train" not in splits:
        raise EmbinitError(
            f"{folder} holds no training rows: expected train.source.txt and train.target.txt, source.txt and target.txt, "
            "or train.tsv, data.tsv (.csv, .jsonl, .parquet) with a header"
        )
    translation = splits["train"].labels is None
    languages = tuple((pair or "xx-xx").split("-")) if translation else (pair or "xx",)
    return Corpus("files", "translation" if translation else "classification", splits, tuple(labels), languages)


def _rows(folder: Path, names: tuple[str, ...], bare: bool, reading: Reading) -> Iterator[Row] | None:
    prefixes = [*(f"{name}." for name in names), *([""] if bare else [])]
    for prefix in prefixes:
        for source, target in zip(_SOURCE, _TARGET, strict=False):
            paths = [_existing(folder, prefix + side) for side in (source, target)]
            if all(paths):
                return parallel([path for path in paths if path is not None], reading, ("source", "target"))
    for name in names:
        for ending in _TABLES:
            path = _existing(folder, name, (ending,))
            if path is not None:
                return table(path, reading)
    return None


def _existing(folder: Path, stem: str, kinds: tuple[str, ...] = (".txt", "")) -> Path | None:
    paths = [folder / (stem + kind + ending) for kind in kinds for ending in _ENDINGS]
    return next((path for path in paths if path.is_file()), None)


def _split(rows: Iterator[Row], reading: Reading, labels: list[str]) -> Split:
    first = next(rows, None)
    if first is None:
        return split_of([[]], None, reading)
    where, fields = first
    rows = chain([first], rows)
    if any(name in fields for name in _LABEL):
        alternatives: list[tuple[str, ...]] = [_FIRST, _SECOND] if any(name in fields for name in _SECOND) else [_FIRST]
        return _labelled(rows, alternatives, reading, labels)
    for names in (_SOURCE, _TARGET):
        column(fields, names, where)
    texts: list[list[str]] = [[], []]
    for where, fields in rows:
        pair = [str(column(fields, names, where) or "").strip() for names in (_SOURCE, _TARGET)]
        if not all(pair):
            reading.reject(where, "an empty side")
            continue
        for side, text in zip(texts, pair, strict=True):
            side.append(text)
    return split_of(texts, None, reading)


def _labelled(rows: Iterator[Row], alternatives: list[tuple[str, ...]], reading: Reading, labels: list[str]) -> Split:
    """Return labelled rows; the training rows come first and say which labels there are."""
    texts: list[list[str]] = [[] for _ in alternatives]
    named: list[str] = []
    for where, fields in rows:
        found = [str(column(fields, names, where) or "").strip() for names in alternatives]
        label = str(column(fields, _LABEL, where)).strip()
        if not all(found):
            reading.reject(where, "an empty side" if len(found) > 1 else "an empty sentence")
        elif not label or (labels and label not in labels):
            reading.reject(where, f"unknown label {label!r}")
        else:
            named.append(label)
            for side, text in zip(texts, found, strict=True):
                side.append(text)
    if not labels:
        labels.extend(sorted(set(named)))
    return split_of(texts, [labels.index(name) for name in named], reading)
