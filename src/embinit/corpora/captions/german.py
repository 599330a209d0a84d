"""A meaning as a German sentence."""

from __future__ import annotations

from embinit.corpora.captions.german_clauses import after, anyone, at, end, finite, join, main, middle, thing
from embinit.corpora.captions.inflection import ACC, DAT, GENDERS, NOM, RELATIVE
from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import Both, Caption, Thing, several

_PRONOUNS = {"m": "er", "f": "sie", "p": "sie", "am": "er", "af": "sie", "an": "es"}


def sentence(caption: Caption) -> str:
    """Return the German sentence."""
    text = _PATTERNS[caption.pattern](caption).replace(" ,", ",").replace(",,", ",").strip()
    text = text.removesuffix(",")
    return text[0].upper() + text[1:] + "."


def _plain(caption: Caption) -> str:
    assert caption.clause is not None
    return main(caption.clause)


def _place_first(caption: Caption) -> str:
    assert caption.clause is not None and caption.clause.place is not None
    return main(caption.clause, at(caption.clause.place), skip_place=True)


def _time_first(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.time is not None
    return main(clause, clause.time[0].de[clause.time[2]], skip_time=True)


def _and(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    second = caption.second
    verb = second.verb.de[second.de]
    parts = [main(caption.clause), "und", finite(second), *(["sich"] if verb.reflexive else []), *middle(second)]
    return " ".join([*parts, verb.prefix] if verb.prefix else parts)


def _while(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    return f"{main(caption.clause)} , {after('während', caption.second)}"


def _while_first(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    return main(caption.clause, f"{after('während', caption.second)} ,")


def _because(caption: Caption) -> str:
    assert caption.clause is not None and caption.reason is not None
    subject = caption.clause.subject
    sex = "p" if isinstance(subject, Both) else subject.sex
    if isinstance(subject, Thing) and subject.group:
        sex = "f"
    reason = caption.reason[0].de[caption.reason[2]]
    reason = reason.replace("{er}", _PRONOUNS.get(sex, "er")).replace("{ist}", "sind" if several(subject) else "ist")
    return f"{main(caption.clause)} , {reason}"


def _purpose(caption: Caption) -> str:
    assert caption.clause is not None and caption.second is not None
    verb = caption.second.verb.de[caption.second.de]
    sich = ["sich"] if verb.reflexive else []
    return f"{main(caption.clause)} , {' '.join(['um', *sich, *middle(caption.second)])} {verb.zu}"


def _passive(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.object is not None
    agent = anyone(clause.subject, DAT)
    first = clause.subject.first if isinstance(clause.subject, Both) else clause.subject
    definite = first.determiner == "the" and not first.group
    parts = [thing(clause.object, NOM), "werden" if several(clause.object) else "wird", join("von", agent, definite)]
    return " ".join([*parts, *middle(clause, skip_object=True), clause.verb.de[clause.de].participle])


def _there_is(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    it = caption.shown
    ways = lexicon().existence
    forms = ways.get(it.noun.name) or ways[it.noun.kind]
    return f"{at(caption.place)} {forms[several(it)]} {thing(it, NOM)}"


def _whom(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and caption.shown is not None
    it = caption.shown
    pronoun = RELATIVE[ACC][GENDERS.index(it.gender)]
    relative = end(clause, f"{pronoun} {anyone(clause.subject, NOM)}", several(clause.subject), skip_object=True)
    return f"{_look(it, caption.way)} , {relative}"


def _where(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and caption.shown is not None and clause.place is not None
    it = caption.shown
    start = f"{clause.place.preposition.de} {RELATIVE[DAT][GENDERS.index(it.gender)]}"
    subject = anyone(clause.subject, NOM)
    return f"{_look(it, caption.way)} , {end(clause, f'{start} {subject}', several(clause.subject), skip_place=True)}"


def _look(it: Thing, way: float) -> str:
    if way < 0.45:
        return f"Da {'sind' if several(it) else 'ist'} {thing(it, NOM)}"
    return f"{'Man sieht' if way < 0.85 else 'Es gibt'} {thing(it, ACC)}"


def _title(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    return f"{thing(caption.shown, NOM)} {at(caption.place)}"


_PATTERNS = {
    "plain": _plain, "simple": _plain, "participle": _plain, "place first": _place_first, "time first": _time_first,
    "and": _and, "while": _while, "while first": _while_first, "because": _because, "purpose": _purpose,
    "passive": _passive, "there is": _there_is, "whom": _whom, "where": _where, "title": _title,
}  # fmt: skip
