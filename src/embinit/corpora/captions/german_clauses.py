"""German noun phrases and clauses; each can hold the other."""

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
from embinit.corpora.captions.meaning import At, Both, Clause, Thing, several

_EIN, _KEIN, _SEIN, _IHR = (
    [[like_ein(stem, case, gender) for gender in GENDERS] for case in range(3)]
    for stem in ("ein", "kein", "sein", "ihr")
)
_DECLINED_NUMBERS = frozenset({"mehrere", "einige", "viele"})
#: Owners whose thing is `sein`; `ihr` for the others.
_HIS = frozenset({"m", "am", "an"})


def thing(it: Thing, case: int) -> str:
    """Return a noun phrase in a case."""
    if it.group:
        return f"{_EIN[case][1]} Gruppe von {_bare(it, DAT)}{_attribute(it)}"
    return _bare(it, case) + _attribute(it)


def _bare(it: Thing, case: int) -> str:
    gender = it.gender
    column = GENDERS.index(gender)
    forms = it.noun.de[it.de]
    word = (forms.plural if gender == "p" else forms.singular)[case]
    determiner = it.determiner
    endings = STRONG
    if determiner == "the":
        first, endings = DEFINITE[case][column], WEAK
    elif determiner == "number" and it.number is not None:
        first = it.number[1] + ("n" if case == DAT and it.number[1] in _DECLINED_NUMBERS else "")
    elif determiner == "bare" or (determiner == "a" and gender == "p"):
        first = ""
    else:
        table = _EIN if determiner == "a" else _KEIN if determiner == "no" else _SEIN if it.owner in _HIS else _IHR
        first, endings = table[case][column], MIXED
    if it.adjectives:
        ending = endings[case][column]
        word = f"{' '.join([adjective.de[de][ending] for adjective, _, de in it.adjectives])} {word}"
    return f"{first} {word}" if first else word


def _attribute(it: Thing) -> str:
    attribute = it.attribute
    if attribute is None:
        return ""
    if isinstance(attribute, At):
        return " " + at(attribute)
    if attribute.de == "short" and attribute.worn is not None:
        return " " + at(attribute.worn)
    gender = it.gender
    return f" , {end(attribute.clause, RELATIVE[NOM][GENDERS.index(gender)], gender == 'p')} ,"


def anyone(it: Thing | Both, case: int) -> str:
    """Return one or two noun phrases in a case."""
    if isinstance(it, Both):
        return f"{thing(it.first, case)} und {thing(it.second, case)}"
    return thing(it, case)


def at(it: At) -> str:
    """Return a preposition with its noun phrase, contracted where German does so."""
    preposition = it.preposition
    text = thing(it.thing, preposition.case)
    if preposition.de:
        text = join(preposition.de, text, it.thing.determiner == "the")
    return f"{text} {preposition.after}" if preposition.after else text


def join(preposition: str, text: str, definite: bool) -> str:
    """Return a preposition and a noun phrase, contracted with its definite article."""
    if definite:
        article, _, rest = text.partition(" ")
        short = CONTRACTIONS.get(f"{preposition} {article}")
        if short:
            return f"{short} {rest}"
    return f"{preposition} {text}"


def middle(clause: Clause, skip_object: bool = False, skip_place: bool = False, skip_time: bool = False) -> list[str]:
    """Return what stands between the finite verb and the end, in order."""
    parts: list[str] = []
    verb = clause.verb
    it = None if skip_object else clause.object
    late = ""
    if clause.receiver is not None:
        parts.append(thing(clause.receiver, DAT))
    if it is not None:
        if verb.prep:
            late = join(verb.prep, thing(it, verb.case), it.determiner == "the")
        elif "bare" in verb.flags and not it.adjectives:
            late = it.noun.de[it.de].singular[0]
        elif it.determiner in ("the", "owner"):
            parts.append(thing(it, verb.case))
        else:
            late = thing(it, verb.case)
    if clause.time is not None and not skip_time:
        parts.append(clause.time[0].de[clause.time[2]])
    if clause.adverb is not None:
        parts.append(clause.adverb[0].de[clause.adverb[2]])
    place = at(clause.place) if clause.place is not None and not skip_place else ""
    if late and clause.place_late:
        place, late = late, place
    if place:
        parts.append(place)
    if late:
        parts.append(late)
    if clause.tool is not None:
        parts.append(at(clause.tool))
    if clause.direction is not None:
        parts.append(at(clause.direction))
    return parts


def finite(clause: Clause) -> str:
    """Return the finite verb without its prefix."""
    verb = clause.verb.de[clause.de]
    return verb.plural if several(clause.subject) else verb.singular


def main(clause: Clause, front: str = "", skip_place: bool = False, skip_time: bool = False) -> str:
    """Return a main clause: the verb is second, after the subject or after what is put in front."""
    verb = clause.verb.de[clause.de]
    subject = anyone(clause.subject, NOM)
    sich = ["sich"] if verb.reflexive else []
    start = [front, finite(clause), *sich, subject] if front else [subject, finite(clause), *sich]
    parts = start + middle(clause, skip_place=skip_place, skip_time=skip_time)
    if verb.prefix:
        parts.append(verb.prefix)
    return " ".join(parts)


def end(clause: Clause, subject: str, plural: bool, skip_object: bool = False, skip_place: bool = False) -> str:
    """Return a clause with its verb at the end, after a pronoun or a whole subject."""
    verb = clause.verb.de[clause.de]
    sich = ["sich"] if verb.reflexive else []
    parts = [subject, *sich, *middle(clause, skip_object, skip_place)]
    return f"{' '.join(parts)} {verb.joined}{verb.plural if plural else verb.singular}"


def after(conjunction: str, clause: Clause) -> str:
    """Return a clause after a conjunction, with its verb at the end."""
    return f"{conjunction} {end(clause, anyone(clause.subject, NOM), several(clause.subject))}"
