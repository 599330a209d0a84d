"""The entries of the lexicon, and weighted bags to draw them from."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Roll = Callable[[], float]

#: The weight of entries of the scene's topic, the weight of entries of every topic, and the share of other topics.
_OF_TOPIC, _OF_ANY, _OTHER_SHARE = 1.0, 0.6, 0.02


class Bag(Generic[T]):
    """Items with weights, to draw from."""

    __slots__ = ("bounds", "items", "total")

    def __init__(self, weighted: Iterable[tuple[T, float]]) -> None:
        pairs = [(item, weight) for item, weight in weighted if weight > 0]
        self.items = [item for item, _ in pairs]
        self.bounds = list(accumulate(weight for _, weight in pairs))
        self.total = self.bounds[-1] if pairs else 0.0

    def draw(self, roll: Roll) -> T:
        """Return an item; `roll` gives a number in [0, 1)."""
        return self.items[bisect(self.bounds, roll() * self.total)]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, eq=False)
class GermanNoun:
    """A German noun: gender (m, f, n; p if it has no singular) and its forms by case, and by case in the plural."""

    gender: str
    singular: tuple[str, str, str]
    plural: tuple[str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun in both languages, with its classes, topics and places."""

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
    #: always plural in English; always plural in German
    en_plural: bool
    de_plural: bool
    #: m: he; f: she; a: it (an animal); g: by the German gender; empty: no pronoun in the singular
    sex: str


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """The present forms of a German verb, its infinitive with "zu", and its participle if it has a passive."""

    singular: str
    plural: str
    prefix: str
    #: the prefix as it stands before a verb at the end of a clause: `ein` (one word), `Ski ` (two words)
    joined: str
    zu: str
    participle: str
    reflexive: bool


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb in both languages, with the classes of subject, object and place that it takes."""

    name: str
    #: base form, third person, -ing form, participle (or empty)
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
    """An adjective in both languages, its German forms by ending."""

    name: str
    en: tuple[str, ...]
    de: tuple[Mapping[str, str], ...]
    slot: int
    tags: frozenset[str]
    often: float


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """A preposition in both languages, with its German case and the word that German puts after the noun phrase."""

    en: str
    de: str
    case: int
    after: str


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """A fixed adverb, time or reason in both languages, with the topics that it fits."""

    name: str
    en: tuple[str, ...]
    de: tuple[str, ...]
    often: float
    data: Mapping[str, Any]

    def fits(self, topic: str, outdoors: bool) -> bool:
        """Return whether the phrase fits a topic."""
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
    #: words that take "a" although they begin with a vowel letter
    consonant: frozenset[str]


def by_topic(weighted: Iterable[tuple[T, frozenset[str], float]], topic: str) -> Bag[T]:
    """Return a bag for one topic: its entries, the entries of every topic, and a small share of other topics."""
    rows = list(weighted)
    inside = [
        (entry, often * (_OF_TOPIC if topics else _OF_ANY))
        for entry, topics, often in rows
        if not topics or topic in topics
    ]
    outside = [(entry, often) for entry, topics, often in rows if topics and topic not in topics]
    inside_total, outside_total = sum(often for _, often in inside), sum(often for _, often in outside)
    scale = _OTHER_SHARE * inside_total / outside_total if inside_total and outside_total else 1.0
    return Bag([*inside, *((entry, often * scale) for entry, often in outside)])
