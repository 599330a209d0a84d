"""What happens in a scene: things and clauses that fit its topic."""

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
from embinit.corpora.captions.meaning import At, Both, Clause, Determiner, Doing, Thing, several

#: How often none, one, two or three adjectives stand before a noun, by what it does in the sentence.
_ADJECTIVES = {
    "subject": (0.36, 0.84, 0.98),
    "object": (0.42, 0.91, 0.996),
    "place": (0.58, 0.985, 1.0),
    "worn": (0.22, 0.90, 0.995),
    "plain": (0.80, 0.99, 1.0),
}
#: Synonyms: the first of a list is taken this often.
_FIRST = 0.8
#: What can be his or hers, and what people have along.
_OWNED = frozenset({"clothes", "pet", "family", "companion", "belonging"})
_ALONG = frozenset({"bag", "umbrella", "camera", "backpack", "basket", "suitcase", "bicycle"})
#: What several people have one each of.
_EACH = frozenset({"clothes", "rideable", "mount"})


class Scene:
    """One scene: draws things and clauses of its topic."""

    __slots__ = ("lexicon", "roll", "topic")

    def __init__(self, topic: Topic, roll: Roll) -> None:
        self.topic, self.roll = topic, roll
        self.lexicon: Lexicon = lexicon()

    def which(self, count: int) -> int:
        """Return which of some synonyms is said."""
        if count == 1 or self.roll() < _FIRST:
            return 0
        return 1 + int(self.roll() * (count - 1))

    def phrase(self, phrase: Phrase) -> tuple[Phrase, int, int]:
        """Return a phrase with its synonyms chosen."""
        return phrase, self.which(len(phrase.en)), self.which(len(phrase.de))

    def adjectives(self, noun: Noun, role: str) -> tuple[tuple[Adjective, int, int], ...]:
        """Return up to three adjectives, one a slot, in order."""
        roll = self.roll()
        count = sum(roll > bound for bound in _ADJECTIVES[role])
        bag = adjectives_for(noun)
        if not count or not bag:
            return ()
        drawn: dict[int, Adjective] = {}
        for _ in range(count):
            adjective = bag.draw(self.roll)
            drawn.setdefault(adjective.slot, adjective)
        return tuple((drawn[s], self.which(len(drawn[s].en)), self.which(len(drawn[s].de))) for s in sorted(drawn))

    def thing(self, noun: Noun, role: str, determiner: Determiner, plural: bool = False, owner: str = "") -> Thing:
        """Return a noun with adjectives, its synonyms chosen."""
        en, de = self.which(len(noun.en)), self.which(len(noun.de))
        return Thing(noun, en, de, plural, determiner, self.adjectives(noun, role), owner=owner)

    def counted(self, noun: Noun, role: str, numbers: float) -> Thing:
        """Return several of a noun, with a number or without."""
        it = self.thing(noun, role, "bare", plural=True)
        if self.roll() < numbers:
            it.determiner, it.number = "number", numerals().draw(self.roll)
        return it

    def subject(self, verb: Verb) -> Thing | Both:
        """Return someone who does this."""
        bag = nouns_for(verb.who, self.topic.name)
        noun, only_plural = bag.draw(self.roll)
        roll = self.roll()
        many = "many" in verb.flags
        unit = "unit" in noun.tags or "unit_audience" in noun.tags
        it: Thing
        if roll < (0.45 if many and not unit else 0.07):
            other, plurals = bag.draw(self.roll)
            if other is not noun and not (plurals or only_plural):
                first, second = self.single(noun), self.single(other)
                second.determiner = first.determiner
                return Both(first, second)
        if only_plural or (not unit and (many or self.roll() < 0.2)):
            it = self.counted(noun, "subject", 0.75)
            if noun.kind == "person" and it.determiner == "bare" and self.roll() < 0.4:
                it.group = True
            elif it.determiner == "bare" and self.roll() < 0.35:
                it.determiner = "the"
        else:
            it = self.single(noun)
        it.attribute = self.attribute(it, verb)
        if verb.clash and it.adjectives:
            it.adjectives = tuple(entry for entry in it.adjectives if entry[0].name not in verb.clash)
        return it

    def single(self, noun: Noun) -> Thing:
        """Return one of a noun, mostly not spoken of before."""
        return self.thing(noun, "subject", "the" if self.roll() < 0.12 else "a")

    def attribute(self, it: Thing, verb: Verb) -> At | Doing | None:
        """Return what someone wears, has along or is doing besides, or nothing."""
        roll = self.roll()
        if "plain" in verb.flags or roll > (0.5 if it.noun.kind == "person" else 0.1):
            return None
        if roll < 0.34 and "garment" not in verb.object and self.dressed(it):
            return self.worn(it)
        if it.noun.kind == "person" and roll < 0.4 and not it.group and "infant" not in it.noun.tags:
            along = _ALONG if self.roll() < 0.6 else frozenset({"dog"})
            return At(self.lexicon.prepositions["with"], self.thing(self.draw(along), "object", "a"))
        if not verb.flags & {"base", "still"}:
            return None
        clause = self.about(it, verb, "still" if "base" in verb.flags else "base")
        if clause is not None and "still" in clause.verb.flags:
            clause.place = None
        return None if clause is None else Doing(clause, None, "ing" if self.roll() < 0.3 else "who", "who")

    def dressed(self, it: Thing) -> bool:
        """Return whether one can say what they wear."""
        return it.noun.kind == "person" and not it.noun.tags & {"infant", "unit"}

    def worn(self, it: Thing) -> Doing:
        """Return what someone wears."""
        tags = {"top"} if self.roll() < 0.6 else {"headwear", "garment"}
        if it.sex == "f":
            tags = tags | {"womenswear"}
        noun = nouns_for(frozenset(tags), self.topic.name).draw(self.roll)[0]
        while "womenswear" in noun.tags and it.sex != "f":
            noun = nouns_for(frozenset(tags), self.topic.name).draw(self.roll)[0]
        plural = it.plural and not noun.mass
        clothes = self.thing(noun, "worn", "bare" if noun.mass or plural else "a", plural)
        clause = Clause(it, self.lexicon.verbs["wear"], 0, 0, clothes)
        short = At(self.lexicon.prepositions["with" if "headwear" in noun.tags else "in"], clothes)
        en = self.roll()
        return Doing(
            clause,
            short,
            "ing" if en < 0.35 else "short" if en < 0.9 else "who",
            "who" if self.roll() < 0.2 else "short",
        )

    def about(self, it: Thing | Both, besides: Verb, flag: str, plain: bool = False) -> Clause | None:
        """Return something else that these do, or nothing where no verb was found."""
        who = [it] if isinstance(it, Thing) else [it.first, it.second]
        single = isinstance(it, Thing) and not it.plural
        for _ in range(6):
            verb = verbs_for(self.topic.name, flag).draw(self.roll)
            fits = all(verb.who & one.noun.tags for one in who)
            if (plain and verb.object & {"person", "animal"}) or (verb.go and besides.place == "seat"):
                continue
            if fits and verb is not besides and not ("many" in verb.flags and single) and "silent" not in verb.flags:
                return self.clause(verb, it, short=True)
        return None

    def clause(self, verb: Verb, subject: Thing | Both | None = None, short: bool = False) -> Clause:
        """Return a whole clause; a short one has no adverb, tool or time."""
        roll = self.roll
        who = self.subject(verb) if subject is None else subject
        it = Clause(who, verb, self.which(len(verb.en)), self.which(len(verb.de)), place_late=roll() < 0.5)
        if verb.object:
            it.object = self.object(verb, who)
        if verb.to:
            it.receiver = self.receiver(verb, who)
        if verb.go and (roll() < 0.85 or not verb.object):
            it.direction = self.where(verb.go[int(roll() * len(verb.go))], it.object, who)
        elif verb.place != "none" and ("must" in verb.flags or roll() < self.placed(it, short)):
            it.place = self.where(verb.place, it.object, who)
        if not short:
            if verb.tool and roll() < 0.2:
                it.tool = At(self.lexicon.prepositions["with"], self.thing(self.draw(verb.tool), "object", "a"))
            self.dress(it, who)
        if it.object is not None and it.object.noun.kind in ("person", "animal"):
            self.describe(it, it.object)
        return it

    def describe(self, it: Clause, whom: Thing) -> None:
        """Say more of the one it is done to, where the clause has room for it."""
        roll = self.roll()
        if roll < 0.22 and self.dressed(whom):
            whom.attribute = self.worn(whom)
        elif roll > 0.7 and not (it.place or it.direction or it.tool or it.verb.de[it.de].prefix):
            clause = self.about(whom, it.verb, "base" if self.roll() < 0.6 else "still", plain=True)
            if clause is not None:
                whom.attribute = Doing(clause, None, "who", "who")

    def placed(self, it: Clause, short: bool) -> float:
        """Return how likely a place is said."""
        about = it.subject.attribute if isinstance(it.subject, Thing) else None
        if isinstance(about, Doing) and not short and (about.clause.place or about.clause.direction):
            return 0.0
        return 0.4 if short else 0.68 if it.object is not None else 0.92

    def dress(self, it: Clause, who: Thing | Both) -> None:
        """Add an adverb and a time to a clause, where they fit."""
        roll = self.roll()
        single = isinstance(who, Thing) and not who.plural
        bag = adverbs_for(it.verb)
        if bag and roll < 0.2:
            adverb = bag.draw(self.roll)
            unit = isinstance(who, Thing) and (who.group or "unit" in who.noun.tags)
            if not adverb.data.get("many" if single else "one") and not unit:
                it.adverb = self.phrase(adverb)
        elif roll > 0.9:
            it.time = self.phrase(times_for(self.topic, False).draw(self.roll))

    def draw(self, tags: frozenset[str]) -> Noun:
        """Return a noun with any of the tags."""
        return nouns_for(tags, self.topic.name).draw(self.roll)[0]

    def object(self, verb: Verb, who: Thing | Both) -> Thing:
        """Return what it is done to; not what does it, if that can be helped."""
        doers = {who.noun} if isinstance(who, Thing) else {who.first.noun, who.second.noun}
        hers = isinstance(who, Both) or who.sex in ("f", "p")
        noun, only_plural = nouns_for(verb.object, self.topic.name).draw(self.roll)
        for _ in range(4):
            if noun not in doers and (hers or "womenswear" not in noun.tags):
                break
            noun, only_plural = nouns_for(verb.object, self.topic.name).draw(self.roll)
        if "bare" in verb.flags:
            return self.thing(noun, "plain", "a")
        owner = "p" if isinstance(who, Both) else who.sex
        roll = self.roll() * (0.8 if "one" in verb.flags else 1)
        if noun.mass:
            return self.thing(noun, "object", "the" if noun.kind == "place" else "bare")
        if noun.kind == "place":
            return self.thing(noun, "place", "the" if roll < max(0.4, noun.the) else "a")
        if owner and noun.tags & _OWNED and "seller" not in verb.who and roll < 0.25 + 0.5 * ("family" in noun.tags):
            each = owner == "p" and isinstance(who, Thing) and not noun.tags & {"pet", "parent", "ball"}
            return self.thing(noun, "object", "owner", each, owner)
        if several(who) and noun.tags & _EACH:
            return self.thing(noun, "object", "bare", plural=True)
        if only_plural or (roll > 0.84 and not noun.pair):
            return self.counted(noun, "object", 0.5)
        if "silent" in verb.flags and roll > 0.77 and not noun.pair:
            return self.thing(noun, "plain", "no")
        return self.thing(noun, "object", "the" if 0.25 < roll < 0.42 and "silent" not in verb.flags else "a")

    def receiver(self, verb: Verb, who: Thing | Both) -> Thing:
        """Return who gets it."""
        noun = self.draw(verb.to)
        owner = "p" if isinstance(who, Both) else who.sex
        if noun.tags & _OWNED and owner and not (isinstance(who, Thing) and who.group):
            return self.thing(noun, "plain", "owner", owner=owner)
        return self.thing(noun, "plain", "the" if self.roll() < 0.25 else "a")

    def where(self, key: str, *besides: Thing | Both | None) -> At:
        """Return a place of this key with one of its prepositions; not what the clause is about, if that can be helped."""
        bag = places_for(key, self.topic.name)
        taken = [it.noun for it in besides if isinstance(it, Thing)]
        crowded = any(it is not None and (isinstance(it, Both) or it.plural) for it in besides)
        noun = bag.draw(self.roll)
        for _ in range(4):
            if noun not in taken and not (crowded and "oneseat" in noun.tags):
                break
            noun = bag.draw(self.roll)
        prepositions = noun.places[key]
        preposition = self.lexicon.prepositions[prepositions[int(self.roll() * len(prepositions))]]
        definite = self.roll() < noun.the
        return At(preposition, self.thing(noun, "place", "the" if definite or noun.mass else "a"))
