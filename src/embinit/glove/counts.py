"""Count pairs of words that occur near each other; nearer pairs weigh more."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from embinit.errors import require
from embinit.glove.corpus import BREAK, Ids, Progress

#: The number of pairs that are kept before they are summed, at about 30 bytes each.
_PAIRS = 1 << 23

Lines = npt.NDArray[np.int64]
#: scipy.sparse.csr_array of float64, words x context words
Pairs = Any


def cooccurrences(
    ids: Ids, words: int, *, window: int, symmetric: bool, progress: Progress, pairs_at_once: int = _PAIRS
) -> Pairs:
    """Return the sum of 1/distance over all pairs of words of one line that are at most `window` words apart.

    Words outside the vocabulary are removed first, so that windows skip them, as in the reference implementation
    (cooccur.c). Rows are words and columns their contexts; only left contexts count unless `symmetric` is set.
    """
    size = max(1, pairs_at_once // window)
    before: Ids = ids[:0]
    before_lines: Lines = np.zeros(0, dtype=np.int64)
    line = 0
    sums: list[Pairs] = []
    for start in range(0, len(ids), size):
        block = ids[start : start + size]
        lines = line + np.cumsum(block == BREAK)
        line = int(lines[-1])
        kept = block >= 0
        joined, joined_lines = np.concatenate([before, block[kept]]), np.concatenate([before_lines, lines[kept]])
        sums.append(_block(joined, joined_lines, len(before), words, window, symmetric))
        # Sums of similar size are merged, so that each pair is moved log(blocks) times.
        while len(sums) > 1 and sums[-2].nnz < 2 * sums[-1].nnz:
            sums.append(sums.pop() + sums.pop())
        before, before_lines = joined[-window:], joined_lines[-window:]
        progress("counting", min(start + size, len(ids)), len(ids))
    while len(sums) > 1:
        sums.append(sums.pop() + sums.pop())
    total = sums[0]
    # Only one half was counted. A word next to itself is its own context on both sides.
    return (total + total.T).tocsr() if symmetric else total


def _block(ids: Ids, lines: Lines, first: int, words: int, window: int, symmetric: bool) -> Pairs:
    """Return the sums of pairs whose right word is `ids[first]` or later; of the upper half where symmetric."""
    sparse = require("scipy.sparse", "glove", "counting pairs of words")
    rows, columns, weights = [ids[:0]], [ids[:0]], [np.zeros(0)]
    for distance in range(1, min(window, len(ids) - 1) + 1):
        begin = max(first, distance)
        here, there = slice(begin, None), slice(begin - distance, len(ids) - distance)
        together = lines[here] == lines[there]
        word, context = ids[here][together], ids[there][together]
        rows.append(np.minimum(word, context) if symmetric else word)
        columns.append(np.maximum(word, context) if symmetric else context)
        weights.append(np.full(len(word), 1 / distance))
    places = (np.concatenate(rows), np.concatenate(columns))
    return sparse.coo_array((np.concatenate(weights), places), shape=(words, words)).tocsr()


def checksum(pairs: Pairs, tokens: Iterable[str]) -> str:
    """Return a SHA-256 of the counts and of the words that they count."""
    digest = hashlib.sha256("\n".join(tokens).encode())
    for part in (pairs.indptr, pairs.indices, pairs.data):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
