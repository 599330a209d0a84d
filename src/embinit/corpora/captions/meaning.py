"""The meaning of a caption, common to both languages; synonyms are chosen here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embinit.corpora.captions.entries import Adjective, Noun, Phrase, Preposition, Topic, Verb

Determiner = Literal["a", "the", "bare", "number", "owner", "no"]


@dataclass(slots=True)
class Thing:
    """One or more of a noun; `en` and `de` are the numbers of its synonyms."""

    noun: Noun
    en: int
    de: int
    plural: bool
    determiner: Determiner
    adjectives: tuple[tuple[Adjective, int, int], ...] = ()
    number: tuple[str, str, float] | None = None
    #: the owner: m, f, p (more than one), or `a` and the gender of an animal
    owner: str = ""
    #: `a group of`
    group: bool = False
    attribute: PrepositionalPhrase | AttributeClause | None = None

    @property
    def gender(self) -> str:
        """Return the German gender; p for the plural."""
        return "p" if self.plural or self.noun.de_plural else self.noun.de[self.de].gender

    @property
    def sex(self) -> str:
        """Return m, f, p, or `a` and the German gender of an animal; empty if no pronoun sounds natural."""
        if self.plural:
            return "p"
        if self.noun.sex == "g":
            return self.gender
        return "a" + self.gender if self.noun.sex == "a" else self.noun.sex


@dataclass(slots=True)
class TwoThings:
    """Two things joined by "and"."""

    first: Thing
    second: Thing


@dataclass(slots=True)
class PrepositionalPhrase:
    """A preposition and the thing that it governs."""

    preposition: Preposition
    thing: Thing


@dataclass(slots=True)
class AttributeClause:
    """An attribute that is a clause about the thing; clothes can be a prepositional phrase instead."""

    clause: Clause
    worn: PrepositionalPhrase | None
    en: Literal["who", "ing", "short"]
    de: Literal["who", "short"]


@dataclass(slots=True)
class Clause:
    """A subject with its verb, objects, place, manner and time."""

    subject: Thing | TwoThings
    verb: Verb
    en: int
    de: int
    object: Thing | None = None
    receiver: Thing | None = None
    place: PrepositionalPhrase | None = None
    direction: PrepositionalPhrase | None = None
    tool: PrepositionalPhrase | None = None
    adverb: tuple[Phrase, int, int] | None = None
    time: tuple[Phrase, int, int] | None = None
    #: German puts the place after an indefinite object
    place_late: bool = False


Pattern = Literal[
    "plain", "simple", "participle", "place first", "time first", "and", "while", "while first", "because", "purpose",
    "passive", "there is", "whom", "where", "title",
]  # fmt: skip


@dataclass(slots=True)
class Caption:
    """A sentence's meaning: its pattern, its one or two clauses, or the thing it shows."""

    pattern: Pattern
    topic: Topic
    clause: Clause | None = None
    second: Clause | None = None
    shown: Thing | None = None
    place: PrepositionalPhrase | None = None
    reason: tuple[Phrase, int, int] | None = None
    #: chooses among the German ways to say `there is`, from 0 to 1
    there_is_roll: float = 0.0


def takes_plural(subject: Thing | TwoThings) -> bool:
    """Return whether the German verb is in the plural."""
    return isinstance(subject, TwoThings) or ((subject.plural and not subject.group) or subject.noun.de_plural)
