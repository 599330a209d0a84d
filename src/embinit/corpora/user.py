"""A user's own files: parallel text, or tables with a header, with or without splits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

from embinit.corpora.examples import Corpus, Reading, Split, split_of
from embinit.corpora.tables import Row, existing, field_of, has_column, parallel, table, text_of
from embinit.corpora.tasks import by_target
from embinit.errors import EmbinitError, Unavailable

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
    """Return the corpus of a folder.

    The folder holds parallel text (`train.source.txt` and `train.target.txt`) or tables with a header (`train.tsv`, .csv,
    .jsonl, .parquet). A table with the columns `source` and `target` is a translation; one with a text column, maybe a
    second one, and `label` is a classification. Rows without splits (`source.txt` and `target.txt`, `data.tsv`) are split
    98, 1 and 1 % by their target or text.
    """
    if not folder.is_dir():
        raise Unavailable(f"no such folder: {folder}")
    splits: dict[str, Split] = {}
    labels: tuple[str, ...] = ()
    for split, names in _SPLITS.items():
        reading = Reading()
        rows = _rows(folder, names, split == "all", reading)
        if rows is None:
            continue
        splits[split], labels = _split(rows, reading, labels)
        if not len(splits[split]):
            why = f": {reading.examples[0]}" if reading.examples else ""
            raise EmbinitError(f"{split}: no usable row in {', '.join(reading.files)}{why}")
    if "all" in splits and "train" in splits:
        raise EmbinitError(f"{folder} holds training rows and rows without a split; remove one of them")
    if "all" in splits:
        splits = {**by_target(splits.pop("all")), **splits}
    if "train" not in splits:
        raise Unavailable(
            f"{folder} holds no training rows: expected train.source.txt and train.target.txt, source.txt and target.txt, "
            "or train.tsv, data.tsv (.csv, .jsonl, .parquet) with a header"
        )
    kinds = {(rows.labels is None, len(rows.texts)) for rows in splits.values()}
    if len(kinds) > 1:
        raise EmbinitError(f"{folder}: the splits differ in kind; all must be translations, or all must have labels")
    translation = splits["train"].labels is None
    return Corpus(
        "files", "translation" if translation else "classification", splits, labels, _languages(pair, translation)
    )


def _languages(pair: str | None, translation: bool) -> tuple[str, ...]:
    """Return the languages that a pair names; `xx`, any language, without a pair."""
    languages = tuple((pair or ("xx-xx" if translation else "xx")).split("-"))
    if len(languages) != 1 + translation or not all(languages):
        raise EmbinitError(f"--pair {pair}: expected {'SOURCE-TARGET' if translation else 'one language'}")
    return languages


def _rows(folder: Path, names: tuple[str, ...], bare: bool, reading: Reading) -> Iterator[Row] | None:
    prefixes = [*(f"{name}." for name in names), *([""] if bare else [])]
    for prefix in prefixes:
        for source, target in product(_SOURCE, _TARGET):
            paths = [existing(folder, [f"{prefix}{side}.txt", f"{prefix}{side}"]) for side in (source, target)]
            if all(paths):
                return parallel([path for path in paths if path is not None], reading, ("source", "target"))
    for name in names:
        for ending in _TABLES:
            path = existing(folder, [name + ending])
            if path is not None:
                return table(path, reading)
    return None


def _split(rows: Iterator[Row], reading: Reading, labels: tuple[str, ...]) -> tuple[Split, tuple[str, ...]]:
    """Return the rows of a split, and the labels: those given, or else those that occur (in the training rows)."""
    first = next(rows, None)
    if first is None:
        return split_of([[]], None, reading), labels
    where, fields = first
    labelled = any(name in fields for name in _LABEL)
    if not any(name in fields for name in (*_LABEL, *_SOURCE, *_TARGET)):
        raise EmbinitError(
            f"{where}: the columns are {', '.join(map(str, fields))}; a translation has {' or '.join(_SOURCE)} and "
            f"{' or '.join(_TARGET)}, a classification {' or '.join(_LABEL)} and {' or '.join(_FIRST)}, "
            f"maybe with {' or '.join(_SECOND)}"
        )
    columns = _text_columns(fields) if labelled else [_SOURCE, _TARGET]
    for names in columns:
        has_column(fields, names, where)
    texts: list[list[str]] = [[] for _ in columns]
    row_labels: list[str] = []
    for where, fields in chain([first], rows):
        row = [text_of(field_of(fields, names)) for names in columns]
        label = text_of(field_of(fields, _LABEL)) if labelled else ""
        if not all(row):
            reading.reject(where, "an empty side" if len(row) > 1 else "an empty sentence")
        elif labelled and (not label or (labels and label not in labels)):
            reading.reject(where, f"unknown label {label!r}")
        else:
            row_labels.append(label)
            for side, text in zip(texts, row, strict=True):
                side.append(text)
    labels = labels or (tuple(sorted(set(row_labels))) if labelled else ())
    return split_of(texts, [labels.index(name) for name in row_labels] if labelled else None, reading), labels


def _text_columns(fields: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the names of the text columns: two if the header has a known second one, else one."""
    if "question" in fields and "sentence" in fields:
        return [("question",), ("sentence",)]
    return [_FIRST, _SECOND] if any(name in fields for name in _SECOND) else [_FIRST]
