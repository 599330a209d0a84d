"""New tokens as users give them: read from files, checked, and spelled as the tokenizer normalizes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.format import plural
from embinit.text.vocabulary import read_lines


def read_words(path: Path) -> tuple[list[str], dict[str, str] | None]:
    """Return the tokens of a file, and the tokens or phrases that follow them.

    A line holds a token, or a token, a tab and an existing token or a phrase. Empty lines are skipped. Without tabs, the
    second value is None.
    """
    lines = [line.strip() for line in read_lines([path]) if line.strip()]
    if not lines:
        raise EmbinitError(f"{path} has no tokens; give one token per line")
    pairs = [line.partition("\t") for line in lines]
    named = {word.strip(): text.strip() for word, tab, text in pairs if tab}
    return [word.strip() for word, _, _ in pairs], named or None


def check_words(
    words: Sequence[str],
    *,
    normalize: Callable[[str], str],
    are_known: Callable[[Sequence[str]], Sequence[bool]],
    rows: int,
    skip_known: bool = False,
) -> tuple[list[str], list[str]]:
    """Return the new tokens in the tokenizer's spelling, and those that were skipped.

    Parameters
    ----------
    words
        The tokens that were asked for.
    normalize
        The tokenizer's normalization of a word (lower case, no accents).
    are_known
        Whether the tokenizer has each word as one token already.
    rows
        The number of rows of the model; more new tokens than that are refused.
    skip_known
        Whether tokens that exist already are left out; otherwise they are an error.

    Returns
    -------
    tuple
        The new tokens, and the tokens that exist already.

    Raises
    ------
    EmbinitError
        If a token is empty, has spaces, is given twice or exists already, or nothing is left to add.
    """
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise EmbinitError("tokens must be a list of words, for example tokens=['transistor', 'graphene']")
    if not words:
        raise EmbinitError("there are no tokens to add; give at least one")
    if len(words) > rows:
        raise EmbinitError(
            f"{len(words):,} new tokens are more than the model's {rows:,} rows; choose the words that are frequent in "
            "your text, or give a whole new tokenizer"
        )
    blank = [place for place, word in enumerate(words) if not word.strip()]
    if blank:
        raise EmbinitError(f"token {blank[0] + 1} is empty; remove it")
    spaced = [word for word in words if len(word.split()) > 1 or word != word.strip()]
    if spaced:
        shown, verb = list(map(repr, spaced)), "has" if len(spaced) == 1 else "have"
        raise EmbinitError(f"{_counted(shown, 'token')} {verb} spaces; a token is a single word")
    spelled = [normalize(word) for word in words]
    _check_spelling(words, spelled)
    known = [word for word, exists in zip(spelled, are_known(spelled), strict=True) if exists]
    if known and not skip_known:
        given = {spelling: word for word, spelling in zip(words, spelled, strict=True)}
        shown = [repr(word) if given[word] == word else f"{given[word]!r} normalized to {word!r}" for word in known]
        raise EmbinitError(
            f"{_counted(shown, 'token')} {'exists' if len(known) == 1 else 'exist'} already; leave them out, or skip them "
            "with skip_known=True (--skip-known)"
        )
    excluded = set(known)
    unknown = [word for word in spelled if word not in excluded]
    if not unknown:
        raise EmbinitError("the tokenizer has all of these tokens already, so there is nothing to add")
    return unknown, known


def _check_spelling(words: Sequence[str], spelled: Sequence[str]) -> None:
    first: dict[str, str] = {}
    for word, spelling in zip(words, spelled, strict=True):
        if not spelling.strip() or len(spelling.split()) > 1:
            text = "nothing" if not spelling.strip() else f"{spelling!r}, which has spaces"
            raise EmbinitError(f"the tokenizer normalizes {word!r} to {text}; leave it out")
        if spelling in first:
            other = first[spelling]
            reason = (
                "twice" if other == word else f"and {word!r}, which the tokenizer normalizes to the same {spelling!r}"
            )
            raise EmbinitError(f"the tokens contain {other!r} {reason}; give each token once")
        first[spelling] = word


def _counted(shown: Sequence[str], noun: str) -> str:
    """Return `2 tokens ('a', 'b')`."""
    examples = ", ".join(shown[:3]) + (" …" if len(shown) > 3 else "")
    return f"{plural(len(shown), noun)} ({examples})"
