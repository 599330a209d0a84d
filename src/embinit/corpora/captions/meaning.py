"""What a caption says, before it is said in a language; choices of words are made here, so that both sides follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embinit.corpora.captions.entries import Adjective, Noun, Phrase, Preposition, Topic, Verb

Determiner = Literal["a", "the", "bare", "number", "owner", "no"]


@dataclass(slots=True)
class Thing:
    """One or more of a noun; en and de say which synonym."""

    noun: Noun
    en: int
    de: int
    plural: bool
    determiner: Determiner
    adjectives: tuple[tuple[Adjective, int, int], ...] = ()
    number: tuple[str, str, float] | None = None
    #: who it belongs to: m, f, p (several), or the animal's gender after an a
    owner: str = ""
    #: `a group of`
    group: bool = False
    attribute: At | Doing | None = None

    @property
    def gender(self) -> str:
        """Return the German gender, p in the plural."""
        return "p" if self.plural or self.noun.de_plural else self.noun.de[self.de].gender

    @property
    def sex(self) -> str:
        """Return m, f, p, a + German gender for animals, or nothing where no pronoun is natural."""
        if self.plural:
            return "p"
        if self.noun.sex == "g":
            return self.gender
        return "a" + self.gender if self.noun.sex == "a" else self.noun.sex


@dataclass(slots=True)
class Both:
    """Two things joined by and."""

    first: Thing
    second: Thing


@dataclass(slots=True)
class At:
    """A preposition with what it governs."""

    preposition: Preposition
    thing: Thing


@dataclass(slots=True)
class Doing:
    """An attribute that is a clause about the thing; worn things can be said with a preposition instead."""

    clause: Clause
    worn: At | None
    en: Literal["who", "ing", "short"]
    de: Literal["who", "short"]


@dataclass(slots=True)
class Clause:
    """Who does what, how, when and where."""

    subject: Thing | Both
    verb: Verb
    en: int
    de: int
    object: Thing | None = None
    receiver: Thing | None = None
    place: At | None = None
    direction: At | None = None
    tool: At | None = None
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
    place: At | None = None
    reason: tuple[Phrase, int, int] | None = None
    #: which of the German ways to say `there is`
    way: float = 0.0


def several(subject: Thing | Both) -> bool:
    """Return whether German takes the verb's plural."""
    return isinstance(subject, Both) or ((subject.plural and not subject.group) or subject.noun.de_plural)
