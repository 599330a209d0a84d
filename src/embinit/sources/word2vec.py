"""word2vec's binary format: a header, then rows of a token, a space and float32 numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import open_unpacked
from embinit.sources.row_collector import Request, RowCollector, encode_tokens
from embinit.types import Embeddings, finite_rows

_BLOCK = 1 << 22
_LONGEST_TOKEN = 1 << 14


def read_word2vec(path: Path, member: str | None, request: Request, source: str) -> Embeddings:
    """Return the rows of a binary file, plain or compressed: all rows or the wanted rows."""
    wanted = None if request.wanted is None else encode_tokens(request.wanted)
    with open_unpacked(path, member) as stream:
        declared, dim = (int(field) for field in stream.readline().split())
        rows = RowCollector(dim, min(declared if wanted is None else len(wanted), 1 << 22))
        width, buffer, at, done = 4 * dim, b"", 0, 0
        while done < declared:
            tokens: list[bytes] = []
            vectors: list[bytes] = []
            while done < declared:
                space = buffer.find(b" ", at)
                if space < 0 or space + 1 + width > len(buffer):
                    break
                # The original program ends each row with a newline; gensim does not.
                token = buffer[at:space].lstrip(b"\n")
                at, done = space + 1 + width, done + 1
                if wanted is None or token in wanted:
                    tokens.append(token)
                    vectors.append(buffer[space + 1 : at])
            _add_rows(rows, tokens, vectors, dim)
            if request.most is not None and len(rows) >= request.most:
                return rows.embeddings(source, "word2vec binary", request)
            more = stream.read(_BLOCK)
            buffer, at = buffer[at:] + more, 0
            if b" " not in buffer and len(buffer) > _LONGEST_TOKEN:
                raise EmbinitError(
                    f"{source}, row {done + 1}: no token in {len(buffer)} bytes; expected a word2vec binary file"
                )
            if not more:
                break
    if done < declared:
        rows.counts["rejected: cut short"] = declared - done
        rows.counts["rejected"] += declared - done
        rows.examples.append(f"row {done + 1}: the file ends here, but its header declares {declared:,} rows")
        rows.warnings.append(
            f"{source} is cut short: it holds {done:,} of the {declared:,} rows that its header declares; "
            "fetch the file again"
        )
    return rows.embeddings(source, "word2vec binary", request)


def _add_rows(rows: RowCollector, tokens: list[bytes], raw: list[bytes], dim: int) -> None:
    if not tokens:
        return
    vectors = np.frombuffer(b"".join(raw), dtype="<f4").astype(np.float32, copy=False).reshape(-1, dim)
    finite = finite_rows(vectors)
    for row in np.flatnonzero(~finite).tolist():
        token = tokens[row].decode("utf-8", "replace")
        rows.reject("NaN or infinite", f"the row of {token!r} is NaN or infinite")
    kept = [token for token, is_finite in zip(tokens, finite.tolist(), strict=True) if is_finite]
    rows.add(kept, vectors[finite])
