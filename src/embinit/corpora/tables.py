"""Rows of text files: parallel lines, TSV, CSV, JSONL, Parquet, and the files of IWSLT."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from embinit.corpora.examples import Reading
from embinit.errors import EmbinitError, closest, require
from embinit.files import opened

#: Where a row stands, and its fields by column name.
Row = tuple[str, dict[str, Any]]

_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL)


def lines(path: Path, reading: Reading) -> Iterator[tuple[int, str | None]]:
    """Yield each line with its number; None for a line that is no UTF-8, which the reader counts."""
    reading.files.append(str(path))
    with opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                text: str | None = raw.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                text = None
            yield number, text.removeprefix("\ufeff") if text is not None and number == 1 else text


def parallel(paths: Sequence[Path], reading: Reading, names: Sequence[str]) -> Iterator[Row]:
    """Yield the lines of files that go together; files of different lengths are an error."""
    streams = [lines(path, reading) for path in paths]
    count = 0
    while True:
        rows = [next(stream, None) for stream in streams]
        if all(row is None for row in rows):
            return
        if any(row is None for row in rows):
            short = paths[[row is None for row in rows].index(True)]
            raise EmbinitError(
                f"{short} ends after {count} lines, {', '.join(p.name for p in paths if p != short)} goes on"
            )
        count += 1
        where = f"{paths[0].name}, line {count}"
        texts = [row[1] for row in rows if row is not None]
        if any(text is None for text in texts):
            reading.reject(where, "not UTF-8")
            continue
        yield where, dict(zip(names, texts, strict=True))


def table(path: Path, reading: Reading, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a TSV, CSV, JSONL or Parquet file, told by its name; `columns` where it has no header."""
    name = re.sub(r"\.(gz|bz2|xz|zip)$", "", path.name)
    if name.endswith(".parquet"):
        return _parquet(path, reading)
    if name.endswith((".jsonl", ".json")):
        return _jsonl(path, reading)
    return _separated(path, reading, columns, comma=name.endswith(".csv"))


def _separated(path: Path, reading: Reading, columns: Sequence[str] | None, comma: bool) -> Iterator[Row]:
    """Yield rows by column; TSV has no quoting (GLUE's is not quoted), CSV has the usual."""
    header = list(columns) if columns is not None else None
    for number, text in _records(path, reading, comma):
        where = f"{path.name}, line {number}"
        if text is None:
            reading.reject(where, "not UTF-8")
            continue
        fields = next(csv.reader([text])) if comma else text.split("\t")
        if header is None:
            header = fields
            continue
        if len(fields) != len(header):
            reading.reject(where, f"{len(fields)} columns, expected {len(header)}")
            continue
        yield where, dict(zip(header, fields, strict=True))


def _records(path: Path, reading: Reading, comma: bool) -> Iterator[tuple[int, str | None]]:
    """Yield lines; of a CSV whole records, whose quoted fields may hold newlines."""
    held, first = "", 0
    for number, text in lines(path, reading):
        if text is None or not comma:
            yield number, text
            continue
        held, first = (f"{held}\n{text}", first) if held else (text, number)
        if held.count('"') % 2 == 0:
            if held:
                yield first, held
            held = ""
    if held:
        yield first, held


def _jsonl(path: Path, reading: Reading) -> Iterator[Row]:
    for number, text in lines(path, reading):
        where = f"{path.name}, line {number}"
        if text is not None and not text.strip():
            continue
        try:
            row = json.loads(text) if text is not None else None
        except ValueError:
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
    except OSError as error:
        raise EmbinitError(f"{path} cannot be read as Parquet: {error}") from None


def tags(path: Path, reading: Reading) -> Iterator[tuple[int, str | None]]:
    """Yield the sentences of IWSLT's `train.tags` file; lines that begin with `<` describe the talk."""
    for number, text in lines(path, reading):
        if text is None or not text.lstrip().startswith("<"):
            yield number, text if text is None else text.strip()


def segments(path: Path, reading: Reading) -> list[str]:
    """Return the sentences of IWSLT's XML: the text of each `<seg>`, with entities resolved."""
    reading.files.append(str(path))
    with opened(path) as stream:
        content = io.TextIOWrapper(stream, encoding="utf-8", errors="replace").read()
    found = [html.unescape(segment).strip() for segment in _SEGMENT.findall(content)]
    if not found:
        raise EmbinitError(f"{path} has no <seg>; expected IWSLT's XML")
    return found


def column(row: dict[str, Any], names: Sequence[str], where: str) -> Any:
    """Return the field under the first name that the row has; an error names those that it has."""
    for name in names:
        if name in row:
            return row[name]
    raise EmbinitError(f"{where}: no column {names[0]!r}{closest(names[0], row)}; it has {', '.join(map(str, row))}")
