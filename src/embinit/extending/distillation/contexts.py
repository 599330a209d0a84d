"""Sentences that hold new tokens: cut from text, or made from words of the old vocabulary if there is no text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from embinit.errors import EmbinitError
from embinit.extending.tokenizers import backend, bare
from embinit.text.markers import looks_special, scheme_of, strip_marker
from embinit.text.vocabulary import read_lines

_BATCH = 1000
#: A context holds at most this many tokens before its new token, and after it.
_WINDOW = 20
#: The most tokens of a context, by either tokenizer.
_LONGEST = 96
#: Words of the old vocabulary in a made context, at least and fewer than.
_FEWEST, _MOST = 3, 10
#: The n-th word of the old vocabulary is drawn with a weight of 1 / (n + this): vocabularies list common words first.
_RANK = 20
#: Fewer words than this cannot fill sentences.
_LEAST_WORDS = 20
#: Sentences for tokenizers that know these English words; `{w}` is the new word, other names are words of the vocabulary.
_TEMPLATES = (
    "The {w} is a {x}.", "A {x} with a {w} is {y}.", "{w} and {x} are in the {y}.", "He said that the {x} {w} was {y}.",
    "They {w} the {x} in the {y}.", "There is a {w} on the {x}.", "I think it is {w}.", "A man is {w} a {x}.",
    "The {x} of {w} was a {y}.", "{w}", "two {w} and one {x}", "In {x}, {w} says {y} to {z}.", "A {w} {x} {y} near the {z}.",
)  # fmt: skip
_ENGLISH = ("the", "is", "and", "was", "with", "there", "they")

#: Lines of text, or files that hold them.
Text = str | Path


@dataclass(frozen=True)
class PairedSentence:
    """A sentence by the new and by the old tokenizer."""

    new_ids: tuple[int, ...]
    old_ids: tuple[int, ...]
    #: positions of the new and of the old tokenizer at which the same part of the sentence ends
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Contexts:
    """The sentences that rows are fitted on."""

    contexts: tuple[PairedSentence, ...]
    from_text: int
    made: int
    #: new tokens that occur in the text
    in_text: int


def text_lines(text: Text | Iterable[Text]) -> Iterator[str]:
    """Yield lines: strings are lines, and paths are files of lines. A first string that names a file is an error."""
    for place, part in enumerate([text] if isinstance(text, str | Path) else text):
        if isinstance(part, Path):
            yield from read_lines([part])
            continue
        if place == 0 and os.path.isfile(part):  # noqa: PTH113 - Path.is_file raises an error on a long line
            raise EmbinitError(
                f"text: a string is a line of text, and {part!r} is a file; give Path({part!r}) to read it"
            )
        yield from str(part).splitlines()


def gather(
    old: Any,
    new: Any,
    words: Mapping[int, str],
    *,
    text: Iterable[str] | None,
    per_token: int,
    rng: np.random.Generator,
    longest: int = _LONGEST,
) -> Contexts:
    """Return contexts for new tokens: at most `per_token` of the text for each, and made ones for tokens that need more.

    Parameters
    ----------
    old, new
        The old and the new tokenizer, fast ones of transformers.
    words
        The new tokens' texts by id. Empty ones and signs get no made contexts.
    text
        Lines, or None. A made context replaces a line that the text does not have.
    per_token
        The number of contexts for each token.
    rng
        The generator of all choices.
    longest
        The most tokens of a context.

    Returns
    -------
    Contexts
        The contexts.

    Raises
    ------
    EmbinitError
        If the text holds no new token, or no context can be made.
    """
    from_text: list[str] = []
    counts = dict.fromkeys(words, 0)
    if text is not None:
        from_text = _cut_from(new, text, counts, per_token, rng)
        if not from_text:
            raise EmbinitError(
                "the text holds none of the new tokens, so nothing can be fitted on it; give text in which they occur, or "
                "no text"
            )
    in_text = sum(count > 0 for count in counts.values())
    lacking = [words[i] for i, count in counts.items() for _ in range(per_token - count) if _is_word(words[i])]
    made = make_contexts(old, lacking, rng) if can_make(old) or text is None else []
    paired = [
        context
        for context in pair(old, new, [*from_text, *made])
        if max(len(context.new_ids), len(context.old_ids)) <= longest and context.pairs
    ]
    return Contexts(tuple(paired), len(from_text), len(made), in_text)


def _cut_from(
    new: Any, lines: Iterable[str], counts: dict[int, int], per_token: int, rng: np.random.Generator
) -> list[str]:
    """Return parts of lines around new tokens, and count the tokens in them."""
    inner, parts = bare(new), []
    remaining = (line for line in lines if line.strip())
    while batch := list(islice(remaining, _BATCH)):
        for line, encoding in zip(batch, inner.encode_batch(batch, add_special_tokens=False), strict=True):
            ids, end = encoding.ids, 0
            for place, token_id in enumerate(ids):
                if place < end or counts.get(token_id, per_token) >= per_token:
                    continue
                before, after = rng.integers(2, _WINDOW, 2)
                start, end = max(0, end, place - int(before)), min(len(ids), place + 1 + int(after))
                for each in set(ids[start:end]) & counts.keys():
                    counts[each] += 1
                parts.append(line[encoding.offsets[start][0] : encoding.offsets[end - 1][1]])
    return parts


def make_contexts(old: Any, words: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return a sentence around each word: by turns an English one, if the tokenizer knows English, and random words."""
    known = _plain_words(old)
    if len(known) < _LEAST_WORDS:
        raise EmbinitError(
            "the tokenizer's vocabulary has too few whole words to make sentences of; give text with the new tokens"
        )
    weights = 1 / (np.arange(len(known)) + _RANK)
    drawn = iter(rng.choice(len(known), (_MOST + 1) * len(words), p=weights / weights.sum()).tolist())
    english = set(_ENGLISH) <= set(known)
    contexts = []
    for turn, word in enumerate(words):
        if english and turn % 2 == 0:
            template = _TEMPLATES[int(rng.integers(len(_TEMPLATES)))]
            contexts.append(template.format(w=word, **{name: known[next(drawn)] for name in "xyz"}))
            continue
        sentence = [known[next(drawn)] for _ in range(int(rng.integers(_FEWEST, _MOST)))]
        sentence.insert(int(rng.integers(len(sentence) + 1)), word)
        contexts.append(" ".join(sentence) + ".")
    return contexts


