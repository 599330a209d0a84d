"""Rows of files: parallel lines, TSV, CSV, JSONL, Parquet, and the formats of IWSLT."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from embinit.corpora.examples import Reading
from embinit.errors import EmbinitError, require
from embinit.files import open_unpacked
from embinit.text.vocabulary import LONGEST_LINE, numbered_lines

#: The place of a row in its file, and its fields by column name.
Row = tuple[str, dict[str, Any]]

#: Endings of compressed files, and none.
ENDINGS = ("", ".gz", ".bz2", ".xz")
_SEGMENT = re.compile(rb"<seg[^>]*>(.*?)</seg>", re.DOTALL)


def lines(path: Path, reading: Reading) -> Iterator[tuple[int, str | None]]:
    """Yield each line with its number, or None for a line that is not UTF-8; the caller counts these."""
    reading.files.append(str(path))
    with open_unpacked(path) as stream:
        for number, raw in numbered_lines(stream, str(path)):
            try:
                text: str | None = raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                text = None
            yield number, text.removeprefix("\ufeff") if text is not None and number == 1 else text


def parallel(paths: Sequence[Path], reading: Reading, names: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of parallel files, side by side; files of different lengths are an error."""
    streams = [lines(path, reading) for path in paths]
    count = 0
    while True:
        rows = [next(stream, None) for stream in streams]
        if all(row is None for row in rows):
            return
        if any(row is None for row in rows):
            short = paths[[row is None for row in rows].index(True)]
            longer = ", ".join(path.name for path in paths if path != short)
            raise EmbinitError(
                f"{short} ends after {count} lines, but {longer} has more; both sides need the same number"
            )
        count += 1
        where = f"{paths[0].name}, line {count}"
        texts = [row[1] for row in rows if row is not None]
        if any(text is None for text in texts):
            reading.reject(where, "not UTF-8")
            continue
        yield where, dict(zip(names, texts, strict=True))


def table(path: Path, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a TSV, CSV, JSONL or Parquet file; its name decides. `columns` are for a file without a header."""
    name = re.sub(r"\.(gz|bz2|xz|zip)$", "", path.name)
    if name.endswith(".parquet"):
        return _parquet(path, reading)
    if name.endswith((".jsonl", ".json")):
        return _jsonl(path, reading)
    return _separated(path, reading, columns, comma=name.endswith(".csv"))


def _separated(path: Path, reading: Reading, columns: Sequence[str] | None, comma: bool) -> Iterator[Row]:
    """Yield the rows of a TSV, which has no quoting (as in GLUE), or of a CSV, which has.

    If `columns` are given, the first line is a header only if it names two of them: GLUE's CoLA has none.
    """
    header: list[str] | None = None
    for number, fields in _quoted(path, reading) if comma else _tabbed(path, reading):
        where = f"{path.name}, line {number}"
        if header is None:
            named = columns is None or len(set(columns) & set(fields)) > 1
            header = fields if named or columns is None else list(columns)
            if named:
                continue
        if len(fields) != len(header):
            reading.reject(where, f"{len(fields)} columns, expected {len(header)}")
        else:
            yield where, dict(zip(header, fields, strict=True))


def _tabbed(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    for number, text in lines(path, reading):
        if text is None:
            reading.reject(f"{path.name}, line {number}", "not UTF-8")
        else:
            yield number, text.split("\t")


def _quoted(path: Path, reading: Reading) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a CSV, whose quoted fields may hold newlines; an unreadable record is counted."""
    last = 0

    def decoded() -> Iterator[str]:
        nonlocal last
        for number, text in lines(path, reading):
            last = number
            if text is None:
                reading.reject(f"{path.name}, line {number}", "not UTF-8")
            else:
                yield text + "\n"

    records = csv.reader(decoded())
    while True:
        first = last + 1
        try:
            record = next(records, None)
        except csv.Error as error:
            reading.reject(f"{path.name}, line {first}", f"not CSV: {error}")
            continue
        if record is None:
            return
        if record:
            yield first, record


def _jsonl(path: Path, reading: Reading) -> Iterator[Row]:
    for number, text in lines(path, reading):
        where = f"{path.name}, line {number}"
        if text is not None and not text.strip():
            continue
        try:
            row = json.loads(text) if text is not None else None
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            reading.reject(where, "not UTF-8" if text is None else "not a JSON object")
            continue
        yield where, row


def _parquet(path: Path, reading: Reading) -> Iterator[Row]:
    parquet = require("pyarrow.parquet", "data", f"reading {path.name}")
    reading.files.append(str(path))
    try:
        batches = parquet.ParquetFile(path).iter_batches(batch_size=4096)
        number = 0
        for batch in batches:
            for row in batch.to_pylist():
                number += 1
                yield f"{path.name}, row {number}", row
    except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses of these
        raise EmbinitError(f"{path} cannot be read as Parquet: {error}") from None


def tags(path: Path, reading: Reading) -> Iterator[tuple[int, str | None]]:
    """Yield the sentences of an IWSLT `train.tags` file; lines that begin with `<` describe the talk."""
    for number, text in lines(path, reading):
        if text is None or not text.lstrip().startswith("<"):
            yield number, text if text is None else text.strip()


def segments(path: Path, reading: Reading) -> list[str | None]:
    """Return the sentences of an IWSLT XML file, with entities resolved; None for a sentence that is not UTF-8."""
    reading.files.append(str(path))
    with open_unpacked(path) as stream:
        content = stream.read(LONGEST_LINE + 1)
    if len(content) > LONGEST_LINE:
        raise EmbinitError(f"{path} is larger than {LONGEST_LINE >> 20} MB, as no file of IWSLT is")
    raw = _SEGMENT.findall(content)
    if not raw:
        raise EmbinitError(f"{path} has no <seg>; expected IWSLT's XML")
    return [_decoded(segment) for segment in raw]


def _decoded(raw: bytes) -> str | None:
    try:
        return html.unescape(raw.decode("utf-8")).strip()
    except UnicodeDecodeError:
        return None


def text_of(value: Any) -> str:
    """Return a field as text without white space around it; empty for null, a list and other values."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).strip()


def existing(folder: Path, names: Sequence[str]) -> Path | None:
    """Return the first file of these names that exists, plain or compressed."""
    paths = [folder / (name + ending) for name in names for ending in ENDINGS]
    return next((path for path in paths if path.is_file()), None)


def field_of(row: dict[str, Any], names: Sequence[str]) -> Any:
    """Return the field under the first of these names that the row has, or None."""
    return next((row[name] for name in names if name in row), None)


def has_column(row: dict[str, Any], names: Sequence[str], where: str) -> None:
    """Raise if a row has none of these columns; the error lists its columns."""
    if any(name in row for name in names):
        return
    raise EmbinitError(f"{where}: no column {' or '.join(names)}; it has {', '.join(map(str, row))}")
