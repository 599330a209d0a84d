"""Captions: scenes in one of the sentence patterns."""

from __future__ import annotations

from functools import cache

from embinit.corpora.captions.choices import nouns_for, times_for, topics, verbs_for
from embinit.corpora.captions.entries import Bag, Phrase, Roll, Topic, Verb
from embinit.corpora.captions.inflection import ACC
from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import AttributeClause, Caption, Clause, Pattern, Thing, TwoThings
from embinit.corpora.captions.scenes import Scene

_PATTERNS: dict[Pattern, float] = {
    "plain": 30, "simple": 8, "participle": 10, "place first": 9, "time first": 9, "and": 8, "while": 7,
    "while first": 3, "because": 4, "purpose": 4, "passive": 4, "there is": 3, "whom": 1.5, "where": 1.5, "title": 3,
}  # fmt: skip
_SHOWN = frozenset({"vehicle", "furniture", "animal", "toy", "tool", "person", "food"})


@cache
def _patterns() -> Bag[Pattern]:
    return Bag(_PATTERNS.items())


@cache
def _reasons(topic: Topic, verb: str) -> Bag[Phrase]:
    reasons = (reason for reason in lexicon().reasons.values() if verb in reason.data["for"].split())
    return Bag((reason, reason.often) for reason in reasons if reason.fits(topic.name, topic.outdoors))


@cache
def _verbs_with_reasons(topic: Topic) -> Bag[Verb]:
    bag = verbs_for(topic.name)
    weights = [b - a for a, b in zip([0.0, *bag.bounds], bag.bounds, strict=False)]
    pairs = zip(bag.items, weights, strict=True)
    return Bag((verb, weight) for verb, weight in pairs if _reasons(topic, verb.name))


def caption(roll: Roll) -> Caption:
    """Return a caption; `roll` gives the random numbers that it is drawn by."""
    scene = Scene(topics().draw(roll), roll)
    pattern = _patterns().draw(roll)
    if pattern in ("there is", "title"):
        return _shown(scene, pattern)
    flag = {"purpose": "aims", "and": "base"}.get(pattern, "")
    bag = _verbs_with_reasons(scene.topic) if pattern == "because" else verbs_for(scene.topic.name, flag)
    verb = bag.draw(roll)
    clause = scene.clause(verb, short=pattern in ("and", "while", "while first", "purpose"))
    return _in_pattern(scene, pattern, clause)


def _in_pattern(scene: Scene, pattern: Pattern, clause: Clause) -> Caption:
    """Return the clause in a pattern, or in the plain pattern if this one does not fit."""
    topic = scene.topic
    if (
        pattern in ("and", "purpose", "place first")
        and isinstance(clause.subject, Thing)
        and _has_activity(clause.subject)
    ):
        clause.subject.attribute = None
    if pattern == "place first" and clause.place is None and clause.direction is None:
        clause.place = scene.location("at", clause.object, clause.subject)
    if pattern == "place first" and clause.place is not None and "plain" not in clause.verb.flags:
        return Caption(pattern, topic, clause)
    if pattern == "time first":
        clause.time = scene.phrase(times_for(topic, True).draw(scene.roll))
        return Caption(pattern, topic, clause)
    if pattern in ("and", "purpose"):
        second = scene.other_activity(clause.subject, clause.verb, "aim" if pattern == "purpose" else "still")
        if second is not None and not (clause.direction and second.direction):
            second.place = None
            return Caption(pattern, topic, clause, second)
    if pattern in ("while", "while first"):
        second = scene.clause(verbs_for(topic.name).draw(scene.roll), short=True)
        if second.verb is not clause.verb and not _same_noun(clause.subject, second.subject):
            if clause.place is not None and second.place is not None and "must" not in second.verb.flags:
                second.place = None
            return Caption(pattern, topic, clause, second)
    if pattern == "because":
        subject = clause.subject
        reason = _reasons(topic, clause.verb.name).draw(scene.roll)
        if not (isinstance(subject, Thing) and not subject.sex and "{he}" in reason.en[0]):
            return Caption(pattern, topic, clause, reason=scene.phrase(reason))
    thing = clause.object
    if pattern == "passive" and thing is not None and clause.verb.en[clause.en][3] and thing.determiner != "owner":
        return _passive(scene, clause)
    if pattern == "whom" and thing is not None and _can_be_shown(clause, thing):
        clause.adverb = clause.time = thing.attribute = None
        return Caption(pattern, topic, clause, shown=thing, there_is_roll=scene.roll())
    if pattern == "where" and clause.place is not None and clause.place.thing.determiner == "a":
        clause.adverb = clause.time = None
        return Caption(pattern, topic, clause, shown=clause.place.thing, there_is_roll=scene.roll())
    attribute = clause.subject.attribute if isinstance(clause.subject, Thing) else None
    if pattern == "participle" and isinstance(attribute, AttributeClause):
        # Two -ing forms in a row read badly.
        pattern = "plain" if attribute.worn is None else pattern
        attribute.en = attribute.en if attribute.worn is None else "short"
    return Caption(pattern if pattern in ("simple", "participle") else "plain", topic, clause)


def _same_noun(first: Thing | TwoThings, second: Thing | TwoThings) -> bool:
    if isinstance(first, TwoThings) or isinstance(second, TwoThings):
        return False
    return first.noun is second.noun and first.plural == second.plural


def _can_be_shown(clause: Clause, thing: Thing) -> bool:
    verb = clause.verb
    plain = not verb.prep and verb.case == ACC and not verb.flags & {"bare", "silent"}
    return plain and thing.determiner in ("a", "number") and not thing.noun.mass


def _has_activity(thing: Thing) -> bool:
    return isinstance(thing.attribute, AttributeClause) and thing.attribute.worn is None


def _passive(scene: Scene, clause: Clause) -> Caption:
    verb = clause.verb
    has_passive = bool(verb.de[clause.de].participle) and not clause.receiver and "silent" not in verb.flags
    if not has_passive or clause.direction is not None or (isinstance(clause.subject, Thing) and clause.subject.group):
        return Caption("plain", scene.topic, clause)
    clause.adverb = clause.time = None
    return Caption("passive", scene.topic, clause)


def _shown(scene: Scene, pattern: Pattern) -> Caption:
    """Return a caption of a thing in its place."""
    noun, only_plural = nouns_for(_SHOWN, scene.topic.name).draw(scene.roll)
    alive = noun.kind in ("person", "animal")
    key = "at" if alive or noun.kind in ("vehicle", "furniture") else "top"
    if noun.mass or noun.pair or (key == "top" and not noun.tags & {"holdable", "edible", "readable"}):
        noun, key = scene.draw_noun(frozenset({"animal"})), "at"
    many = scene.roll() < 0.25 or only_plural
    thing = scene.plural_thing(noun, "subject", 0.8) if many else scene.thing(noun, "subject", "a")
    if scene.can_wear(thing) and scene.roll() < 0.4:
        thing.attribute = scene.clothing(thing)
    return Caption(pattern, scene.topic, shown=thing, place=scene.location(key, thing))