def _is_word(text: str) -> bool:
    return any(char.isalnum() for char in text)


def can_make(tokenizer: Any) -> bool:
    """Return whether a tokenizer has enough whole words to make sentences of."""
    return len(_plain_words(tokenizer)) >= _LEAST_WORDS


def _plain_words(tokenizer: Any) -> list[str]:
    """Return the whole words of a vocabulary, in the order of their ids."""
    vocabulary = backend(tokenizer).get_vocab(with_added_tokens=False)
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    scheme = scheme_of(tokens)
    texts = (strip_marker(token, scheme) for token in tokens if not looks_special(token))
    return list(dict.fromkeys(text for text, begins in texts if begins and len(text) > 1 and text.isalpha()))


def pair(old: Any, new: Any, texts: Sequence[str]) -> list[PairedSentence]:
    """Return each text by both tokenizers, with the positions at which the same part of it ends."""
    encoded = [bare(tokenizer).encode_batch(list(texts)) for tokenizer in (new, old)]
    contexts = []
    for ours, theirs in zip(*encoded, strict=True):
        ends = {
            end: place
            for place, (start, end) in enumerate(theirs.offsets)
            if not theirs.special_tokens_mask[place] and end > start
        }
        last = {
            end: place
            for place, (start, end) in enumerate(ours.offsets)
            if not ours.special_tokens_mask[place] and end > start
        }
        pairs = tuple((place, ends[end]) for end, place in last.items() if end in ends)
        contexts.append(PairedSentence(tuple(ours.ids), tuple(theirs.ids), pairs))
    return contexts
