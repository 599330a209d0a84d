"""Add whole words to a `tokenizer.json` so that every other word keeps its segmentation (docs: decisions/0013).

BPE gets a word into its vocabulary without merges, and finds it because `ignore_merges` looks up whole words first.
WordPiece and Unigram cannot look up whole words; there a word becomes an added token that matches between word boundaries.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from embinit.errors import EmbinitError
from embinit.text.markers import to_byte_level

Content = dict[str, Any]
#: `vocabulary`: byte-level BPE and WordLevel; `isolated`: BPE over whole sentences; `added`: all others
Style = Literal["vocabulary", "isolated", "added"]

_MARK = "▁"
#: A word ends where no letter, digit or underscore follows.
_END = r"(?![\p{L}\p{N}_])"
#: GPT-2's split, which a ByteLevel pre-tokenizer with `use_regex` applies.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class InsertedWords:
    """A tokenizer.json with new words."""

    content: Content
    #: the words as the tokenizer stores them: `Ġword`, `▁word`, `word`
    stored: tuple[str, ...]
    #: whether only `added_tokens` changed, so that every class of tokenizer loads the file alike
    only_added: bool


def style_of(content: Content) -> Style:
    """Return the way in which whole words are added to this tokenizer."""
    model = content["model"]
    plain = not model.get("end_of_word_suffix") and not model.get("continuing_subword_prefix")
    if model["type"] == "WordLevel" or (model["type"] == "BPE" and plain and _is_byte_level(content)):
        return "vocabulary"
    if model["type"] == "BPE" and plain and _marks_spaces(content):
        return "isolated"
    return "added"


def insert_words(content: Content, words: Sequence[str], first_id: int) -> InsertedWords:
    """Return a copy of a tokenizer.json in which each word is one token. The ids count up from `first_id`."""
    content = copy.deepcopy(content)
    style = style_of(content)
    if style == "added":
        return _insert_added(content, words, first_id)
    byte_level = _is_byte_level(content)
    if style == "isolated":
        stored = [_MARK + word for word in words]
        _split_first(content, rf"{_MARK}(?:{trie_pattern(words)}){_END}")
    else:
        stored = [to_byte_level(f" {word}") if byte_level else word for word in words]
    if style == "vocabulary" and byte_level:
        _keep_together(content, words)
    model = content["model"]
    # Ids of added tokens are counted from the size of the vocabulary, so they move unless the vocabulary holds them too.
    model["vocab"].update({entry["content"]: entry["id"] for entry in content.get("added_tokens") or []})
    model["vocab"].update({token: first_id + place for place, token in enumerate(stored)})
    if model["type"] == "BPE":
        model["ignore_merges"] = True
    return InsertedWords(content, tuple(stored), only_added=False)


def _insert_added(content: Content, words: Sequence[str], first_id: int) -> InsertedWords:
    """Append added tokens that match whole words. With ▁ for spaces, they also take the space before them."""
    marks = _marks_spaces(content)
    if marks:
        # The decoder turns ▁ into a space, and an added token has none.
        add = {"type": "Replace", "pattern": {"Regex": f"^(?=(?:{trie_pattern(words)})$)"}, "content": _MARK}
        own = content.get("decoder")
        content["decoder"] = {"type": "Sequence", "decoders": [add, *([own] if own else [])]}
        for metaspace in _parts(content, "pre_tokenizer", "pretokenizers"):
            if metaspace["type"] == "Metaspace" and metaspace.get("prepend_scheme", "always") == "always":
                metaspace["prepend_scheme"] = "first"  # otherwise a comma after a new word becomes `▁,`
    flags = {"single_word": True, "lstrip": marks, "rstrip": False, "normalized": True, "special": False}
    entries = [{"id": first_id + place, "content": word, **flags} for place, word in enumerate(words)]
    content["added_tokens"] = [*(content.get("added_tokens") or []), *entries]
    return InsertedWords(content, tuple(words), only_added=not marks)


def _parts(content: Content, kind: str, inner: str) -> list[Content]:
    """Return the parts of a normalizer, pre-tokenizer or decoder; a sequence may hold sequences."""
    pending, parts = [content.get(kind)], []
    while pending:
        part = pending.pop(0)
        if part is not None:
            pending = [*part.get(inner, []), *pending]
            parts.append(part)
    return parts


def _is_byte_level(content: Content) -> bool:
    return any(part["type"] == "ByteLevel" for part in _parts(content, "pre_tokenizer", "pretokenizers"))


def _marks_spaces(content: Content) -> bool:
    """Return whether the tokenizer writes spaces as ▁, in its pre-tokenizer or in its normalizer."""
    if any(part["type"] == "Metaspace" for part in _parts(content, "pre_tokenizer", "pretokenizers")):
        return True
    return any(
        part["type"] == "Replace" and part.get("content") == _MARK
        for part in _parts(content, "normalizer", "normalizers")
    )


def _split_first(content: Content, pattern: str) -> None:
    """Append a split that isolates the pattern to the pre-tokenizer."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    own = content.get("pre_tokenizer")
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [own, split]} if own else split


def _keep_together(content: Content, words: Sequence[str]) -> None:
    """Let the splitting pattern of a byte-level tokenizer keep words together that it would split: `IL-6`, `p53`."""
    together = [word for word in words if not re.fullmatch(r"[^\W\d_]+", word)]
    if not together:
        return
    first = rf" (?:{trie_pattern(together)}){_END}|"
    for part in _parts(content, "pre_tokenizer", "pretokenizers"):
        if part["type"] == "Split" and "Regex" in part["pattern"]:
            part["pattern"] = {"Regex": first + part["pattern"]["Regex"]}
            return
        if part["type"] == "ByteLevel" and part.get("use_regex", True):
            split = {"type": "Split", "pattern": {"Regex": first + _GPT2}, "behavior": "Isolated", "invert": False}
            own = dict(part)
            part.clear()
            part.update({"type": "Sequence", "pretokenizers": [split, {**own, "use_regex": False}]})
            return
    raise EmbinitError(f"the tokenizer would split {together[0]!r} into words; leave out tokens with signs or digits")


def trie_pattern(words: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these words, the longest first, and shares their beginnings.

    >>> trie_pattern(["car", "cat", "cats"])
    'ca(?:r|t(?:s)?)'
    """
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for char in word:
            node = node.setdefault(char, {})
        node[""] = {}
    return _pattern(root)


def _pattern(node: dict[str, Any]) -> str:
    branches = [re.escape(char) + _pattern(inner) for char, inner in sorted(node.items()) if char]
    if not branches:
        return ""
    ends = "" in node
    if len(branches) == 1 and not ends:
        return branches[0]
    return f"(?:{'|'.join(branches)})" + ("?" if ends else "")
