"""Read known data sets from the files in which people have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from embinit.corpora.data_sets import TaskData, data_folder, task_data
from embinit.corpora.division import deciding_text, hash_share, rows_at
from embinit.corpora.examples import Corpus, Reading, Split, split_of
from embinit.corpora.running_text import in_order, is_empty, text_lines, text_split
from embinit.corpora.tables import Row, existing, field_of, has_column, parallel, segments, table, tags, text_of
from embinit.errors import EmbinitError, Unavailable
from embinit.types import TEXT_TASKS

_SPLITS = ("train", "valid", "valid_mismatched", "test", "all")


def read_corpus(name: str, folder: Path, pair: str | None = None) -> Corpus:
    """Return a data set, each split from the first known layout whose files are there.

    Parameters
    ----------
    name
        A name of `tasks()`.
    folder
        The data set's folder, or a folder that holds it (see `data_folder`).
    pair
        The languages of a translation, `SOURCE-TARGET`; by default the data set's own.

    Raises
    ------
    Unavailable
        If the folder does not exist, or holds no file of the data set.
    EmbinitError
        If a file has other columns, or no usable row.
    """
    data = task_data(name)
    if not folder.is_dir():
        raise Unavailable(f"no such folder: {folder}")
    sides = _sides(data, pair)
    for place in (folder, data_folder(folder, name)):
        located: _Located = {}
        for layout in data.layouts:
            for names in _namings(sides):
                for split, groups in _files(layout, place, names).items():
                    located.setdefault(split, (layout, groups))
        if located:
            return _read(data, located, sides)
    a, b = sides or ("", "")
    patterns = [pattern for layout in data.layouts for pattern in layout.get("train") or layout["all"]]
    wanted = ", ".join(" + ".join(_joined(pattern)).format(a=a, b=b, lang=a) for pattern in patterns)
    raise Unavailable(
        f"{folder} does not hold {name}: looked for {wanted} (also .gz, .bz2, .xz), here and in {name}/ and glue/ below it"
    )


def read_hub(name: str, download: Callable[[str, str, str | None], Path], pair: str | None = None) -> Corpus:
    """Return a data set from the Hugging Face hub.

    Parameters
    ----------
    name
        A name of `tasks()`.
    download
        Called with a repository's id, a file and a revision; returns the path of the file.
    pair
        The languages of a translation, `SOURCE-TARGET`; by default the data set's own.
    """
    data = task_data(name)
    if not data.hub:
        raise EmbinitError(f"{name} is not on the hub; name its folder")
    sides = _sides(data, pair)
    a, b = sides or ("", "")
    located: _Located = {
        split: (
            {"form": "table"},
            [(download(data.hub["id"], data.hub[split].format(a=a, b=b), data.hub.get("revision")),)],
        )
        for split in _SPLITS
        if split in data.hub
    }
    return _read(data, located, sides)


# ---------------------------------------------------------------- finding files

#: split -> groups of files; groups are read one after another, the files of a group side by side
_Files = dict[str, list[tuple[Path, ...]]]
#: split -> its layout and its files
_Located = dict[str, tuple[dict[str, Any], list[tuple[Path, ...]]]]


def _sides(data: TaskData, pair: str | None) -> tuple[str, ...]:
    if data.task != "translation":
        if pair is not None:
            kind = "running text" if data.task in TEXT_TASKS else "a classification"
            raise EmbinitError(f"{data.name} is {kind}, and has no language pair")
        return ()
    pair = pair or data.pair
    source, dash, target = pair.partition("-")
    for language in (source, target):
        if not dash or language not in data.languages:
            raise EmbinitError(
                f"{data.name}: unknown pair {pair!r}; expected SOURCE-TARGET of {', '.join(data.languages)}"
            )
    if source == target:
        raise EmbinitError(f"{data.name}: {pair} has one language on both sides")
    return source, target


def _namings(sides: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the orders in which file names may have the pair: both directions share one set of files."""
    return [sides, sides[::-1]] if sides else [()]


def _files(layout: dict[str, Any], folder: Path, names: tuple[str, ...]) -> _Files:
    """Return the files of each split: the first pattern whose files are all there; of IWSLT's XML, all patterns."""
    a, b = names or ("", "")
    files: _Files = {}
    for split in _SPLITS:
        for pattern in layout.get(split, []):
            groups = []
            for part in _joined(pattern):
                languages = sorted(names) if "{lang}" in part else [""]
                paths = [existing(folder, [part.format(a=a, b=b, lang=language)]) for language in languages]
                groups.append(tuple(path for path in paths if path is not None))
                if len(groups[-1]) < len(languages):
                    break
            else:
                files.setdefault(split, []).extend(groups)
                if layout["form"] != "iwslt":
                    break
    return files


def _joined(pattern: str | list[str]) -> list[str]:
    """Return the files of a pattern: one, or a list of files that are read one after another."""
    return [pattern] if isinstance(pattern, str) else pattern


# ---------------------------------------------------------------- reading


