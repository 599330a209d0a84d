"""Collecting the rows of a file: the first of equal tokens wins, and every row that is left out is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from embinit.errors import EmbinitError
from embinit.text.markers import encode_token
from embinit.types import Embeddings, Matrix, Origin

_EXAMPLES = 5
#: At most this many bytes are allocated before the first row, because a header may declare any number of rows.
_LARGEST_ALLOCATION = 4 << 30


@dataclass(frozen=True)
class Request:
    """The rows that are wanted from a source."""

    #: None for all rows
    wanted: frozenset[str] | None = None
    #: stop after this many rows
    most: int | None = None
    #: compose the wanted words that a fastText model lacks
    compose: bool = True


def encode_tokens(tokens: Collection[str]) -> frozenset[bytes]:
    """Return tokens as the bytes in a file; the inverse of `decode_tokens`."""
    return frozenset(map(encode_token, tokens))


def decode_tokens(tokens: Sequence[bytes]) -> tuple[list[str], int]:
    """Return tokens as text, and the number of tokens with bytes that are not UTF-8, which are kept as surrogates."""
    try:
        texts = b"\n".join(tokens).decode("utf-8").split("\n")  # three times as fast as one by one
        if len(texts) == len(tokens):
            return texts, 0
        return [token.decode("utf-8") for token in tokens], 0  # no token, or one with a line end
    except UnicodeDecodeError:
        texts = [token.decode("utf-8", "surrogateescape") for token in tokens]
        return texts, sum(any("\udc80" <= char <= "\udcff" for char in text) for text in texts)


class RowCollector:
    """Collects the rows of one source. The memory is that of the rows that are kept."""

    def __init__(self, dim: int, expected: int) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: list[str] = []
        self.warnings: list[str] = []
        self._seen: set[bytes] = set()
        self._tokens: list[bytes] = []
        # Pages that are never written cost no memory, so `expected` may be too large.
        self._vectors = np.empty((max(min(expected, _LARGEST_ALLOCATION // (4 * dim)), 16), dim), dtype=np.float32)

    def add(self, tokens: Sequence[bytes], vectors: Matrix) -> None:
        """Add the rows whose tokens are new; the first of equal tokens wins."""
        self.counts["rows"] += len(tokens)
        own = set(tokens)
        if len(own) < len(tokens) or not self._seen.isdisjoint(own):
            new_rows = []
            for row, token in enumerate(tokens):
                if token not in self._seen:
                    self._seen.add(token)
                    new_rows.append(row)
            self.counts["duplicates"] += len(tokens) - len(new_rows)
            tokens, vectors = [tokens[row] for row in new_rows], vectors[new_rows]
        else:  # the usual case, without a loop in Python
            self._seen |= own
        size, end = len(self._tokens), len(self._tokens) + len(tokens)
        if end > len(self._vectors):
            self._vectors.resize((max(end, 2 * len(self._vectors)), self._vectors.shape[1]), refcheck=False)
        self._vectors[size:end] = vectors
        self._tokens.extend(tokens)

    def reject(self, reason: str, message: str) -> None:
        """Count a row that is left out, and keep the messages of the first few."""
        self.counts["rejected"] += 1
        self.counts[f"rejected: {reason}"] += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(message)

    def __len__(self) -> int:
        return len(self._tokens)

    def embeddings(self, source: str, file_format: str, request: Request) -> Embeddings:
        """Return the collected rows; it is an error if every row was rejected."""
        if request.most is not None:
            del self._tokens[request.most :]
        if not self._tokens and request.wanted is None:
            why = f": {self.examples[0]}" if self.examples else ""
            raise EmbinitError(f"{source} has no usable row ({self.counts['rejected']} rejected{why})")
        tokens, undecodable = decode_tokens(self._tokens)
        if undecodable:
            self.counts["undecodable"] = undecodable
        vectors = self._vectors[: len(tokens)]
        if vectors.nbytes < self._vectors.nbytes // 2:
            vectors = vectors.copy()
        origin = Origin(source, file_format, dict(self.counts), tuple(self.examples), tuple(self.warnings))
        return Embeddings(tokens, vectors, origin)
