"""A German sentence cut into noun phrases, preposition phrases, verbs and so on, each with the readings it can have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .grammar_tables import (
    ACCUSATIVE,
    ADJECTIVES,
    ADVERBS,
    AFTER_DER,
    AFTER_EIN,
    AFTER_NOTHING,
    AFTERWORDS,
    BARE,
    DATIVE,
    DER,
    EIN,
    FORMS,
    MASS,
    MUST_CONTRACT,
    NOUNS,
    NUMBERS,
    PARTICIPLES,
    PREFIXES,
    PREPOSITIONS,
    SHORT,
    SOME,
    TWO_WAY,
    Reading,
)

POSSESSIVE = re.compile(r"(ein|kein|sein|ihr)(e|en|em|er|)$")


class Wrong(Exception):
    """The sentence breaks a rule."""


@dataclass
class Chunk:
    kind: str  # np, pp, adverb, verb, sich, und, clause
    text: str
    readings: set[Reading] = field(default_factory=set)
    preposition: str = ""
    after: str = ""
    noun: str = ""


def require(condition: object, message: str) -> None:
    if not condition:
        raise Wrong(message)


# Noun phrases


def _noun_phrase(words: list[str], at: int) -> tuple[Chunk, int] | None:
    start, determiner = at, ""
    if (
        words[at] in NUMBERS | SOME | {word + "n" for word in SOME}
        or words[at] in {f for d in DER.values() for f in d.values()}
        or POSSESSIVE.match(words[at])
    ):
        determiner = words[at]
    at += bool(determiner)
    adjectives = []
    while at < len(words) and words[at] in ADJECTIVES:
        adjectives.append(words[at])
        at += 1
    if at >= len(words) or words[at] not in NOUNS:
        require(not determiner and not adjectives, f"no noun after {' '.join(words[start:at])!r}")
        return None
    text = " ".join(words[start : at + 1])
    readings = {r for r in NOUNS[words[at]] if _fits(r, determiner, adjectives)}
    require(readings, f"{text!r} does not agree")
    if not determiner:
        bare = words[at] in MASS or words[at] in BARE or any(r.gender == "pl" for r in readings)
        require(bare, f"{text!r} has no article")
        if words[at] not in MASS | BARE:
            readings = {r for r in readings if r.gender == "pl"}
    return Chunk("np", text, readings, noun=words[at]), at + 1


def _fits(reading: Reading, determiner: str, adjectives: list[str]) -> bool:
    case, gender = reading.case, reading.gender
    table = AFTER_NOTHING
    if determiner in NUMBERS:
        if gender != "pl":
            return False
    elif determiner.removesuffix("n") in SOME:
        if gender != "pl" or (case == "dat") != determiner.endswith("n"):
            return False
    elif match := POSSESSIVE.match(determiner):
        if match[2] != EIN[case][gender] or (match[1] == "ein" and gender == "pl"):
            return False
        table = AFTER_EIN
    elif determiner:
        if DER[case][gender] != determiner:
            return False
        table = AFTER_DER
    return all(table[case][gender] in ADJECTIVES[adjective] for adjective in adjectives)


# Chunks


def chunks_of(words: list[str]) -> list[Chunk]:
    found: list[Chunk] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "<clause>":
            chunk, at = Chunk("clause", word), at + 1
        elif word in SHORT or word in PREPOSITIONS:
            chunk, at = _prepositional(words, at)
        elif word in ("und", "sich", "da", "man", "es"):
            chunk, at = Chunk(word, word), at + 1
        elif word in ADVERBS:
            chunk, at = Chunk("adverb", word), at + 1
        elif (prefix := _prefix(words, at)) is not None:
            chunk, at = Chunk("prefix", prefix), at + len(prefix.split())
        elif word in FORMS:
            chunk, at = Chunk("verb", word), at + 1
        elif word in PARTICIPLES:
            chunk, at = Chunk("participle", word), at + 1
        else:
            phrase = _noun_phrase(words, at)
            if phrase is None:
                raise Wrong(f"unknown word {word!r}")
            chunk, at = phrase
        if at < len(words) and words[at] in AFTERWORDS and chunk.kind in ("np", "pp"):
            chunk.after = words[at]
            at += 1
            require(
                any(r.case == ("acc" if chunk.kind == "np" else "dat") for r in chunk.readings),
                f"{chunk.text} {chunk.after}",
            )
            chunk.kind = "path"
        found.append(chunk)
    return found


def _prefix(words: list[str], at: int) -> str | None:
    """Return a separable prefix that stands at the end of the clause, or before `und` with a verb."""
    rest = words[at:]
    for prefix in PREFIXES:
        size = len(prefix.split())
        if rest[:size] != prefix.split():
            continue
        if len(rest) == size or rest[size] == "<clause>" or (rest[size] == "und" and rest[size + 1] in FORMS):
            return prefix
    return None


def _prepositional(words: list[str], at: int) -> tuple[Chunk, int]:
    """Return a preposition with its noun phrase; at the end of a clause it can be a separable prefix."""
    prefix = _prefix(words, at)
    if prefix is not None:
        return Chunk("prefix", prefix), at + 1
    preposition, article = SHORT.get(words[at], (words[at], ""))
    rest = ([article] if article else []) + words[at + 1 :]
    require(rest, f"nothing after {preposition!r}")
    require(article or (preposition, rest[0]) not in MUST_CONTRACT, f"{preposition} {rest[0]} is not contracted")
    phrase = _noun_phrase(rest, 0)
    if phrase is None:
        raise Wrong(f"no noun phrase after {preposition!r}")
    chunk, size = phrase
    allowed = {"dat"} if preposition in DATIVE else {"acc"} if preposition in ACCUSATIVE else {"acc", "dat"}
    readings = {r for r in chunk.readings if r.case in allowed}
    require(readings, f"{preposition} governs no case of {chunk.text!r}")
    return Chunk("pp", f"{preposition} {chunk.text}", readings, preposition, noun=chunk.noun), at + size + (not article)


def places(chunk: Chunk) -> bool:
    return chunk.preposition not in TWO_WAY or any(r.case == "dat" for r in chunk.readings)