def _read(data: TaskData, located: _Located, sides: tuple[str, ...]) -> Corpus:
    splits: dict[str, Split] = {}
    for split in (split for split in _SPLITS if split in located):
        layout, groups = located[split]
        reading = Reading()
        rows = (row for group in groups for row in _rows(layout, group, sides, reading))
        if data.task in TEXT_TASKS:
            examples = text_split(rows, reading)
        elif data.task == "translation":
            examples = _translations(rows, sides, reading)
        else:
            examples = _labelled(rows, data, reading)
        if not len(examples) or (data.task in TEXT_TASKS and is_empty(examples)):
            why = f": {reading.examples[0]}" if reading.examples else ""
            raise EmbinitError(f"{data.name}, {split}: no usable row in {', '.join(reading.files)}{why}")
        splits[split] = examples
    if "all" in splits:
        splits = in_order(splits["all"], data.name) if data.task in TEXT_TASKS else by_target(splits["all"])
    return Corpus(
        data.name, data.task, splits, tuple(data.labels), sides or (data.language,), _notes(data, splits, sides)
    )


def _rows(layout: dict[str, Any], group: tuple[Path, ...], sides: tuple[str, ...], reading: Reading) -> Iterator[Row]:
    if layout["form"] == "lines":
        return parallel(group, reading, sorted(sides))
    if layout["form"] == "text":
        return iter(text_lines(group, reading))
    if layout["form"] == "iwslt":
        return _iwslt(group, sorted(sides), reading)
    return table(group[0], reading, layout.get("columns"))


def _iwslt(group: tuple[Path, ...], names: Sequence[str], reading: Reading) -> Iterator[Row]:
    if ".xml" in group[0].name:
        sides = [segments(path, reading) for path in group]
    else:
        sides = [[text for _, text in tags(path, reading)] for path in group]
    if len({len(side) for side in sides}) != 1:
        sizes = ", ".join(f"{path.name} has {len(side)}" for path, side in zip(group, sides, strict=True))
        raise EmbinitError(f"the two sides have different numbers of sentences: {sizes}")
    for number, texts in enumerate(zip(*sides, strict=True), 1):
        where = f"{group[0].name}, sentence {number}"
        if None in texts:
            reading.reject(where, "not UTF-8")
        else:
            yield where, dict(zip(names, texts, strict=True))


def _translations(rows: Iterator[Row], sides: tuple[str, ...], reading: Reading) -> Split:
    texts: list[list[str]] = [[], []]
    for number, (where, fields) in enumerate(rows):
        inner = fields.get("translation", fields)  # the hub's tables keep both sides in one column
        if number == 0 and isinstance(inner, dict):
            for side in sides:
                has_column(inner, (side,), where)
        pair = [text_of(field_of(inner, (side,))) for side in sides] if isinstance(inner, dict) else [""]
        if not all(pair):
            reading.reject(where, "an empty side")
            continue
        for column, text in zip(texts, pair, strict=True):
            column.append(text)
    return split_of(texts, None, reading)


def _labelled(rows: Iterator[Row], data: TaskData, reading: Reading) -> Split:
    texts: list[list[str]] = [[] for _ in data.texts]
    labels: list[int] = []
    numbers = {**{name: i for i, name in enumerate(data.labels)}, **{str(i): i for i in range(len(data.labels))}}
    for number, (where, fields) in enumerate(rows):
        if number == 0:
            for names in (*data.texts, data.label):
                has_column(fields, names, where)
        row = [text_of(field_of(fields, names)) for names in data.texts]
        label = text_of(field_of(fields, data.label))
        if data.rounded:
            label = _nearest(label)
        if not all(row):
            reading.reject(where, "an empty side" if len(row) > 1 else "an empty sentence")
        elif label not in numbers:
            reading.reject(where, f"unknown label {label!r}")
        else:
            labels.append(numbers[label])
            for side, text in zip(texts, row, strict=True):
                side.append(text)
    return split_of(texts, labels, reading)


def _nearest(score: str) -> str:
    """Return the nearest whole number of a score, halves upwards; the text itself if it is no number."""
    try:
        return str(math.floor(float(score) + 0.5))
    except (ValueError, OverflowError):
        return score


def by_target(rows: Split) -> dict[str, Split]:
    """Return train, valid and test (98, 1 and 1 %), with all rows of one target sentence, or of one text, in one split."""
    places: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    for i, text in enumerate(deciding_text(rows)):
        share = hash_share(text)
        places["valid" if share < 0.01 else "test" if share < 0.02 else "train"].append(i)
    # A split without rows is left out.
    return {name: rows_at(rows, chosen, first=name == "train") for name, chosen in places.items() if chosen}


def _notes(data: TaskData, splits: dict[str, Split], sides: tuple[str, ...]) -> tuple[str, ...]:
    """Return a sentence for each split whose size is not the official one."""
    if data.sizes_of and "-".join(sorted(sides)) != "-".join(sorted(data.sizes_of.split("-"))):
        return ()
    notes = ["labels are scores, rounded to the nearest whole number"] if data.rounded else []
    for split, size in data.sizes.items():
        if split not in splits:
            notes.append(f"{split} is missing (officially {size:,} rows)")
        else:
            rows = len(splits[split]) + sum(splits[split].reading.rejected.values())
            if rows != size:
                notes.append(f"{split} has {rows:,} rows, officially {size:,} ({100 * rows / size:.1f} %)")
    return tuple(notes)
