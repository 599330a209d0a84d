"""Scenes: things and clauses drawn to fit a topic."""

from __future__ import annotations

from embinit.corpora.captions.choices import (
    adjectives_for,
    adverbs_for,
    nouns_for,
    numerals,
    places_for,
    times_for,
    verbs_for,
)
from embinit.corpora.captions.entries import Adjective, Lexicon, Noun, Phrase, Roll, Topic, Verb
from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import (
    AttributeClause,
    Clause,
    Determiner,
    PrepositionalPhrase,
    Thing,
    TwoThings,
    takes_plural,
)

#: The bounds between none, one, two and three adjectives before a noun, by its role in the sentence.
_ADJECTIVES = {
    "subject": (0.36, 0.84, 0.98),
    "object": (0.42, 0.91, 0.996),
    "place": (0.58, 0.985, 1.0),
    "worn": (0.22, 0.90, 0.995),
    "plain": (0.80, 0.99, 1.0),
}
#: The share of the first of several synonyms.
_FIRST = 0.8
#: Things that take a possessive, and things that people carry.
_OWNED = frozenset({"clothes", "pet", "family", "companion", "belonging"})
_ALONG = frozenset({"bag", "umbrella", "camera", "backpack", "basket", "suitcase", "bicycle"})
#: Things of which each of several people has one.
_EACH = frozenset({"clothes", "rideable", "mount"})


