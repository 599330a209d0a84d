"""Text as numbers: one pass over the lines, four bytes per token."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError
from embinit.text.markers import looks_special
from embinit.text.tokenizers import Tokenizer
from embinit.text.vocabulary import numbered_lines, read_lines
from embinit.types import Vocabulary

#: Called with a description of the work, the amount done, and the whole amount if it is known.
Progress = Callable[[str, int, int | None], None]
Ids = npt.NDArray[np.int32]

#: Numbers that stand for the end of a line, and for a word that the vocabulary lacks.
BREAK, OUTSIDE = -1, -2
_BLOCK = 1 << 22
_LINES = 1 << 14


@dataclass(frozen=True)
class EncodedCorpus:
    """A text as rows of its vocabulary."""

    ids: Ids  # one number per token; BREAK after a line, OUTSIDE for a word that the vocabulary lacks
    vocabulary: Vocabulary
    tokens: int
    #: the number of words that occur too rarely
    rare: int
    #: tokens that no line of text can hold: with white space inside, empty, or undecodable
    left_out: tuple[str, ...]


class _Numbers(dict[str, int]):
    """Numbers of tokens in the order of their first occurrence; 0 stands for the end of a line."""

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self) + 1
        return number


def text_lines(texts: Sequence[str]) -> Iterator[str]:
    """Yield the lines of files, plain or compressed, and of stdin for `-`."""
    for text in texts:
        if text != "-":
            yield from read_lines([Path(text)])
            continue
        if sys.stdin is None:
            raise EmbinitError("stdin is closed; give a file of text, or pipe one to this command")
        for number, line in numbered_lines(sys.stdin.buffer, "stdin"):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise EmbinitError(f"stdin, line {number}: not UTF-8; convert the text first") from None


def encode(
    lines: Iterable[str], tokenize: Tokenizer, *, min_count: int, origin: str, progress: Progress
) -> EncodedCorpus:
    """Return the text as numbers, with the vocabulary of words that occur `min_count` times, most frequent first."""
    numbers = _Numbers()
    raw = array("i")
    read = 0
    for read, tokens in enumerate(tokenize(lines), 1):
        raw.extend(map(numbers.__getitem__, tokens))
        raw.append(0)
        if read % _LINES == 0:
            progress("reading", len(raw) - read, None)
    if len(raw) == read:
        raise EmbinitError(f"{origin} is empty: there is no word in it")
    ids = np.frombuffer(raw, dtype=np.int32)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(ids), _BLOCK)]
    seen = np.zeros(len(numbers) + 1, dtype=np.int64)
    for block in blocks:
        seen += np.bincount(ids[block], minlength=len(seen))
    left_out = tuple(token for token in numbers if not _fits_a_line(token))
    for token in left_out:
        seen[numbers[token]] = 0
    words = [token for token, number in numbers.items() if seen[number] >= min_count]
    if not words:
        raise EmbinitError(
            f"{origin} has no word that occurs at least {min_count} times; give more text or a smaller --min-count"
        )
    words.sort(key=lambda word: (-seen[numbers[word]], word))
    ranks = np.full(len(seen), OUTSIDE, dtype=np.int32)
    ranks[0] = BREAK
    ranks[[numbers[word] for word in words]] = np.arange(len(words), dtype=np.int32)
    for block in blocks:  # in place, to save memory
        ids[block] = ranks[ids[block]]
    counts = seen[[numbers[word] for word in words]]
    vocabulary = Vocabulary(tuple(words), counts, frozenset(filter(looks_special, words)), origin)
    return EncodedCorpus(ids, vocabulary, len(ids) - read, len(numbers) - len(left_out) - len(words), left_out)


def _fits_a_line(token: str) -> bool:
    """Return whether `token number number ...` can be read back."""
    if token.split() != [token] or "\0" in token:
        return False
    try:
        token.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
