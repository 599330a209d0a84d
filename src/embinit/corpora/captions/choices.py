"""The bags of entries that a scene draws from: by topic, by verb and by noun."""

from __future__ import annotations

from functools import cache

from embinit.corpora.captions.entries import Adjective, Bag, Noun, Phrase, Topic, Verb, by_topic
from embinit.corpora.captions.lexicon import lexicon


@cache
def nouns_for(tags: frozenset[str], topic: str) -> Bag[tuple[Noun, bool]]:
    """Return the nouns with any of the tags, weighted by topic, each with whether it must be plural."""
    many = {f"{tag}_many" for tag in tags}
    nouns = [noun for noun in lexicon().nouns.values() if tags & noun.tags or many & noun.tags]
    return by_topic((((noun, not tags & noun.tags), noun.topics, noun.often) for noun in nouns), topic)


@cache
def places_for(key: str, topic: str) -> Bag[Noun]:
    """Return the nouns that have this place key, weighted by topic; nouns of the kind `place` weigh more."""
    nouns = [noun for noun in lexicon().nouns.values() if key in noun.places]
    return by_topic(
        ((noun, noun.topics, noun.often * (0.25 if key == "at" and noun.kind != "place" else 1)) for noun in nouns),
        topic,
    )


@cache
def verbs_for(topic: str, flag: str = "") -> Bag[Verb]:
    """Return the verbs of a topic, weighted; only the verbs with the flag, if one is given."""
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
    return Bag(
        (adverb, adverb.often)
        for adverb in lexicon().adverbs.values()
        if verb.kind & frozenset(adverb.data["of"].split())
    )


@cache
def times_for(topic: Topic, front: bool) -> Bag[Phrase]:
    """Return the phrases of time and weather that fit a topic."""
    return Bag(
        (time, time.often)
        for time in lexicon().times.values()
        if time.fits(topic.name, topic.outdoors) and (front or not time.data.get("front"))
    )


@cache
def numerals() -> Bag[tuple[str, str, float]]:
    """Return the numerals, weighted by frequency."""
    return Bag((entry, entry[2]) for entry in lexicon().numerals.values())


@cache
def topics() -> Bag[Topic]:
    """Return the topics, weighted by frequency."""
    return Bag((topic, topic.often) for topic in lexicon().topics.values())
