"""The pieces of a SentencePiece model file, read without the sentencepiece or protobuf packages.

The reader needs two messages of sentencepiece_model.proto: ModelProto.pieces (field 1, repeated), and the text (field 1)
and type (field 3: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte) of each piece.
"""

from __future__ import annotations

from collections.abc import Iterator

from embinit.errors import EmbinitError

_NORMAL, _USER_DEFINED = 1, 4


def pieces(data: bytes, source: str) -> tuple[list[str], frozenset[str]]:
    """Return the pieces in id order, and the special pieces."""
    tokens: list[str] = []
    specials: list[str] = []
    try:
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                inner = dict(_fields(value))
                text = inner[1]
                if not isinstance(text, bytes):
                    raise ValueError
                tokens.append(text.decode("utf-8"))
                if inner.get(3, _NORMAL) not in (_NORMAL, _USER_DEFINED):
                    specials.append(tokens[-1])
    except (IndexError, KeyError, ValueError):
        tokens = []
    if not tokens:
        raise EmbinitError(f"{source} is not a SentencePiece model")
    return tokens, frozenset(specials)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and the value of each field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        else:
            size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(data, at)
            if kind not in (1, 2, 5) or at + size > len(data):
                raise ValueError(f"field of kind {kind}")
            yield key >> 3, data[at : at + size]
            at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")
