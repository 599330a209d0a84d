"""GloVe, word2vec and fastText text: lines of a token and its numbers."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import open_unpacked
from embinit.sources.numbers import has_arrow, is_count, parse_lines, parse_number, parse_numbers
from embinit.sources.row_collector import Request, RowCollector, encode_tokens
from embinit.types import Embeddings, Matrix, finite_rows

_HEAD = 1 << 18
#: Small enough for the allocator to reuse its arrays: blocks of 2 MB took 1.6 times as long in a fresh process.
_BLOCK = 1 << 18
#: pyarrow takes larger blocks, because it makes an array of each column, and fewer columns. Smaller files do without it,
#: because its import takes a twentieth of a second. More threads would wait for the one that collects the rows.
_ARROW_BLOCK, _ARROW_COLUMNS, _ARROW_THREADS = 1 << 20, 4096, 4
_LONGEST_LINE = 32 << 20
#: A row of a file with known dimensions is shorter than this: a token of a megabyte and 64 characters a number.
_LONGEST_TOKEN, _LONGEST_NUMBER = 1 << 20, 64
#: A file with a smaller share of the rows that its header declares is cut short; small differences are usual.
_CUT_SHORT = 0.99
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextLayout:
    """The layout of the rows of one file."""

    dim: int
    #: the number of rows in the header `400000 50`; None without a header
    declared: int | None
    #: most lines are separated by tabs
    tabs: bool


def read_text(path: Path, member: str | None, request: Request, source: str) -> Embeddings:
    """Return the rows of a text file: all rows, or the wanted rows at the memory of those."""
    with open_unpacked(path, member) as stream:
        head = stream.read(_HEAD)
        while head.count(b"\n") < 2 and (more := stream.read(_HEAD)):  # a header, and the first row
            head += more
            if len(head) > _LONGEST_LINE and b"\n" not in head[:_LONGEST_LINE]:
                raise EmbinitError(
                    f"{source}, line 1 is longer than {_LONGEST_LINE >> 20} MB; expected a token and its numbers"
                )
            if len(head) > 2 * _LONGEST_LINE:
                break
    layout = detect_layout(head, source)
    wanted = None if request.wanted is None else encode_tokens(request.wanted)
    expected = len(wanted) if wanted is not None else layout.declared or path.stat().st_size // (8 * layout.dim)
    rows = RowCollector(layout.dim, min(expected, 1 << 22))
    with open_unpacked(path, member) as stream:
        arrow = _takes_arrow(path, layout, request)
        lines = _Lines(stream, source, _LONGEST_TOKEN + _LONGEST_NUMBER * layout.dim, _ARROW_BLOCK if arrow else _BLOCK)
        blocks = lines.blocks() if wanted is None else lines.wanted_blocks(wanted)
        blocks = _without_header(blocks) if layout.declared is not None else blocks
        unparsed = ((block, line_numbers, None) for block, line_numbers in blocks)
        for block, line_numbers, parsed in _parse_in_threads(blocks, layout.dim) if arrow else unparsed:
            if parsed is not None:
                rows.add(*parsed)
            elif block:
                _parse_block(block, line_numbers, layout, wanted, rows)
            if request.most is not None and len(rows) >= request.most:
                break
    read = rows.counts["rows"] + rows.counts["rejected"]
    if layout.declared is not None and wanted is None and request.most is None and read != layout.declared:
        rows.counts["rows promised by the header"] = layout.declared
        rows.examples.append(f"the header declares {layout.declared:,} rows, but the file has {read:,}")
        if read < _CUT_SHORT * layout.declared:
            rows.warnings.append(
                f"{source} is cut short: it holds {read:,} of the {layout.declared:,} rows that its header declares; "
                "fetch the file again"
            )
    file_format = "GloVe text" if layout.declared is None else "word2vec text"
    return rows.embeddings(source, file_format, request)


def _takes_arrow(path: Path, layout: TextLayout, request: Request) -> bool:
    """Return whether pyarrow parses the lines: of large files, if all rows are read."""
    regular = not layout.tabs and layout.dim < _ARROW_COLUMNS and request.wanted is None and request.most is None
    return regular and path.stat().st_size > 8 * _ARROW_BLOCK and has_arrow()


def _parse_in_threads(blocks: Iterator[_Block], dim: int) -> Iterator[tuple[bytes, Sequence[int], _Rows | None]]:
    """Yield each block with its rows, or None if a line is irregular; threads parse the blocks that follow meanwhile."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = min(_ARROW_THREADS, cores)
    waiting: deque[tuple[bytes, Sequence[int], Future[_Rows | None]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for block, line_numbers in blocks:
            waiting.append((block, line_numbers, pool.submit(parse_lines, block, dim)))
            if len(waiting) > threads:
                block, line_numbers, rows = waiting.popleft()
                yield block, line_numbers, rows.result()
        for block, line_numbers, rows in waiting:
            yield block, line_numbers, rows.result()


def _without_header(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Yield the blocks without the first line of the file."""
    for block, line_numbers in blocks:
        if line_numbers and line_numbers[0] == 1:
            yield block[block.find(b"\n") + 1 :], line_numbers[1:]
        else:
            yield block, line_numbers


# ---------------------------------------------------------------- layout


def detect_layout(head: bytes, source: str) -> TextLayout:
    """Return the layout of a file from its first lines; it is an error if they are not vectors."""
    lines = head.removeprefix(_BOM).split(b"\n")
    if len(lines) > 2 and len(head) >= _HEAD:
        lines.pop()  # the block ends inside this line
    lines = [line.rstrip(b" \t\r") for line in lines]
    lines = [line for line in lines if line][:200]
    if not lines:
        raise EmbinitError(f"{source} is empty; expected a token and its numbers on each line")
    first = _fields(lines[0])
    if len(first) == 2 and all(map(is_count, first)):
        widths = [len(_fields(line)) - 1 for line in lines[1:]]
        if not widths:
            raise EmbinitError(f"{source} has a header ({lines[0].decode()}) but no rows")
        if Counter(widths).most_common(1)[0][0] != 1 or first[1] == b"1":
            declared, dim = int(first[0]), int(first[1])
            if dim < 1 or all(width < dim for width in widths):
                raise EmbinitError(
                    f"{source}, line 2 has {widths[0]} numbers, but the header declares {dim} ({lines[0].decode()})"
                )
            return TextLayout(dim, declared, _uses_tabs(lines[1:]))
    return TextLayout(_common_width(lines, source), None, _uses_tabs(lines))


def _common_width(lines: Sequence[bytes], source: str) -> int:
    """Return the most frequent count of numbers in a line; of two, the smaller, because tokens may hold spaces."""
    widths: Counter[int] = Counter()
    for line in lines:
        fields = _fields(line)
        if (len(fields) > 1 and not np.isnan(parse_number(fields[-1]))) or fields[-1].lower() in _NOT_FINITE:
            widths[len(fields) - 1] += 1
    widths.pop(0, None)
    if not widths:
        start = lines[0][:40].decode("utf-8", "replace")
        raise EmbinitError(f"{source}, line 1: {start!r} is not a vector; expected a token and its numbers")
    dim = max(widths, key=lambda width: (widths[width], -width))
    readable = sum(_ends_with_numbers(_fields(line), dim) for line in lines)
    if 2 * readable < len(lines):
        raise EmbinitError(
            f"{source}: only {readable:,} of the first {len(lines):,} lines are a token and its numbers; "
            "expected a file of vectors"
        )
    return dim


def _ends_with_numbers(fields: Sequence[bytes], dim: int) -> bool:
    """Return whether the first and the last of the `dim` fields at the end of a line are numbers, or NaN or infinite."""
    ends = (fields[-dim], fields[-1]) if len(fields) > dim else ()
    return bool(ends) and all(not np.isnan(parse_number(field)) or field.lower() in _NOT_FINITE for field in ends)


_NOT_FINITE = frozenset((b"nan", b"-nan", b"inf", b"-inf", b"+inf", b"infinity", b"-infinity"))


def _fields(line: bytes) -> list[bytes]:
    fields = line.replace(b"\t", b" ").split(b" ")
    return line.split() if b"" in fields[1:] else fields


def _uses_tabs(lines: Sequence[bytes]) -> bool:
    return 2 * sum(b"\t" in line for line in lines) > len(lines)


# ---------------------------------------------------------------- blocks of lines

#: Complete lines, and their numbers in the file.
_Block = tuple[bytes, Sequence[int]]
#: Tokens and their vectors.
_Rows = tuple[list[bytes], Matrix]


@dataclass(frozen=True)
class _Lines:
    """The lines of a file. A line that no row can fill is an error, so that it never fills the memory."""

    stream: BinaryIO
    source: str
    longest: int
    #: bytes that are read at once
    size: int = _BLOCK

    def blocks(self) -> Iterator[_Block]:
        """Yield all lines."""
        rest, first = b"", 1  # the start of an unfinished line, and the number of the first line
        while True:
            more = self.stream.read(self.size)
            block = rest + more
            if first == 1:
                block = block.removeprefix(_BOM)
            cut = block.rfind(b"\n") + 1 if more else len(block)
            block, rest = block[:cut], block[cut:]
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            if block:
                yield block, range(first, first + count)
                first += count
            if len(rest) > self.longest:
                raise self._too_long(first)
            if not more:
                return

    def wanted_blocks(self, wanted: frozenset[bytes]) -> Iterator[_Block]:
        """Yield the lines whose first field begins a wanted token. The parsed row shows whether the token is wanted."""
        firsts = frozenset(token.replace(b"\t", b" ").partition(b" ")[0] for token in wanted)
        kept: list[bytes] = []
        line_numbers: list[int] = []
        size, longest = 0, self.longest
        for number, line in enumerate(iter(partial(self.stream.readline, longest + 1), b""), 1):
            if len(line) > longest:
                raise self._too_long(number)
            first = line.partition(b" ")[0]
            if first in firsts or number == 1 or (b"\t" in first and first.partition(b"\t")[0] in firsts):
                kept.append(line.removeprefix(_BOM) if number == 1 else line)
                line_numbers.append(number)
                size += len(line)
                if size > _BLOCK:
                    yield b"".join(kept), line_numbers
                    kept, line_numbers, size = [], [], 0
        yield b"".join(kept), line_numbers

    def _too_long(self, number: int) -> EmbinitError:
        return EmbinitError(
            f"{self.source}, line {number} is longer than {self.longest:,} bytes; expected a token and its numbers"
        )


# ---------------------------------------------------------------- rows


def _parse_block(
    block: bytes, line_numbers: Sequence[int], layout: TextLayout, wanted: frozenset[bytes] | None, rows: RowCollector
) -> None:
    """Add the rows of complete lines: regular lines are parsed all at once, the others one by one."""
    if layout.tabs:
        block = block.replace(b"\t", b" ")
    block = block if block.endswith(b"\n") else block + b"\n"
    text, separators, newlines = _separators(block)
    before = text[separators[newlines] - 1]
    if ((before == 32) | (before == 13)).any():
        block = _without_trailing_space(block)
        text, separators, newlines = _separators(block)
    spaces = np.diff(newlines, prepend=-1) - 1
    regular = np.flatnonzero(spaces == layout.dim)
    if len(regular) == len(newlines):
        fields = separators.reshape(-1, layout.dim + 1)  # (rows, dim + 1): the end of each field
    else:
        fields = separators[newlines[regular][:, None] + np.arange(-layout.dim, 1)]
    begins, ends = np.concatenate(([0], separators[newlines][:-1] + 1)), separators[newlines]
    vectors = parse_numbers(block, fields[:, :-1].ravel() + 1, fields[:, 1:].ravel()).reshape(-1, layout.dim)
    kept = finite = finite_rows(vectors)
    tokens = [block[a:b] for a, b in zip(begins[regular].tolist(), fields[:, 0].tolist(), strict=True)]
    if wanted is not None:
        kept = finite & np.fromiter((token in wanted for token in tokens), dtype=bool, count=len(tokens))
    irregular = np.ones(len(newlines), dtype=bool)
    irregular[regular[finite]] = False
    blank = begins == ends  # counted together, because a file may have millions
    irregular[blank] = False
    if blank.any():
        rows.counts["blank lines"] += int(blank.sum())
    lines = regular[kept]
    if len(lines) < len(tokens):
        tokens, vectors = [tokens[row] for row in np.flatnonzero(kept).tolist()], vectors[kept]
    others = [
        (line, *row)
        for line in np.flatnonzero(irregular).tolist()
        if (row := _parse_line(block[begins[line] : ends[line]], line_numbers[line], layout.dim, wanted, rows))
    ]
    if others:  # back to the order of the file, because the first of equal tokens wins
        order = np.argsort(np.concatenate((lines, [line for line, _, _ in others])), kind="stable")
        tokens += [token for _, token, _ in others]
        tokens = [tokens[row] for row in order.tolist()]
        vectors = np.concatenate((vectors, [vector for _, _, vector in others]))[order]
    if tokens:
        rows.add(tokens, vectors)


def _separators(block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the block as numbers, the positions of its spaces and newlines, and the indices of the newlines in these."""
    text = np.frombuffer(block, dtype=np.uint8)
    separators = np.flatnonzero((text == 32) | (text == 10))
    return text, separators, np.flatnonzero(text[separators] == 10)


def _without_trailing_space(block: bytes) -> bytes:
    block = block.replace(b"\r\n", b"\n")
    while b" \n" in block:
        block = block.replace(b" \n", b"\n")
    return block


def _parse_line(
    line: bytes, line_number: int, dim: int, wanted: frozenset[bytes] | None, rows: RowCollector
) -> tuple[bytes, Matrix] | None:
    """Return the token and vector of a line whose token may hold spaces, or reject the line."""
    line = line.rstrip(b" \t\r")
    if not line.strip():  # perhaps a form feed alone
        rows.counts["blank lines"] += 1
        return None
    fields = line.rsplit(b" ", dim)
    if len(fields) != dim + 1 or b"" in fields[1:]:
        fields = line.rsplit(None, dim)
        if line.startswith(b" ") and len(fields) == dim:
            fields.insert(0, b"")
    token = fields[0].rstrip(b" ") or fields[0]  # spaces may align the columns
    if wanted is not None and token not in wanted:
        return None
    values = np.array([parse_number(field) for field in fields[1:]])
    last_word = token.rpartition(b" ")[2]
    if len(fields) != dim + 1 or (b" " in token and not np.isnan(parse_number(last_word))):
        count = len(_fields(line)) - 1
        rows.reject("another width", f"line {line_number}: {count} numbers, expected {dim}")
    elif not np.isfinite(values).all():
        bad = next(field for field in fields[1:] if not np.isfinite(parse_number(field)))
        reason = "NaN or infinite" if bad.lower() in _NOT_FINITE or np.isinf(parse_number(bad)) else "not a number"
        rows.reject(reason, f"line {line_number}: {bad[:30].decode('utf-8', 'replace')!r} is {reason}")
    else:
        with np.errstate(over="ignore"):
            vector = values.astype(np.float32)
        if np.isfinite(vector).all():
            return token, vector
        rows.reject("NaN or infinite", f"line {line_number}: a number beyond float32's range")
    return None
