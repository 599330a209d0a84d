"""Aligned rows of one source for one vocabulary as a file that any machine with numpy can read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from embinit.errors import EmbinitError
from embinit.files import replacing
from embinit.types import KINDS, Aligned, Flags, Kind, Matrix, Origin, Vocabulary, as_matrix

#: The number of values that one byte can hold, and the number of rows that are sampled before all are counted.
_BYTE, _SAMPLE = 256, 500


def write_rows(aligned: Aligned, folder: Path) -> str:
    """Write the found rows below `sources/` in the smallest lossless form; return their fingerprint."""
    from safetensors.numpy import save

    print_of = fingerprint(aligned)
    kinds = np.array([KINDS.index(kind) for kind in aligned.kinds], dtype=np.uint8)
    tensors = {**_packed(aligned.rows), "found": aligned.found.astype(np.uint8), "kinds": kinds}
    with replacing(folder / "sources" / f"{print_of[:16]}.safetensors") as out:
        out.write(save(tensors, metadata={"origin": Path(aligned.origin.source).name, "format": aligned.origin.format}))
    return print_of


def _packed(rows: Matrix) -> dict[str, np.ndarray]:
    """Return rows as float16 if that is lossless, as bytes if there are at most 256 values (8-bit models), or unchanged."""
    with np.errstate(over="ignore"):
        half = rows.astype(np.float16)
    if np.array_equal(half.astype(np.float32), rows):
        return {"rows": half}
    bits = rows.view(np.uint32)  # 0 and -0 count as two values
    if len(np.unique(bits[:_SAMPLE])) <= _BYTE:
        values, codes = np.unique(bits, return_inverse=True)
        if len(values) <= _BYTE:
            return {"codes": codes.reshape(rows.shape).astype(np.uint8), "values": values.view(np.float32)}
    return {"rows": rows}


def _unpacked(tensors: dict[str, np.ndarray]) -> Matrix:
    rows = tensors["rows"] if "rows" in tensors else tensors["values"][tensors["codes"]]
    return as_matrix(rows)


def is_intact(path: Path, expected: str) -> bool:
    """Return whether a file holds the rows with the expected fingerprint."""
    try:
        found, kinds, rows = _content(path)
        return _fingerprint(kinds, found, rows) == expected
    except EmbinitError:
        return False


def _content(path: Path) -> tuple[Flags, list[Kind], Matrix]:
    """Return which tokens have a row, how each was found, and the rows."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
        kinds = [KINDS[i] for i in tensors["kinds"].tolist()]
        found, rows = tensors["found"].astype(bool), _unpacked(tensors)
        if rows.ndim != 2 or found.shape != (len(kinds),) or found.sum() != len(rows):
            raise ValueError("its tensors do not fit together")
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    except (SafetensorError, KeyError, IndexError, TypeError, ValueError) as error:
        raise EmbinitError(f"{path} is damaged: {error}") from None
    return found, kinds, rows


def read_rows(path: Path, vocabulary: Vocabulary, expected: str) -> Aligned:
    """Return aligned rows; an error unless they have the expected fingerprint."""
    found, kinds, rows = _content(path)
    if len(found) != len(vocabulary) or _fingerprint(kinds, found, rows) != expected:
        raise EmbinitError(f"{path} differs from the plan; plan it again")
    vectors = np.zeros((len(found), rows.shape[1]), dtype=np.float32)
    vectors[found] = rows
    return Aligned(vocabulary, vectors, found, tuple(kinds), Origin(path.name, "aligned rows"))


def fingerprint(aligned: Aligned) -> str:
    """Return a checksum of the rows, their tokens' places and the way in which each was found."""
    return _fingerprint(aligned.kinds, aligned.found, aligned.rows)


def _fingerprint(kinds: Sequence[Kind], found: Flags, rows: Matrix) -> str:
    whole = hashlib.sha256(f"{rows.shape[1]} {len(found)}\n".encode())
    whole.update("".join(str(KINDS.index(kind)) for kind in kinds).encode())
    whole.update(found.astype(np.uint8).tobytes())
    whole.update(np.ascontiguousarray(rows, dtype="<f4").tobytes())
    return whole.hexdigest()


def no_rows(vocabulary: Vocabulary, dim: int) -> Aligned:
    """Return an alignment without rows; random rows need only the vocabulary and the dimension."""
    count = len(vocabulary)
    empty: Matrix = np.zeros((count, dim), dtype=np.float32)
    kinds: list[Kind] = ["missing"] * count
    return Aligned(vocabulary, empty, np.zeros(count, dtype=bool), tuple(kinds), Origin("no source", "none"))
