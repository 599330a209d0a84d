"""Running text for language models: lines in their order, with blank lines kept as boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from embinit.corpora.examples import Corpus, Reading, Split, split_of
from embinit.corpora.tables import ENDINGS, Row, existing, field_of, has_column, lines
from embinit.errors import EmbinitError, Unavailable
from embinit.format import plural

_SPLITS = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}
_ENDINGS = (".txt", ".tokens", ".text", "")
#: The shares of a text without splits at which its validation and its test part begin.
_VALID, _TEST = 0.90, 0.95
#: A part may begin later by this share of the text, so that it begins after a blank line.
_SLACK = 0.01
#: The names of a table's column that holds text.
TEXT_COLUMN = ("text",)


def text_split(rows: Iterable[Row], reading: Reading) -> Split:
    """Return the lines of rows with a text column; a row may hold several lines."""
    texts: list[str] = []
    for number, (where, fields) in enumerate(rows):
        if number == 0:
            has_column(fields, TEXT_COLUMN, where)
        text = field_of(fields, TEXT_COLUMN)
        if isinstance(text, str):
            texts += text.rstrip("\n").split("\n")
        else:
            reading.reject(where, "no text")
    return split_of([texts], None, reading)


def text_lines(paths: Sequence[Path], reading: Reading) -> Iterable[Row]:
    """Yield each line of text files, one file after another; a line that is not UTF-8 is counted and left out."""
    for path in paths:
        for number, line in lines(path, reading):
            where = f"{path.name}, line {number}"
            if line is None:
                reading.reject(where, "not UTF-8")
            else:
                yield where, {"text": line}


def is_empty(split: Split) -> bool:
    """Return whether no line of a split has a word."""
    return not any(line.strip() for line in split.texts[0])


def in_order(text: Split, name: str) -> dict[str, Split]:
    """Return train, valid and test: the first 90 % of the characters, the next 5 % and the last 5 %.

    A part begins at a line, and after a blank line if there is one within the next hundredth of the text.
    """
    rows = text.texts[0]
    sizes = list(accumulate(len(line) + 1 for line in rows))
    first, second = (_break_at(rows, sizes, share) for share in (_VALID, _TEST))
    parts = {"train": rows[:first], "valid": rows[first:second], "test": rows[second:]}
    # Rejected lines are counted once, with the training lines.
    splits = {
        split: split_of([part], None, text.reading if split == "train" else Reading(text.reading.files))
        for split, part in parts.items()
    }
    empty = [split for split, part in splits.items() if is_empty(part)]
    if empty:
        lines_text = plural(len(rows), "line")
        raise EmbinitError(
            f"{name} is too short to be split: it has {lines_text}, and nothing would be left for {empty[0]}; "
            "give more text, or the files train.txt, valid.txt and test.txt"
        )
    return splits


def _break_at(rows: Sequence[str], sizes: Sequence[int], share: float) -> int:
    """Return the number of the line at which the part of a text begins that follows this share of it."""
    total = sizes[-1] if sizes else 0
    start = next((i + 1 for i, size in enumerate(sizes) if size >= share * total), len(rows))
    for i in range(start, len(rows)):
        if sizes[i - 1] > (share + _SLACK) * total:
            break
        if not rows[i - 1].strip():
            return i
    return start


def read_text(path: Path) -> Corpus:
    """Return a user's own text.

    Parameters
    ----------
    path
        A text file, plain or compressed, whose last tenth becomes the validation and the test text. Or a folder: with
        `train.txt` and maybe `valid.txt` and `test.txt`, or with any other `.txt` files, which are read in the order of
        their names as one text.

    Raises
    ------
    Unavailable
        If there is no such file, or the folder holds no text.
    EmbinitError
        If a text is empty, or too short to be split.
    """
    located = _located(path)
    splits = {}
    for split, paths in located.items():
        reading = Reading()
        splits[split] = text_split(text_lines(paths, reading), reading)
        if is_empty(splits[split]):
            why = f" ({reading.examples[0]})" if reading.examples else ""
            where = "" if split == "all" else f"{split}: "
            raise EmbinitError(f"{where}no text in {', '.join(file.name for file in paths)}{why}")
    notes: tuple[str, ...] = ()
    if "all" in splits:
        splits = in_order(splits["all"], path.name)
        sizes = {name: f"{len(split):,}" for name, split in splits.items()}
        notes = (
            f"no file holds validation text, so {sizes['valid']} lines for validation and {sizes['test']} for the test were "
            f"taken from the end of the text; {sizes['train']} are left for training",
        )
    return Corpus("text", "language_model", splits, languages=("xx",), notes=notes)


def _located(path: Path) -> dict[str, list[Path]]:
    """Return the files of each split; `all` for a text without splits."""
    if path.is_file():
        return {"all": [path]}
    if not path.is_dir():
        raise Unavailable(f"no such text: {path}")
    located = {}
    for split, names in _SPLITS.items():
        file = existing(path, [name + ending for name in names for ending in _ENDINGS])
        if file is not None:
            located[split] = [file]
    if "train" in located:
        return located
    if located:
        raise Unavailable(f"{path} holds {', '.join(located)} but no training text; expected train.txt")
    endings = tuple(f".txt{packed}" for packed in ENDINGS)
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name.endswith(endings))
    if not files:
        raise Unavailable(f"{path} holds no text: expected train.txt, valid.txt and test.txt, or other .txt files")
    return {"all": files}
