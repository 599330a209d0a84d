"""Rows on their way in: first wins, NaN stays out, everything left out is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from embinit.errors import EmbinitError
from embinit.types import Embeddings, Matrix, Origin

_EXAMPLES = 5
#: Memory that is set aside before the first row; a header may promise anything.
_AHEAD = 4 << 30


@dataclass(frozen=True)
class Ask:
    """Which rows of a source are asked for."""

    wanted: frozenset[str] | None = None
    most: int | None = None
    #: make wanted words that a fastText model lacks
    compose: bool = True


def encoded(tokens: Collection[str]) -> frozenset[bytes]:
    """Return tokens as the bytes that a file holds; invalid UTF-8 went in reversibly and comes out so."""
    return frozenset(map(encode, tokens))


def encode(token: str) -> bytes:
    """Return one token as bytes; a lone surrogate that no file can hold becomes bytes that match nothing."""
    try:
        return token.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return token.encode("utf-8", "surrogatepass")


def decoded(tokens: Sequence[bytes]) -> tuple[list[str], int]:
    """Return tokens as text, with bytes that are no UTF-8 kept reversibly, and how many had such."""
    try:
        return [token.decode("utf-8") for token in tokens], 0
    except UnicodeDecodeError:
        texts = [token.decode("utf-8", "surrogateescape") for token in tokens]
        return texts, sum(any("\udc80" <= char <= "\udcff" for char in text) for text in texts)


class Gatherer:
    """Collects rows of one source; memory stays at the rows kept."""

    def __init__(self, dim: int, expected: int) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: list[str] = []
        self._seen: set[bytes] = set()
        self._tokens: list[bytes] = []
        # Pages that are not written to cost nothing, so `expected` may be generous.
        self._vectors = np.empty((max(min(expected, _AHEAD // (4 * dim)), 16), dim), dtype=np.float32)

    def add(self, tokens: Sequence[bytes], vectors: Matrix) -> None:
        """Take rows that were not seen before; the first of equal tokens wins."""
        self.counts["rows"] += len(tokens)
        fresh = []
        for row, token in enumerate(tokens):
            if token not in self._seen:
                self._seen.add(token)
                fresh.append(row)
        if len(fresh) < len(tokens):
            self.counts["duplicates"] += len(tokens) - len(fresh)
            tokens, vectors = [tokens[row] for row in fresh], vectors[fresh]
        size, end = len(self._tokens), len(self._tokens) + len(tokens)
        if end > len(self._vectors):
            self._vectors.resize((max(end, 2 * len(self._vectors)), self._vectors.shape[1]), refcheck=False)
        self._vectors[size:end] = vectors
        self._tokens.extend(tokens)

    def reject(self, reason: str, detail: str) -> None:
        """Count a row that is left out, and keep the first few in words."""
        self.counts["rejected"] += 1
        self.counts[f"rejected: {reason}"] += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(detail)

    def __len__(self) -> int:
        return len(self._tokens)

    def result(self, source: str, form: str, ask: Ask) -> Embeddings:
        """Return what was gathered; an error where every row was rejected."""
        if ask.most is not None:
            del self._tokens[ask.most :]
        if not self._tokens and ask.wanted is None:
            why = f": {self.examples[0]}" if self.examples else ""
            raise EmbinitError(f"{source} has no usable row ({self.counts['rejected']} rejected{why})")
        tokens, undecodable = decoded(self._tokens)
        if undecodable:
            self.counts["undecodable"] = undecodable
        vectors = self._vectors[: len(tokens)]
        if vectors.nbytes < self._vectors.nbytes // 2:
            vectors = vectors.copy()
        return Embeddings(tokens, vectors, Origin(source, form, dict(self.counts), tuple(self.examples)))
