"""German noun phrases and clauses, in one module because each can hold the other."""

from __future__ import annotations

from embinit.corpora.captions.inflection import (
    CONTRACTIONS,
    DAT,
    DEFINITE,
    GENDERS,
    MIXED,
    NOM,
    RELATIVE,
    STRONG,
    WEAK,
    like_ein,
)
from embinit.corpora.captions.meaning import Clause, PrepositionalPhrase, Thing, TwoThings, takes_plural

_EIN, _KEIN, _SEIN, _IHR = (
    [[like_ein(stem, case, gender) for gender in GENDERS] for case in range(3)]
    for stem in ("ein", "kein", "sein", "ihr")
)
_DECLINED_NUMBERS = frozenset({"mehrere", "einige", "viele"})
#: Owners whose possessive is `sein`; all others have `ihr`.
_HIS = frozenset({"m", "am", "an"})


def noun_phrase(thing: Thing, case: int) -> str:
    """Return a noun with its determiner, adjectives and attribute in a case."""
    if thing.group:
        return f"{_EIN[case][1]} Gruppe von {_noun_group(thing, DAT)}{_attribute(thing)}"
    return _noun_group(thing, case) + _attribute(thing)


def _noun_group(thing: Thing, case: int) -> str:
    gender = thing.gender
    column = GENDERS.index(gender)
    forms = thing.noun.de[thing.de]
    word = (forms.plural if gender == "p" else forms.singular)[case]
    determiner = thing.determiner
    endings = STRONG
    if determiner == "the":
        first, endings = DEFINITE[case][column], WEAK
    elif determiner == "number" and thing.number is not None:
        first = thing.number[1] + ("n" if case == DAT and thing.number[1] in _DECLINED_NUMBERS else "")
    elif determiner == "bare" or (determiner == "a" and gender == "p"):
        first = ""
    else:
        table = _EIN if determiner == "a" else _KEIN if determiner == "no" else _SEIN if thing.owner in _HIS else _IHR
        first, endings = table[case][column], MIXED
    if thing.adjectives:
        ending = endings[case][column]
        word = f"{' '.join([adjective.de[de][ending] for adjective, _, de in thing.adjectives])} {word}"
    return f"{first} {word}" if first else word


def _attribute(thing: Thing) -> str:
    attribute = thing.attribute
    if attribute is None:
        return ""
    if isinstance(attribute, PrepositionalPhrase):
        return " " + prepositional_phrase(attribute)
    if attribute.de == "short" and attribute.worn is not None:
        return " " + prepositional_phrase(attribute.worn)
    gender = thing.gender
    return f" , {verb_final(attribute.clause, RELATIVE[NOM][GENDERS.index(gender)], gender == 'p')} ,"


def noun_phrases(subject: Thing | TwoThings, case: int) -> str:
    """Return one or two noun phrases in a case."""
    if isinstance(subject, TwoThings):
        return f"{noun_phrase(subject.first, case)} und {noun_phrase(subject.second, case)}"
    return noun_phrase(subject, case)


def prepositional_phrase(phrase: PrepositionalPhrase) -> str:
    """Return a preposition with its noun phrase, contracted if German does so."""
    preposition = phrase.preposition
    text = noun_phrase(phrase.thing, preposition.case)
    if preposition.de:
        text = contracted(preposition.de, text, phrase.thing.determiner == "the")
    return f"{text} {preposition.after}" if preposition.after else text


def contracted(preposition: str, text: str, definite: bool) -> str:
    """Return a preposition and a noun phrase, contracted with its definite article."""
    if definite:
        article, _, rest = text.partition(" ")
        short = CONTRACTIONS.get(f"{preposition} {article}")
        if short:
            return f"{short} {rest}"
    return f"{preposition} {text}"


def middle_field(
    clause: Clause, skip_object: bool = False, skip_place: bool = False, skip_time: bool = False
) -> list[str]:
    """Return the parts between the finite verb and the end of the clause, in order."""
    parts: list[str] = []
    verb = clause.verb
    thing = None if skip_object else clause.object
    late = ""
    if clause.receiver is not None:
        parts.append(noun_phrase(clause.receiver, DAT))
    if thing is not None:
        if verb.prep:
            late = contracted(verb.prep, noun_phrase(thing, verb.case), thing.determiner == "the")
        elif "bare" in verb.flags and not thing.adjectives:
            late = thing.noun.de[thing.de].singular[0]
        elif thing.determiner in ("the", "owner"):
            parts.append(noun_phrase(thing, verb.case))
        else:
            late = noun_phrase(thing, verb.case)
    if clause.time is not None and not skip_time:
        parts.append(clause.time[0].de[clause.time[2]])
    if clause.adverb is not None:
        parts.append(clause.adverb[0].de[clause.adverb[2]])
    place = prepositional_phrase(clause.place) if clause.place is not None and not skip_place else ""
    if late and clause.place_late:
        place, late = late, place
    if place:
        parts.append(place)
    if late:
        parts.append(late)
    if clause.tool is not None:
        parts.append(prepositional_phrase(clause.tool))
    if clause.direction is not None:
        parts.append(prepositional_phrase(clause.direction))
    return parts


def finite_verb(clause: Clause) -> str:
    """Return the finite verb without its prefix."""
    verb = clause.verb.de[clause.de]
    return verb.plural if takes_plural(clause.subject) else verb.singular


def main_clause(clause: Clause, front: str = "", skip_place: bool = False, skip_time: bool = False) -> str:
    """Return a main clause: the verb is second, after the subject or after the part that is put in front."""
    verb = clause.verb.de[clause.de]
    subject = noun_phrases(clause.subject, NOM)
    sich = ["sich"] if verb.reflexive else []
    start = [front, finite_verb(clause), *sich, subject] if front else [subject, finite_verb(clause), *sich]
    parts = start + middle_field(clause, skip_place=skip_place, skip_time=skip_time)
    if verb.prefix:
        parts.append(verb.prefix)
    return " ".join(parts)


def verb_final(clause: Clause, subject: str, plural: bool, skip_object: bool = False, skip_place: bool = False) -> str:
    """Return a clause with its verb at the end; `subject` is a pronoun or a noun phrase."""
    verb = clause.verb.de[clause.de]
    sich = ["sich"] if verb.reflexive else []
    parts = [subject, *sich, *middle_field(clause, skip_object, skip_place)]
    return f"{' '.join(parts)} {verb.joined}{verb.plural if plural else verb.singular}"


def subordinate(conjunction: str, clause: Clause) -> str:
    """Return a clause after a conjunction, with its verb at the end."""
    return f"{conjunction} {verb_final(clause, noun_phrases(clause.subject, NOM), takes_plural(clause.subject))}"
