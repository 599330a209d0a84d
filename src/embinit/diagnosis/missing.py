"""The tokens that a source lacks, the most frequent first, and the likely reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embinit.files import replacing
from embinit.format import plural, printable
from embinit.text.markers import encode_token, scheme_of
from embinit.types import Aligned

#: The number of tokens in the text of a summary, and in JSON.
_SHOWN, _LISTED = 10, 100
#: Longer tokens are cut in a summary.
_LONGEST = 40
#: A reason must explain at least this share of the missing tokens.
_SMALLEST_SHARE = 0.1
_WORD_AND_COUNT = re.compile(r"\S+[ \t]+\d+|\d+[ \t]+\S+")
#: `dog,` `"the` `don't`
_JOINED = re.compile(r"\W*\w[\w'’-]*[.,;:!?…\"”’)\]»]+|[\"“„‘(\[«¿¡]+\w.*|\w+['’](s|t|re|ve|ll|d|m)", re.IGNORECASE)
_ESCAPED = re.compile(r".*(&(apos|quot|amp|lt|gt|#\d+);|@-@).*")


@dataclass(frozen=True)
class Reason:
    """A likely reason why tokens are missing."""

    #: `word count`, `lines`, `case`, `pieces`, `escapes` or `tokenization`
    kind: str
    #: the number of missing tokens that it explains
    tokens: int
    text: str


@dataclass(frozen=True)
class MissingTokens:
    """The tokens that a source lacks."""

    #: the most frequent first; in the order of the vocabulary if no counts are known
    tokens: tuple[str, ...]
    #: the number of times each token occurs in the text; None if it is not known
    counts: tuple[int, ...] | None
    reasons: tuple[Reason, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"MissingTokens({self.first()})" if self.tokens else "MissingTokens(none)"

    def first(self, most: int = _SHOWN) -> str:
        """Return the first tokens in one line, with their counts if these are known."""
        texts = [_shown(token) for token in self.tokens[:most]]
        if self.counts is not None:
            texts = [f"{token} ({count:,})" for token, count in zip(texts, self.counts, strict=False)]
        rest = len(self.tokens) - len(texts)
        return ", ".join(texts) + (f" and {rest:,} more" if rest else "")

    def facts(self) -> list[tuple[str, str]]:
        """Return labels and texts for a summary; nothing if no token is missing."""
        lines = [("missing", self.first())] if self.tokens else []
        return [*lines, *(("likely reason", reason.text) for reason in self.reasons)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the number of tokens, the most frequent of them, and the reasons."""
        counts: Sequence[int | None] = self.counts or [None] * len(self.tokens)
        first = zip(self.tokens[:_LISTED], counts, strict=False)
        return {
            "tokens": len(self.tokens),
            "most frequent": [{"token": token, "count": count} for token, count in first],
            "reasons": [{"kind": reason.kind, "tokens": reason.tokens, "text": reason.text} for reason in self.reasons],
        }

    def write(self, path: Path) -> None:
        r"""Write all tokens, a line each, with their counts after a tab if these are known.

        Tabs and line breaks inside a token become `\t`, `\n` and `\r`.
        """
        lines = [_one_line(token) for token in self.tokens]
        if self.counts is not None:
            lines = [f"{token}\t{count}" for token, count in zip(lines, self.counts, strict=True)]
        with replacing(path) as file:
            file.write(b"".join(encode_token(line) + b"\n" for line in lines))


def missing_tokens(aligned: Aligned) -> MissingTokens:
    """Return the tokens of the vocabulary that the source lacks, without special tokens.

    >>> from embinit.alignment import align
    >>> vectors = align("glove.6B.300d.txt", ["the", "dog,"])                      # doctest: +SKIP
    >>> missing_tokens(vectors).tokens                                              # doctest: +SKIP
    ('dog,',)
    """
    ids = np.array([row for row, kind in enumerate(aligned.kinds) if kind == "missing"], dtype=np.int64)
    counts = None
    if aligned.vocabulary.counts is not None:
        occurrences = aligned.vocabulary.counts[ids]
        order = np.argsort(-occurrences, kind="stable")
        ids, counts = ids[order], tuple(occurrences[order].tolist())
    tokens = tuple(aligned.vocabulary.tokens[row] for row in ids.tolist())
    return MissingTokens(tokens, counts, tuple(_reasons(tokens, aligned)))


def _reasons(tokens: tuple[str, ...], aligned: Aligned) -> Iterator[Reason]:
    """Yield the reasons that explain enough of the missing tokens, each with a remedy."""
    pairs = [token for token in tokens if _WORD_AND_COUNT.fullmatch(token)]
    if _enough(pairs, tokens):
        yield _reason("word count", "a word and its count in one line", pairs, "keep the word alone in each line")
        return
    lines = [token for token in tokens if len(token.split()) > 2]
    if _enough(lines, tokens):
        yield _reason(
            "lines", "lines of text instead of words", lines, "build the vocabulary from the text with --text"
        )
        return
    if tokens and scheme_of(aligned.vocabulary.tokens) != "words" and aligned.vocabulary.split is None:
        remedy = "give the tokenizer's folder or tokenizer.json, so that rows of pieces are composed"
        yield _reason("pieces", "pieces of words", tokens, remedy)
    cased = [token for token in tokens if _found_in_other_case(token, aligned)]
    if _enough(cased, tokens):
        yield _reason("case", "the source has them in another case", cased, "allow other cases (without --no-case)")
    escaped = [token for token in tokens if _ESCAPED.fullmatch(token)]
    if _enough(escaped, tokens):
        yield _reason(
            "escapes", "escapes of the Moses tokenizer", escaped, "unescape the text, for example by sacremoses"
        )
    joined = [token for token in tokens if _JOINED.fullmatch(token) and not _ESCAPED.fullmatch(token)]
    if _enough(joined, tokens):
        remedy = "split the text as the source does, for example with --tokenizer spacy:en"
        yield _reason("tokenization", "another tokenization, which separates words and punctuation", joined, remedy)


def _enough(explained: Sequence[str], tokens: Sequence[str]) -> bool:
    return bool(explained) and len(explained) >= _SMALLEST_SHARE * len(tokens)


def _reason(kind: str, cause: str, tokens: Sequence[str], remedy: str) -> Reason:
    text = f"{cause} ({plural(len(tokens), 'token')}, for example {_shown(tokens[0])}); {remedy}"
    return Reason(kind, len(tokens), text)


def _found_in_other_case(token: str, aligned: Aligned) -> bool:
    """Return whether the source has the token's lower-case form; it is then missing only because of its case."""
    lower = token.lower()
    row = aligned.vocabulary.index.get(lower) if lower != token else None
    return row is not None and bool(aligned.found[row])


def _shown(token: str) -> str:
    """Return a token for a terminal or a page, without characters that control it."""
    text = printable(_one_line(token))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _one_line(token: str) -> str:
    return token.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
