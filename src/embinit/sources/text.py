"""GloVe, word2vec and fastText text: a token, then numbers, a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import opened
from embinit.sources.gatherer import Ask, Gatherer, encoded
from embinit.sources.numbers import decimals, is_count, number
from embinit.types import Embeddings, Matrix, finite_rows

_HEAD = 1 << 18
#: Small enough that the arrays made of it are re-used by the allocator: 2 MB took 1.6 times as long in a fresh process.
_BLOCK = 1 << 18
_LONGEST_LINE = 32 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class TextLayout:
    """How the rows of one file are written."""

    dim: int
    #: rows that a first line `400000 50` promises
    promised: int | None
    tabs: bool


def read_text(path: Path, member: str | None, ask: Ask, source: str) -> Embeddings:
    """Return the rows of a text file, or only the wanted ones at the memory of those."""
    with opened(path, member) as stream:
        head = stream.read(_HEAD)
        while b"\n" not in head and (more := stream.read(_HEAD)):
            head += more
            if len(head) > _LONGEST_LINE:
                raise EmbinitError(
                    f"{source}, line 1: longer than {_LONGEST_LINE >> 20} MB; expected a token and numbers"
                )
    layout = layout_of(head, source)
    targets = None if ask.wanted is None else encoded(ask.wanted)
    expected = len(targets) if targets is not None else layout.promised or path.stat().st_size // (8 * layout.dim)
    rows = Gatherer(layout.dim, min(expected, 1 << 22))
    with opened(path, member) as stream:
        blocks = _blocks(stream) if targets is None else _wanted_blocks(stream, targets)
        for block, numbers in blocks:
            if layout.promised is not None and numbers and numbers[0] == 1:
                block, numbers = block[block.find(b"\n") + 1 :], numbers[1:]
            if block:
                _take(block, numbers, layout, targets, rows)
            if ask.most is not None and len(rows) >= ask.most:
                break
    read = rows.counts["rows"] + rows.counts["rejected"]
    if layout.promised is not None and targets is None and ask.most is None and read != layout.promised:
        rows.counts["rows promised by the header"] = layout.promised
        rows.examples.append(f"the header promises {layout.promised} rows, the file has {read}")
    form = "GloVe text" if layout.promised is None else "word2vec text"
    return rows.result(source, form, ask)


# ---------------------------------------------------------------- layout


def layout_of(head: bytes, source: str) -> TextLayout:
    """Return dimension, header and separator, told from the first rows; an error where these are no vectors."""
    lines = head.removeprefix(_BOM).split(b"\n")
    if len(lines) > 2 and len(head) >= _HEAD:
        lines.pop()  # cut by the block, not by the file
    lines = [line.rstrip(b" \t\r") for line in lines]
    lines = [line for line in lines if line][:200]
    if not lines:
        raise EmbinitError(f"{source} is empty; expected a token and its numbers on each line")
    first = _fields(lines[0])
    promised = None
    if len(first) == 2 and all(map(is_count, first)):
        widths = [len(_fields(line)) - 1 for line in lines[1:]]
        if not widths:
            raise EmbinitError(f"{source} has a header ({lines[0].decode()}) and no rows")
        if Counter(widths).most_common(1)[0][0] != 1 or first[1] == b"1":
            promised, declared = int(first[0]), int(first[1])
            if declared < 1 or all(width < declared for width in widths):
                raise EmbinitError(
                    f"{source}, line 2: {widths[0]} numbers, but the header promises {declared} ({lines[0].decode()})"
                )
            return TextLayout(declared, promised, _tabs(lines[1:]))
    dim = _common_width(lines, source)
    return TextLayout(dim, promised, _tabs(lines))


def _common_width(lines: Sequence[bytes], source: str) -> int:
    """Return the commonest number of numbers; the smaller of two, since tokens may hold spaces."""
    widths: Counter[int] = Counter()
    for line in lines:
        fields = _fields(line)
        if (len(fields) > 1 and not np.isnan(number(fields[-1]))) or fields[-1].lower() in _NOT_FINITE:
            widths[len(fields) - 1] += 1
    widths.pop(0, None)
    if not widths:
        shown = lines[0][:40].decode("utf-8", "replace")
        raise EmbinitError(f"{source}, line 1: {shown!r} is no vector; expected a token and its numbers")
    dim = max(widths, key=lambda width: (widths[width], -width))
    readable = sum(_begins_and_ends(_fields(line), dim) for line in lines)
    if 2 * readable < len(lines):
        found = f"of its first {len(lines)} lines {readable} read as a token and its numbers"
        raise EmbinitError(f"{source}: {found}; expected a file of vectors")
    return dim


def _begins_and_ends(fields: Sequence[bytes], dim: int) -> bool:
    """Return whether the first and the last of so many numbers at a line's end are numbers, NaN and such included."""
    ends = (fields[-dim], fields[-1]) if len(fields) > dim else ()
    return bool(ends) and all(not np.isnan(number(field)) or field.lower() in _NOT_FINITE for field in ends)


_NOT_FINITE = frozenset((b"nan", b"-nan", b"inf", b"-inf", b"+inf", b"infinity", b"-infinity"))


def _fields(line: bytes) -> list[bytes]:
    fields = line.replace(b"\t", b" ").split(b" ")
    return line.split() if b"" in fields[1:] else fields


def _tabs(lines: Sequence[bytes]) -> bool:
    return 2 * sum(b"\t" in line for line in lines) > len(lines)


# ---------------------------------------------------------------- whole lines

#: Whole lines, and the number of each in the file.
_Block = tuple[bytes, Sequence[int]]


