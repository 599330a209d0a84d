"""The lexicon's entries, and bags to draw them from."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Roll = Callable[[], float]

#: Weight of what belongs to the scene's topic and of what belongs to any; the share drawn from other topics.
_ON, _ANY, _LEAK = 1.0, 0.6, 0.02


class Bag(Generic[T]):
    """Things to draw from, by weight."""

    __slots__ = ("bounds", "items", "total")

    def __init__(self, weighted: Iterable[tuple[T, float]]) -> None:
        pairs = [(item, weight) for item, weight in weighted if weight > 0]
        self.items = [item for item, _ in pairs]
        self.bounds = list(accumulate(weight for _, weight in pairs))
        self.total = self.bounds[-1] if pairs else 0.0

    def draw(self, roll: Roll) -> T:
        """Return one of the things."""
        return self.items[bisect(self.bounds, roll() * self.total)]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, eq=False)
class GermanNoun:
    """A German noun: gender (m, f, n; p where it has no singular) and its forms by case, and by case in the plural."""

    gender: str
    singular: tuple[str, str, str]
    plural: tuple[str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun in both languages, with what it counts as and where it is met."""

    name: str
    kind: str
    en: tuple[tuple[str, str], ...]
    de: tuple[GermanNoun, ...]
    tags: frozenset[str]
    topics: frozenset[str]
    #: at, seat, bed, to, path ... -> prepositions
    places: Mapping[str, tuple[str, ...]]
    the: float
    often: float
    mass: bool
    pair: bool
    #: English plural whatever German has; German has no singular
    en_plural: bool
    de_plural: bool
    #: m, f: he, she; a: it; "": not said in the singular
    sex: str


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """Present forms, the infinitive with zu, and the participle where a passive can be made."""

    singular: str
    plural: str
    prefix: str
    #: the prefix before the verb at the clause's end: `ein` joined, `Ski ` apart
    joined: str
    zu: str
    participle: str
    reflexive: bool


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb in both languages, with what it asks of subject, object and place."""

    name: str
    #: base, third person, -ing, participle or nothing
    en: tuple[tuple[str, str, str, str], ...]
    de: tuple[GermanVerb, ...]
    topics: frozenset[str]
    who: frozenset[str]
    object: frozenset[str]
    to: frozenset[str]
    tool: frozenset[str]
    case: int
    prep: str
    place: str
    go: tuple[str, ...]
    kind: frozenset[str]
    often: float
    flags: frozenset[str]
    clash: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective in both languages; German forms by ending."""

    name: str
    en: tuple[str, ...]
    de: tuple[Mapping[str, str], ...]
    slot: int
    tags: frozenset[str]
    often: float


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """A preposition in both languages, with the German case and what German puts after the noun phrase."""

    en: str
    de: str
    case: int
    after: str


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """A fixed adverb, time or reason in both languages, and where it fits."""

    name: str
    en: tuple[str, ...]
    de: tuple[str, ...]
    often: float
    data: Mapping[str, Any]

    def fits(self, topic: str, outdoors: bool) -> bool:
        """Return whether it can be said of this topic."""
        only, never = self.data.get("only", topic).split(), self.data.get("not", "").split()
        return topic in only and topic not in never and (outdoors or not self.data.get("outdoors"))


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A kind of scene."""

    name: str
    label: str
    outdoors: bool
    often: float


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All entries by name."""

    nouns: Mapping[str, Noun]
    verbs: Mapping[str, Verb]
    adjectives: Mapping[str, Adjective]
    adverbs: Mapping[str, Phrase]
    prepositions: Mapping[str, Preposition]
    numerals: Mapping[str, tuple[str, str, float]]
    times: Mapping[str, Phrase]
    reasons: Mapping[str, Phrase]
    existence: Mapping[str, tuple[str, str]]
    topics: Mapping[str, Topic]
    #: words that take `a` in spite of their vowel
    consonant: frozenset[str]


def by_topic(found: Iterable[tuple[T, frozenset[str], float]], topic: str) -> Bag[T]:
    """Return things with their topics and weights as a bag for one topic, with a small share of others."""
    listed = list(found)
    inside = [(it, often * (_ON if topics else _ANY)) for it, topics, often in listed if not topics or topic in topics]
    others = [(it, often) for it, topics, often in listed if topics and topic not in topics]
    total, rest = sum(often for _, often in inside), sum(often for _, often in others)
    scale = _LEAK * total / rest if total and rest else 1.0
    return Bag([*inside, *((it, often * scale) for it, often in others)])
