"""A user's own files: parallel text, or tables with a header, with or without splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from embinit.corpora.division import FEW, divide
from embinit.corpora.examples import Corpus, Reading, Split, split_of
from embinit.corpora.tables import Row, field_of, has_column, parallel, table, text_of
from embinit.corpora.user_files import SOURCE, TARGET, find_user_files
from embinit.errors import EmbinitError
from embinit.format import listed, plural

_FIRST = ("text", "sentence", "sentence1", "premise", "question", "question1")
_SECOND = ("sentence2", "hypothesis", "question2")
_LABEL = ("label", "gold_label", "class")


def read_files(paths: Path | Sequence[Path], pair: str | None = None) -> Corpus:
    """Return the corpus of a user's files.

    A table with the columns `source` and `target` is a translation; one with a text column, maybe a second one, and `label`
    is a classification. If no file holds the validation rows, they are taken from the training rows, and so are the test
    rows if no file holds them either (`division.divide`). The corpus says so in its notes.

    Parameters
    ----------
    paths
        A folder (docs: how-to/data lists the names of its files), a table, or two text files: the source's and
        the target's.
    pair
        The languages of a translation, `SOURCE-TARGET`.

    Raises
    ------
    Unavailable
        If there are no such files.
    EmbinitError
        If a file has other columns, no usable row, or another number of lines than the file beside it.
    """
    files = find_user_files([paths] if isinstance(paths, Path) else paths, pair)
    splits: dict[str, Split] = {}
    labels: tuple[str, ...] = ()
    for split, group in files.splits.items():
        reading = Reading()
        rows = parallel(group, reading, ("source", "target")) if len(group) == 2 else table(group[0], reading)
        splits[split], labels = _split(rows, reading, labels)
        if not len(splits[split]):
            why = f": {reading.examples[0]}" if reading.examples else ""
            where = "" if split == "all" else f"{split}: "
            raise EmbinitError(f"{where}no usable row in {', '.join(reading.files)}{why}")
    kinds = {(rows.labels is None, len(rows.texts)) for rows in splits.values()}
    if len(kinds) > 1:
        names = ", ".join(path.name for path in files.paths)
        raise EmbinitError(f"the splits differ in kind; all must be translations, or all must have labels: {names}")
    splits, held_out = _complete(splits)
    translation = splits["train"].labels is None
    languages = _languages(files.pair, translation)
    notes = (*_division_notes(splits, held_out), *_size_notes(splits))
    return Corpus(
        "files", "translation" if translation else "classification", splits, labels, languages, notes, held_out
    )


def _complete(splits: dict[str, Split]) -> tuple[dict[str, Split], tuple[str, ...]]:
    """Return the splits with validation and test rows, and the names of those that were taken from the training rows.

    If validation rows are given and no test rows, the former are scored: nothing is taken from the training rows.
    """
    rows = splits.get("all") or splits["train"]
    given = {name: split for name, split in splits.items() if name in ("valid", "test")}
    wanted = [name for name in ("valid", "test") if name not in given]
    if wanted == ["test"] and "train" in splits:
        return splits, ()
    divided = divide(rows, wanted) if wanted else {"train": rows}
    held_out = tuple(name for name in wanted if name in divided)
    ordered = {**divided, **given}
    return {name: ordered[name] for name in ("train", "valid", "test") if name in ordered}, held_out


def _division_notes(splits: dict[str, Split], held_out: tuple[str, ...]) -> list[str]:
    if not held_out:
        return []
    by = "target sentence" if splits["train"].labels is None else "text"
    sizes = listed([f"{len(splits[name]):,} for {_PURPOSE[name]}" for name in held_out])
    return [f"{sizes} were taken from the rows, by a hash of the {by}; {len(splits['train']):,} are left for training"]


_PURPOSE = {"valid": "validation", "test": "the test"}


def _size_notes(splits: dict[str, Split]) -> list[str]:
    """Return a sentence for each split that is missing or too small for its score to be trusted."""
    notes = [
        f"{name} has {plural(len(splits[name]), 'row')}; a score on fewer than {FEW} rows varies much by chance"
        for name in ("valid", "test")
        if name in splits and len(splits[name]) < FEW
    ]
    if "valid" not in splits:
        notes.append(
            f"there are no validation rows, and too few rows ({len(splits['train']):,}) to take some from them"
        )
    return notes


def _languages(pair: str | None, translation: bool) -> tuple[str, ...]:
    """Return the languages that a pair names; `xx`, any language, without a pair."""
    languages = tuple((pair or ("xx-xx" if translation else "xx")).split("-"))
    if len(languages) != 1 + translation or not all(languages):
        expected = "SOURCE-TARGET, for example de-en" if translation else "one language"
        raise EmbinitError(f"the pair {pair!r} is not {expected}")
    return languages


def _split(rows: Iterator[Row], reading: Reading, labels: tuple[str, ...]) -> tuple[Split, tuple[str, ...]]:
    """Return the rows of a split, and the labels: those given, or else those that occur (in the training rows)."""
    first = next(rows, None)
    if first is None:
        return split_of([[]], None, reading), labels
    where, fields = first
    labelled = any(name in fields for name in _LABEL)
    if not any(name in fields for name in (*_LABEL, *SOURCE, *TARGET)):
        raise EmbinitError(
            f"{where}: the first line names the columns {', '.join(map(str, fields))}, but a classification needs "
            f"{_LABEL[0]} and {_FIRST[0]}, and a translation {SOURCE[0]} and {TARGET[0]}. Add a first line with these "
            f"names, or rename the columns; {listed([*_LABEL[1:], _FIRST[1], SOURCE[1], *TARGET[1:]])} are read too"
        )
    columns = _text_columns(fields) if labelled else [SOURCE, TARGET]
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