def _blocks(stream: BinaryIO) -> Iterator[_Block]:
    rest, first = b"", 1
    while True:
        more = stream.read(_BLOCK)
        block = rest + more
        if first == 1:
            block = block.removeprefix(_BOM)
        cut = block.rfind(b"\n") + 1 if more else len(block)
        block, rest = block[:cut], block[cut:]
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        if block:
            yield block, range(first, first + count)
            first += count
        if not more:
            return


def _wanted_blocks(stream: BinaryIO, wanted: frozenset[bytes]) -> Iterator[_Block]:
    """Yield only lines whose first field begins a wanted token; whether it is one is checked on the parsed row."""
    firsts = frozenset(token.replace(b"\t", b" ").partition(b" ")[0] for token in wanted)
    kept: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for count, line in enumerate(stream, 1):
        first = line.partition(b" ")[0]
        if first in firsts or count == 1 or (b"\t" in first and first.partition(b"\t")[0] in firsts):
            kept.append(line.removeprefix(_BOM) if count == 1 else line)
            numbers.append(count)
            size += len(line)
            if size > _BLOCK:
                yield b"".join(kept), numbers
                kept, numbers, size = [], [], 0
    yield b"".join(kept), numbers


# ---------------------------------------------------------------- rows


def _take(
    block: bytes, numbers: Sequence[int], layout: TextLayout, wanted: frozenset[bytes] | None, rows: Gatherer
) -> None:
    """Parse whole lines: regular ones all at once, the others with care."""
    if layout.tabs:
        block = block.replace(b"\t", b" ")
    block = block if block.endswith(b"\n") else block + b"\n"
    text, marks, newlines = _marks(block)
    before = text[marks[newlines] - 1]
    if ((before == 32) | (before == 13)).any():
        block = _without_trailing_space(block)
        text, marks, newlines = _marks(block)
    spaces = np.diff(newlines, prepend=-1) - 1
    regular = np.flatnonzero(spaces == layout.dim)
    if len(regular) == len(newlines):
        fields = marks.reshape(-1, layout.dim + 1)  # (rows, dim + 1): where each field ends
    else:
        fields = marks[newlines[regular][:, None] + np.arange(-layout.dim, 1)]
    begins = np.concatenate(([0], marks[newlines][:-1] + 1))
    vectors = decimals(block, fields[:, :-1].ravel() + 1, fields[:, 1:].ravel()).reshape(-1, layout.dim)
    good = finite = finite_rows(vectors)
    tokens = [block[a:b] for a, b in zip(begins[regular].tolist(), fields[:, 0].tolist(), strict=True)]
    if wanted is not None:
        good = finite & np.fromiter((token in wanted for token in tokens), dtype=bool, count=len(tokens))
    careful = np.ones(len(newlines), dtype=bool)
    careful[regular[finite]] = False
    places, ends = regular[good], marks[newlines]
    if len(places) < len(tokens):
        tokens, vectors = [tokens[row] for row in np.flatnonzero(good).tolist()], vectors[good]
    odd = [
        (line, *taken)
        for line in np.flatnonzero(careful).tolist()
        if (taken := _taken_with_care(block[begins[line] : ends[line]], numbers[line], layout.dim, wanted, rows))
    ]
    if odd:  # in the order of the file, since the first of equal tokens wins
        order = np.argsort(np.concatenate((places, [line for line, _, _ in odd])), kind="stable")
        tokens += [token for _, token, _ in odd]
        tokens = [tokens[row] for row in order.tolist()]
        vectors = np.concatenate((vectors, [vector for _, _, vector in odd]))[order]
    if tokens:
        rows.add(tokens, vectors)


def _marks(block: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the block as numbers, where its spaces and newlines are, and which of these are newlines."""
    text = np.frombuffer(block, dtype=np.uint8)
    marks = np.flatnonzero((text == 32) | (text == 10))
    return text, marks, np.flatnonzero(text[marks] == 10)


def _without_trailing_space(block: bytes) -> bytes:
    block = block.replace(b"\r\n", b"\n")
    while b" \n" in block:
        block = block.replace(b" \n", b"\n")
    return block


def _taken_with_care(
    line: bytes, at: int, dim: int, wanted: frozenset[bytes] | None, rows: Gatherer
) -> tuple[bytes, Matrix] | None:
    """Return the row of a line whose token holds spaces or whose fields are oddly spaced, or reject it."""
    line = line.rstrip(b" \t\r")
    if not line:
        rows.counts["blank lines"] += 1
        return None
    fields = line.rsplit(b" ", dim)
    if len(fields) != dim + 1 or b"" in fields[1:]:
        fields = line.rsplit(None, dim)
        if line.startswith(b" ") and len(fields) == dim:
            fields.insert(0, b"")
    token = fields[0].rstrip(b" ") or fields[0]  # columns that are aligned with spaces
    if wanted is not None and token not in wanted:
        return None
    values = np.array([number(field) for field in fields[1:]])
    last_word = token.rpartition(b" ")[2]
    if len(fields) != dim + 1 or (b" " in token and not np.isnan(number(last_word))):
        found = len(_fields(line)) - 1
        rows.reject("another width", f"line {at}: {found} numbers, expected {dim}")
    elif not np.isfinite(values).all():
        odd = next(field for field in fields[1:] if not np.isfinite(number(field)))
        kind = "NaN or infinite" if odd.lower() in _NOT_FINITE or np.isinf(number(odd)) else "not a number"
        rows.reject(kind, f"line {at}: {odd[:30].decode('utf-8', 'replace')!r} is {kind}")
    else:
        with np.errstate(over="ignore"):
            vector = values.astype(np.float32)
        if np.isfinite(vector).all():
            return token, vector
        rows.reject("NaN or infinite", f"line {at}: a number beyond float32's range")
    return None