class Scene:
    """A scene, which draws the things and clauses of its topic."""

    __slots__ = ("lexicon", "roll", "topic")

    def __init__(self, topic: Topic, roll: Roll) -> None:
        self.topic, self.roll = topic, roll
        self.lexicon: Lexicon = lexicon()

    def synonym(self, count: int) -> int:
        """Return the number of a synonym."""
        if count == 1 or self.roll() < _FIRST:
            return 0
        return 1 + int(self.roll() * (count - 1))

    def phrase(self, phrase: Phrase) -> tuple[Phrase, int, int]:
        """Return a phrase with its synonyms chosen."""
        return phrase, self.synonym(len(phrase.en)), self.synonym(len(phrase.de))

    def adjectives(self, noun: Noun, role: str) -> tuple[tuple[Adjective, int, int], ...]:
        """Return up to three adjectives in order, at most one of each slot, with their synonyms chosen."""
        roll = self.roll()
        count = sum(roll > bound for bound in _ADJECTIVES[role])
        bag = adjectives_for(noun)
        if not count or not bag:
            return ()
        drawn: dict[int, Adjective] = {}
        for _ in range(count):
            adjective = bag.draw(self.roll)
            drawn.setdefault(adjective.slot, adjective)
        return tuple((drawn[s], self.synonym(len(drawn[s].en)), self.synonym(len(drawn[s].de))) for s in sorted(drawn))

    def thing(self, noun: Noun, role: str, determiner: Determiner, plural: bool = False, owner: str = "") -> Thing:
        """Return a noun with adjectives, with its synonyms chosen."""
        en, de = self.synonym(len(noun.en)), self.synonym(len(noun.de))
        return Thing(noun, en, de, plural, determiner, self.adjectives(noun, role), owner=owner)

    def plural_thing(self, noun: Noun, role: str, numbers: float) -> Thing:
        """Return more than one of a noun; `numbers` is the share of nouns with a numeral."""
        thing = self.thing(noun, role, "bare", plural=True)
        if self.roll() < numbers:
            thing.determiner, thing.number = "number", numerals().draw(self.roll)
        return thing

    def subject(self, verb: Verb) -> Thing | TwoThings:
        """Return a subject for a verb."""
        bag = nouns_for(verb.who, self.topic.name)
        noun, only_plural = bag.draw(self.roll)
        roll = self.roll()
        many = "many" in verb.flags
        unit = "unit" in noun.tags or "unit_audience" in noun.tags
        thing: Thing
        if roll < (0.45 if many and not unit else 0.07):
            other, plurals = bag.draw(self.roll)
            if other is not noun and not (plurals or only_plural):
                first, second = self.single_thing(noun), self.single_thing(other)
                second.determiner = first.determiner
                return TwoThings(first, second)
        if only_plural or (not unit and (many or self.roll() < 0.2)):
            thing = self.plural_thing(noun, "subject", 0.75)
            if noun.kind == "person" and thing.determiner == "bare" and self.roll() < 0.4:
                thing.group = True
            elif thing.determiner == "bare" and self.roll() < 0.35:
                thing.determiner = "the"
        else:
            thing = self.single_thing(noun)
        thing.attribute = self.draw_attribute(thing, verb)
        if verb.clash and thing.adjectives:
            thing.adjectives = tuple(entry for entry in thing.adjectives if entry[0].name not in verb.clash)
        return thing

    def single_thing(self, noun: Noun) -> Thing:
        """Return one of a noun, mostly with an indefinite article."""
        return self.thing(noun, "subject", "the" if self.roll() < 0.12 else "a")

    def draw_attribute(self, thing: Thing, verb: Verb) -> PrepositionalPhrase | AttributeClause | None:
        """Return clothes, a companion or a second activity of a thing, or nothing."""
        roll = self.roll()
        if "plain" in verb.flags or roll > (0.5 if thing.noun.kind == "person" else 0.1):
            return None
        if roll < 0.34 and "garment" not in verb.object and self.can_wear(thing):
            return self.clothing(thing)
        if thing.noun.kind == "person" and roll < 0.4 and not thing.group and "infant" not in thing.noun.tags:
            along = _ALONG if self.roll() < 0.6 else frozenset({"dog"})
            return PrepositionalPhrase(
                self.lexicon.prepositions["with"], self.thing(self.draw_noun(along), "object", "a")
            )
        if not verb.flags & {"base", "still"}:
            return None
        clause = self.other_activity(thing, verb, "still" if "base" in verb.flags else "base")
        if clause is not None and "still" in clause.verb.flags:
            clause.place = None
        return None if clause is None else AttributeClause(clause, None, "ing" if self.roll() < 0.3 else "who", "who")

    def can_wear(self, thing: Thing) -> bool:
        """Return whether clothes can be mentioned."""
        return thing.noun.kind == "person" and not thing.noun.tags & {"infant", "unit"}

    def clothing(self, wearer: Thing) -> AttributeClause:
        """Return a clause about clothes."""
        tags = {"top"} if self.roll() < 0.6 else {"headwear", "garment"}
        if wearer.sex == "f":
            tags = tags | {"womenswear"}
        noun = nouns_for(frozenset(tags), self.topic.name).draw(self.roll)[0]
        while "womenswear" in noun.tags and wearer.sex != "f":
            noun = nouns_for(frozenset(tags), self.topic.name).draw(self.roll)[0]
        plural = wearer.plural and not noun.mass
        clothes = self.thing(noun, "worn", "bare" if noun.mass or plural else "a", plural)
        clause = Clause(wearer, self.lexicon.verbs["wear"], 0, 0, clothes)
        short = PrepositionalPhrase(self.lexicon.prepositions["with" if "headwear" in noun.tags else "in"], clothes)
        en = self.roll()
        return AttributeClause(
            clause,
            short,
            "ing" if en < 0.35 else "short" if en < 0.9 else "who",
            "who" if self.roll() < 0.2 else "short",
        )

    def other_activity(
        self, subject: Thing | TwoThings, besides: Verb, flag: str, plain: bool = False
    ) -> Clause | None:
        """Return another clause about the same subject, or nothing if no verb fits."""
        doers = [subject] if isinstance(subject, Thing) else [subject.first, subject.second]
        single = isinstance(subject, Thing) and not subject.plural
        for _ in range(6):
            verb = verbs_for(self.topic.name, flag).draw(self.roll)
            fits = all(verb.who & doer.noun.tags for doer in doers)
            if (plain and verb.object & {"person", "animal"}) or (verb.go and besides.place == "seat"):
                continue
            if fits and verb is not besides and not ("many" in verb.flags and single) and "silent" not in verb.flags:
                return self.clause(verb, subject, short=True)
        return None

    def clause(self, verb: Verb, subject: Thing | TwoThings | None = None, short: bool = False) -> Clause:
        """Return a clause; a short one has no adverb, tool or time."""
        roll = self.roll
        subject = self.subject(verb) if subject is None else subject
        clause = Clause(subject, verb, self.synonym(len(verb.en)), self.synonym(len(verb.de)), place_late=roll() < 0.5)
        if verb.object:
            clause.object = self.object(verb, subject)
        if verb.to:
            clause.receiver = self.receiver(verb, subject)
        if verb.go and (roll() < 0.85 or not verb.object):
            clause.direction = self.location(verb.go[int(roll() * len(verb.go))], clause.object, subject)
        elif verb.place != "none" and ("must" in verb.flags or roll() < self.place_probability(clause, short)):
            clause.place = self.location(verb.place, clause.object, subject)
        if not short:
            if verb.tool and roll() < 0.2:
                clause.tool = PrepositionalPhrase(
                    self.lexicon.prepositions["with"], self.thing(self.draw_noun(verb.tool), "object", "a")
                )
            self.add_manner_or_time(clause, subject)
        if clause.object is not None and clause.object.noun.kind in ("person", "animal"):
            self.describe_object(clause, clause.object)
        return clause

    def describe_object(self, clause: Clause, thing: Thing) -> None:
        """Add an attribute to the object, if the clause has room for it."""
        roll = self.roll()
        if roll < 0.22 and self.can_wear(thing):
            thing.attribute = self.clothing(thing)
        elif roll > 0.7 and not (clause.place or clause.direction or clause.tool or clause.verb.de[clause.de].prefix):
            activity = self.other_activity(thing, clause.verb, "base" if self.roll() < 0.6 else "still", plain=True)
            if activity is not None:
                thing.attribute = AttributeClause(activity, None, "who", "who")

    def place_probability(self, clause: Clause, short: bool) -> float:
        """Return the probability that the clause names a place."""
        attribute = clause.subject.attribute if isinstance(clause.subject, Thing) else None
        if (
            isinstance(attribute, AttributeClause)
            and not short
            and (attribute.clause.place or attribute.clause.direction)
        ):
            return 0.0
        return 0.4 if short else 0.68 if clause.object is not None else 0.92

    def add_manner_or_time(self, clause: Clause, subject: Thing | TwoThings) -> None:
        """Add an adverb or a time to a clause, if one fits."""
        roll = self.roll()
        single = isinstance(subject, Thing) and not subject.plural
        bag = adverbs_for(clause.verb)
        if bag and roll < 0.2:
            adverb = bag.draw(self.roll)
            unit = isinstance(subject, Thing) and (subject.group or "unit" in subject.noun.tags)
            if not adverb.data.get("many" if single else "one") and not unit:
                clause.adverb = self.phrase(adverb)
        elif roll > 0.9:
            clause.time = self.phrase(times_for(self.topic, False).draw(self.roll))

    def draw_noun(self, tags: frozenset[str]) -> Noun:
        """Return a noun with any of the tags."""
        return nouns_for(tags, self.topic.name).draw(self.roll)[0]

    def object(self, verb: Verb, subject: Thing | TwoThings) -> Thing:
        """Return an object for a verb; the noun of the subject only if five draws give nothing else."""
        doers = {subject.noun} if isinstance(subject, Thing) else {subject.first.noun, subject.second.noun}
        womenswear = isinstance(subject, TwoThings) or subject.sex in ("f", "p")
        noun, only_plural = nouns_for(verb.object, self.topic.name).draw(self.roll)
        for _ in range(4):
            if noun not in doers and (womenswear or "womenswear" not in noun.tags):
                break
            noun, only_plural = nouns_for(verb.object, self.topic.name).draw(self.roll)
        if "bare" in verb.flags:
            return self.thing(noun, "plain", "a")
        owner = "p" if isinstance(subject, TwoThings) else subject.sex
        roll = self.roll() * (0.8 if "one" in verb.flags else 1)
        if noun.mass:
            return self.thing(noun, "object", "the" if noun.kind == "place" else "bare")
        if noun.kind == "place":
            return self.thing(noun, "place", "the" if roll < max(0.4, noun.the) else "a")
        if owner and noun.tags & _OWNED and "seller" not in verb.who and roll < 0.25 + 0.5 * ("family" in noun.tags):
            each = owner == "p" and isinstance(subject, Thing) and not noun.tags & {"pet", "parent", "ball"}
            return self.thing(noun, "object", "owner", each, owner)
        if takes_plural(subject) and noun.tags & _EACH:
            return self.thing(noun, "object", "bare", plural=True)
        if only_plural or (roll > 0.84 and not noun.pair):
            return self.plural_thing(noun, "object", 0.5)
        if "silent" in verb.flags and roll > 0.77 and not noun.pair:
            return self.thing(noun, "plain", "no")
        return self.thing(noun, "object", "the" if 0.25 < roll < 0.42 and "silent" not in verb.flags else "a")

    def receiver(self, verb: Verb, subject: Thing | TwoThings) -> Thing:
        """Return the receiver of an action."""
        noun = self.draw_noun(verb.to)
        owner = "p" if isinstance(subject, TwoThings) else subject.sex
        if noun.tags & _OWNED and owner and not (isinstance(subject, Thing) and subject.group):
            return self.thing(noun, "plain", "owner", owner=owner)
        return self.thing(noun, "plain", "the" if self.roll() < 0.25 else "a")

    def location(self, key: str, *besides: Thing | TwoThings | None) -> PrepositionalPhrase:
        """Return a place of this key with a preposition; a noun of the clause only if five draws give nothing else."""
        bag = places_for(key, self.topic.name)
        taken = [thing.noun for thing in besides if isinstance(thing, Thing)]
        crowded = any(thing is not None and (isinstance(thing, TwoThings) or thing.plural) for thing in besides)
        noun = bag.draw(self.roll)
        for _ in range(4):
            if noun not in taken and not (crowded and "oneseat" in noun.tags):
                break
            noun = bag.draw(self.roll)
        prepositions = noun.places[key]
        preposition = self.lexicon.prepositions[prepositions[int(self.roll() * len(prepositions))]]
        definite = self.roll() < noun.the
        return PrepositionalPhrase(preposition, self.thing(noun, "place", "the" if definite or noun.mass else "a"))
