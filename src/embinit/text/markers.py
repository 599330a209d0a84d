"""Marks of sub-word schemes on tokens: `▁the`, `Ġthe`, `the</w>` and `the` are the same word."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import cache
from typing import Literal

Scheme = Literal["words", "sentencepiece", "byte-level", "wordpiece", "end-of-word", "subword-nmt"]

_SPECIAL = re.compile(
    r"<(unk|pad|bos|eos|s|/s|mask|sep|cls|extra_id_\d+|unused\d+|eod|eop|endoftext|blank|start_of_turn|end_of_turn)>"
    r"|\[(unk|pad|cls|sep|mask|bos|eos|unused\d+)\]"
    r"|<\|[^|]*\|>"
    r"|<0x[0-9A-F]{2}>",
    re.IGNORECASE,
)


def looks_special(token: str) -> bool:
    """Return whether a token is spelled like a special token: `<pad>`, `[CLS]`, `<|endoftext|>`, `<0x0A>`."""
    return _SPECIAL.fullmatch(token) is not None


def scheme_of(tokens: Iterable[str]) -> Scheme:
    """Return the scheme of a list of tokens. At least one token in 200 must carry its mark; otherwise it is `words`."""
    total = 0
    marked: dict[Scheme, int] = dict.fromkeys(
        ("sentencepiece", "byte-level", "wordpiece", "end-of-word", "subword-nmt"), 0
    )
    for token in tokens:
        total += 1
        if len(token) < 2:
            continue
        if token[0] == "▁":
            marked["sentencepiece"] += 1
        elif token[0] == "Ġ":
            marked["byte-level"] += 1
        elif token.startswith("##") and len(token) > 2:
            marked["wordpiece"] += 1
        elif token.endswith("</w>"):
            marked["end-of-word"] += 1
        elif token.endswith("@@"):
            marked["subword-nmt"] += 1
    best = max(marked, key=lambda scheme: marked[scheme])
    return best if marked[best] > max(1, total / 200) else "words"


def strip_marker(token: str, scheme: Scheme) -> tuple[str, bool]:
    """Return the text of a token without marks, and whether the token can begin a word.

    >>> strip_marker("▁the", "sentencepiece"), strip_marker("##ing", "wordpiece"), strip_marker("ĠfÃ¼r", "byte-level")
    (('the', True), ('ing', False), ('für', True))
    """
    if scheme == "sentencepiece":
        return (token[1:], True) if token.startswith("▁") else (token, False)
    if scheme == "byte-level":
        text = from_byte_level(token)
        return (text[1:], True) if text.startswith(" ") else (text, False)
    if scheme == "wordpiece":
        return (token[2:], False) if token.startswith("##") and len(token) > 2 else (token, True)
    if scheme == "end-of-word":
        return token.removesuffix("</w>"), token.endswith("</w>")
    if scheme == "subword-nmt":
        # The token `king` may continue a word, as in `wal@@ king`. It does not show that, so it is read as a word.
        return token.removesuffix("@@"), not token.endswith("@@")
    return token, True


def add_marker(text: str, begins: bool, scheme: Scheme) -> str:
    """Return the token that a scheme writes for this text: the inverse of `strip_marker`."""
    if scheme == "sentencepiece":
        return "▁" + text if begins else text
    if scheme == "byte-level":
        return to_byte_level(" " + text if begins else text)
    if scheme == "wordpiece":
        return text if begins else "##" + text
    if scheme == "end-of-word":
        return text + "</w>" if begins else text
    if scheme == "subword-nmt":
        return text if begins else text + "@@"
    return text


def inner_pieces(text: str, known: Container[str], scheme: Scheme) -> list[str]:
    """Return known pieces inside words that make up a text or its lower case, the longest first; without them nothing."""
    for spelling in dict.fromkeys((text, text.lower())):
        pieces: list[str] = []
        start = 0
        while start < len(spelling):
            ends = range(len(spelling), start, -1)
            end = next((end for end in ends if add_marker(spelling[start:end], False, scheme) in known), None)
            if end is None:
                break
            pieces.append(add_marker(spelling[start:end], False, scheme))
            start = end
        else:
            return pieces
    return []


def all_markers(text: str, begins: bool) -> tuple[str, ...]:
    """Return the tokens that the schemes write for this text: each result of `add_marker` once.

    >>> all_markers("für", True), all_markers("ing", False)
    (('für', '▁für', 'ĠfÃ¼r', 'für</w>'), ('ing', '##ing', 'ing@@'))
    """
    if begins:
        return text, "▁" + text, to_byte_level(" " + text), text + "</w>"
    in_bytes = to_byte_level(text)
    marked = (text, "##" + text, text + "@@")
    return marked if in_bytes == text else (*marked, in_bytes)


def encode_token(token: str) -> bytes:
    """Return a token as bytes. A lone surrogate, which no file can hold, becomes bytes that match nothing."""
    try:
        return token.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return token.encode("utf-8", "surrogatepass")


@cache
def _byte_table() -> tuple[dict[int, str], dict[str, int]]:
    """Return GPT-2's map from bytes to printable characters, and back. Bytes that do not print move above 255."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {byte: chr(byte) for byte in printable}
    unprintable = [byte for byte in range(256) if byte not in table]
    table.update({byte: chr(256 + place) for place, byte in enumerate(unprintable)})
    return table, {char: byte for byte, char in table.items()}


def to_byte_level(text: str) -> str:
    """Return text in GPT-2's byte-level spelling."""
    if text.isascii() and text.isprintable():  # nearly all tokens; the space is the only character that changes
        return text.replace(" ", "Ġ")
    table = _byte_table()[0]
    return "".join(table[byte] for byte in encode_token(text))


def from_byte_level(token: str) -> str:
    """Return the text of a byte-level token; a token that holds a part of a character is returned unchanged."""
    table = _byte_table()[1]
    try:
        return bytes(table[char] for char in token).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return token
