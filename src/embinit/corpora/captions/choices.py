"""Which entries a scene draws from: bags by topic, by what a verb asks for, by what a noun takes."""

from __future__ import annotations

from functools import cache

from embinit.corpora.captions.entries import Adjective, Bag, Noun, Phrase, Topic, Verb, by_topic
from embinit.corpora.captions.lexicon import lexicon


@cache
def nouns_for(tags: frozenset[str], topic: str) -> Bag[tuple[Noun, bool]]:
    """Return the nouns with any of the tags, weighted by topic, and whether only their plural will do."""
    many = {f"{tag}_many" for tag in tags}
    nouns = [noun for noun in lexicon().nouns.values() if tags & noun.tags or many & noun.tags]
    return by_topic((((noun, not tags & noun.tags), noun.topics, noun.often) for noun in nouns), topic)


@cache
def places_for(key: str, topic: str) -> Bag[Noun]:
    """Return the nouns that have this place key, weighted by topic; places proper come first."""
    nouns = [noun for noun in lexicon().nouns.values() if key in noun.places]
    return by_topic(((n, n.topics, n.often * (0.25 if key == "at" and n.kind != "place" else 1)) for n in nouns), topic)


@cache
def verbs_for(topic: str, flag: str = "") -> Bag[Verb]:
    """Return the verbs of a topic, all or those with a flag."""
    verbs = [verb for verb in lexicon().verbs.values() if not flag or flag in verb.flags]
    return by_topic(((verb, verb.topics, verb.often * (1 if verb.topics else 0.5)) for verb in verbs), topic)


@cache
def adjectives_for(noun: Noun) -> Bag[Adjective]:
    """Return the adjectives that fit a noun."""
    return Bag(
        (adjective, adjective.often) for adjective in lexicon().adjectives.values() if adjective.tags & noun.tags
    )


@cache
def adverbs_for(verb: Verb) -> Bag[Phrase]:
    """Return the adverbs that fit a verb."""
    return Bag((a, a.often) for a in lexicon().adverbs.values() if verb.kind & frozenset(a.data["of"].split()))


@cache
def times_for(topic: Topic, front: bool) -> Bag[Phrase]:
    """Return times and weather that fit a topic."""
    times = lexicon().times.values()
    return Bag((t, t.often) for t in times if t.fits(topic.name, topic.outdoors) and (front or not t.data.get("front")))


@cache
def numerals() -> Bag[tuple[str, str, float]]:
    """Return the numbers by how often they are said."""
    return Bag((entry, entry[2]) for entry in lexicon().numerals.values())


@cache
def topics() -> Bag[Topic]:
    """Return the topics by how often they are shown."""
    return Bag((topic, topic.often) for topic in lexicon().topics.values())
