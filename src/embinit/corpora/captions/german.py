"""German sentences from meanings."""

from __future__ import annotations

from embinit.corpora.captions.german_clauses import (
    contracted,
    finite_verb,
    main_clause,
    middle_field,
    noun_phrase,
    noun_phrases,
    prepositional_phrase,
    subordinate,
    verb_final,
)
from embinit.corpora.captions.inflection import ACC, DAT, GENDERS, NOM, RELATIVE
from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import Caption, Thing, TwoThings, takes_plural

_PRONOUNS = {"m": "er", "f": "sie", "p": "sie", "am": "er", "af": "sie", "an": "es"}


def sentence(caption: Caption) -> str:
    """Return a caption as a German sentence."""
    text = _PATTERNS[caption.pattern](caption).replace(" ,", ",").replace(",,", ",").strip()
    text = text.removesuffix(",")
    return text[0].upper() + text[1:] + "."


def _plain(caption: Caption) -> str:
    assert caption.clause is not None
    return main_clause(caption.clause)


def _place_first(caption: Caption) -> str:
    assert caption.clause is not None and caption.clause.place is not None
    return main_clause(caption.clause, prepositional_phrase(caption.clause.place), skip_place=True)


def _time_first(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.time is not None
    return main_clause(clause, clause.time[0].de[clause.time[2]], skip_time=True)


def _and(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    second = caption.second
    verb = second.verb.de[second.de]
    parts = [
        main_clause(caption.clause),
        "und",
        finite_verb(second),
        *(["sich"] if verb.reflexive else []),
        *middle_field(second),
    ]
    return " ".join([*parts, verb.prefix] if verb.prefix else parts)


def _while(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    return f"{main_clause(caption.clause)} , {subordinate('während', caption.second)}"


def _while_first(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    return main_clause(caption.clause, f"{subordinate('während', caption.second)} ,")


def _because(caption: Caption) -> str:
    assert caption.clause is not None and caption.reason is not None
    subject = caption.clause.subject
    sex = "p" if isinstance(subject, TwoThings) else subject.sex
    if isinstance(subject, Thing) and subject.group:
        sex = "f"
    reason = caption.reason[0].de[caption.reason[2]]
    reason = reason.replace("{er}", _PRONOUNS.get(sex, "er")).replace(
        "{ist}", "sind" if takes_plural(subject) else "ist"
    )
    return f"{main_clause(caption.clause)} , {reason}"


def _purpose(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    verb = caption.second.verb.de[caption.second.de]
    sich = ["sich"] if verb.reflexive else []
    return f"{main_clause(caption.clause)} , {' '.join(['um', *sich, *middle_field(caption.second)])} {verb.zu}"


def _passive(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.object is not None
    agent = noun_phrases(clause.subject, DAT)
    first = clause.subject.first if isinstance(clause.subject, TwoThings) else clause.subject
    definite = first.determiner == "the" and not first.group
    parts = [
        noun_phrase(clause.object, NOM),
        "werden" if takes_plural(clause.object) else "wird",
        contracted("von", agent, definite),
    ]
    return " ".join([*parts, *middle_field(clause, skip_object=True), clause.verb.de[clause.de].participle])


def _there_is(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    thing = caption.shown
    existence = lexicon().existence
    forms = existence.get(thing.noun.name) or existence[thing.noun.kind]
    return f"{prepositional_phrase(caption.place)} {forms[takes_plural(thing)]} {noun_phrase(thing, NOM)}"


def _whom(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and caption.shown is not None
    thing = caption.shown
    pronoun = RELATIVE[ACC][GENDERS.index(thing.gender)]
    relative = verb_final(
        clause, f"{pronoun} {noun_phrases(clause.subject, NOM)}", takes_plural(clause.subject), skip_object=True
    )
    return f"{_there(thing, caption.there_is_roll)} , {relative}"


def _where(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and caption.shown is not None and clause.place is not None
    thing = caption.shown
    start = f"{clause.place.preposition.de} {RELATIVE[DAT][GENDERS.index(thing.gender)]}"
    subject = noun_phrases(clause.subject, NOM)
    relative = verb_final(clause, f"{start} {subject}", takes_plural(clause.subject), skip_place=True)
    return f"{_there(thing, caption.there_is_roll)} , {relative}"


def _there(thing: Thing, roll: float) -> str:
    if roll < 0.45:
        return f"Da {'sind' if takes_plural(thing) else 'ist'} {noun_phrase(thing, NOM)}"
    return f"{'Man sieht' if roll < 0.85 else 'Es gibt'} {noun_phrase(thing, ACC)}"


def _title(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    return f"{noun_phrase(caption.shown, NOM)} {prepositional_phrase(caption.place)}"


_PATTERNS = {
    "plain": _plain, "simple": _plain, "participle": _plain, "place first": _place_first, "time first": _time_first,
    "and": _and, "while": _while, "while first": _while_first, "because": _because, "purpose": _purpose,
    "passive": _passive, "there is": _there_is, "whom": _whom, "where": _where, "title": _title,
}  # fmt: skip
