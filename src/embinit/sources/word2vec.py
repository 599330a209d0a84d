"""word2vec's binary format: a header, then a token, a space and float32 numbers, row after row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import opened
from embinit.sources.gatherer import Ask, Gatherer, encoded
from embinit.types import Embeddings, finite_rows

_BLOCK = 1 << 22
_LONGEST_TOKEN = 1 << 14


def read_word2vec(path: Path, member: str | None, ask: Ask, source: str) -> Embeddings:
    """Return the rows of a binary file (also compressed), or only the wanted ones."""
    targets = None if ask.wanted is None else encoded(ask.wanted)
    with opened(path, member) as stream:
        promised, dim = (int(field) for field in stream.readline().split())
        rows = Gatherer(dim, min(promised if targets is None else len(targets), 1 << 22))
        width, buffer, at, done = 4 * dim, b"", 0, 0
        while done < promised:
            tokens: list[bytes] = []
            vectors: list[bytes] = []
            while done < promised:
                space = buffer.find(b" ", at)
                if space < 0 or space + 1 + width > len(buffer):
                    break
                # The original program ends each row with a newline, gensim does not.
                token = buffer[at:space].lstrip(b"\n")
                at, done = space + 1 + width, done + 1
                if targets is None or token in targets:
                    tokens.append(token)
                    vectors.append(buffer[space + 1 : at])
            _add(rows, tokens, vectors, dim)
            if ask.most is not None and len(rows) >= ask.most:
                return rows.result(source, "word2vec binary", ask)
            more = stream.read(_BLOCK)
            buffer, at = buffer[at:] + more, 0
            if b" " not in buffer and len(buffer) > _LONGEST_TOKEN:
                raise EmbinitError(
                    f"{source}, row {done + 1}: no token in {len(buffer)} bytes; expected word2vec binary"
                )
            if not more:
                break
    if done < promised:
        rows.counts["rejected: cut short"] = promised - done
        rows.counts["rejected"] += promised - done
        rows.examples.append(f"row {done + 1}: the file ends; its header promises {promised} rows")
    return rows.result(source, "word2vec binary", ask)


def _add(rows: Gatherer, tokens: list[bytes], raw: list[bytes], dim: int) -> None:
    if not tokens:
        return
    vectors = np.frombuffer(b"".join(raw), dtype="<f4").astype(np.float32, copy=False).reshape(-1, dim)
    good = finite_rows(vectors)
    for row in np.flatnonzero(~good).tolist():
        token = tokens[row].decode("utf-8", "replace")
        rows.reject("NaN or infinite", f"the row of {token!r} is NaN or infinite")
    rows.add([token for token, keep in zip(tokens, good.tolist(), strict=True) if keep], vectors[good])
