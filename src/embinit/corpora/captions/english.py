"""A meaning as an English sentence."""

from __future__ import annotations

from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import At, Both, Caption, Clause, Thing

_POSSESSIVES = {"m": "his", "f": "her", "p": "their"}
_PRONOUNS = {"m": "he", "f": "she", "p": "they"}


def sentence(caption: Caption) -> str:
    """Return the English sentence."""
    text = _PATTERNS[caption.pattern](caption)
    return text[0].upper() + text[1:] + "."


def article(word: str) -> str:
    """Return a or an.

    >>> article("old"), article("uniform")
    ('an', 'a')
    """
    return "an" if word[0] in "aeiou" and word.partition(" ")[0] not in lexicon().consonant else "a"


def several(subject: Thing | Both) -> bool:
    """Return whether English takes the verb's plural."""
    return isinstance(subject, Both) or ((subject.plural and not subject.group) or subject.noun.en_plural)


def thing(it: Thing) -> str:
    """Return a noun phrase."""
    plural = it.plural or it.noun.en_plural
    word = it.noun.en[it.en][plural]
    if it.adjectives:
        word = f"{' '.join([adjective.en[en] for adjective, en, _ in it.adjectives])} {word}"
    determiner = it.determiner
    if it.group:
        word = f"a group of {word}"
    elif determiner == "the":
        word = f"the {word}"
    elif determiner == "number" and it.number is not None:
        word = f"{it.number[0]} {word}"
    elif determiner == "owner":
        word = f"{_POSSESSIVES.get(it.owner, 'its')} {word}"
    elif determiner == "no":
        word = f"no {word}"
    elif determiner == "a" and not plural and not it.noun.mass:
        word = f"{article(word)} {word}"
    attribute = it.attribute
    if attribute is None:
        return word
    if isinstance(attribute, At):
        return f"{word} {at(attribute)}"
    if attribute.en == "short" and attribute.worn is not None:
        return f"{word} {at(attribute.worn)}"
    clause = attribute.clause
    if attribute.en == "ing":
        return f"{word} {_predicate(clause, 'ing')}"
    who = "who" if it.noun.kind == "person" else "that"
    return f"{word} {who} {_predicate(clause, 'are' if plural else 'is')}"


def _anyone(it: Thing | Both) -> str:
    return f"{thing(it.first)} and {thing(it.second)}" if isinstance(it, Both) else thing(it)


def at(it: At) -> str:
    """Return a preposition with its noun phrase."""
    return f"{it.preposition.en} {thing(it.thing)}"


def _predicate(clause: Clause, form: str, skip: str = "") -> str:
    """Return verb and all after it; form: is, are, ing (no auxiliary), or the column of the verb's forms."""
    verb = clause.verb
    words = verb.en[clause.en]
    start = [form] if form in ("is", "are") else []
    late = ""
    if clause.adverb is not None:
        phrase, en, _ = clause.adverb
        if phrase.data.get("late"):
            late = phrase.en[en]
        else:
            start.append(phrase.en[en])
    start.append(words[0] if form == "base" else words[1] if form == "third" else words[2])
    it = clause.object if skip != "object" else None
    receiver = thing(clause.receiver) if clause.receiver is not None else ""
    if receiver and "arrow" not in verb.flags:
        start.append(receiver)
    if it is not None:
        start.append(f"the {it.noun.en[it.en][0]}" if "bare" in verb.flags and not it.adjectives else thing(it))
    if receiver and "arrow" in verb.flags:
        start.append(f"to {receiver}")
    if clause.tool is not None:
        start.append(at(clause.tool))
    if late:
        start.append(late)
    if clause.direction is not None:
        start.append(at(clause.direction))
    if clause.place is not None and skip != "place":
        start.append(at(clause.place))
    if clause.time is not None and skip != "time":
        start.append(clause.time[0].en[clause.time[1]])
    return " ".join(start)


def _whole(clause: Clause, skip: str = "", simple: bool = False) -> str:
    many = several(clause.subject)
    form = ("base" if many else "third") if simple else "are" if many else "is"
    return f"{_anyone(clause.subject)} {_predicate(clause, form, skip)}"


def _plain(caption: Caption) -> str:
    assert caption.clause is not None
    return _whole(caption.clause)


def _simple(caption: Caption) -> str:
    assert caption.clause is not None
    return _whole(caption.clause, simple=True)


def _participle(caption: Caption) -> str:
    assert caption.clause is not None
    return f"{_anyone(caption.clause.subject)} {_predicate(caption.clause, 'ing')}"


def _place_first(caption: Caption) -> str:
    assert caption.clause is not None and caption.clause.place is not None
    return f"{at(caption.clause.place)}, {_whole(caption.clause, 'place')}"


def _time_first(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.time is not None
    return f"{clause.time[0].en[clause.time[1]]}, {_whole(clause, 'time')}"


def _and(caption: Caption) -> str:
    assert caption.second is not None
    return f"{_plain(caption)} and {_predicate(caption.second, 'ing')}"


def _while(caption: Caption) -> str:
    assert caption.second is not None
    return f"{_plain(caption)} while {_whole(caption.second)}"


def _while_first(caption: Caption) -> str:
    assert caption.second is not None
    return f"while {_whole(caption.second)}, {_plain(caption)}"


def _because(caption: Caption) -> str:
    assert caption.clause is not None and caption.reason is not None
    subject = caption.clause.subject
    many = several(subject)
    sex = "p" if many else subject.sex if isinstance(subject, Thing) else "p"
    pronoun = _PRONOUNS.get(sex, "it")
    if isinstance(subject, Thing) and subject.group:
        many, pronoun = True, "they"
    reason = caption.reason[0].en[caption.reason[1]]
    return f"{_plain(caption)} {reason.replace('{he}', pronoun).replace('{is}', 'are' if many else 'is')}"


def _purpose(caption: Caption) -> str:
    assert caption.second is not None
    return f"{_plain(caption)} to {_predicate(caption.second, 'base')}"


def _passive(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.object is not None
    be = "are" if several(clause.object) else "is"
    text = f"{thing(clause.object)} {be} being {clause.verb.en[clause.en][3]} by {_anyone(clause.subject)}"
    rest = [at(it) for it in (clause.tool, clause.place) if it is not None]
    return " ".join([text, *rest])


def _there_is(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    return f"{_there(caption.shown)} {at(caption.place)}"


def _there(it: Thing) -> str:
    return f"there {'are' if several(it) else 'is'} {thing(it)}"


def _whom(caption: Caption) -> str:
    assert caption.clause is not None and caption.shown is not None
    pronoun = "whom" if caption.shown.noun.kind == "person" else "that"
    return f"{_there(caption.shown)} {pronoun} {_whole(caption.clause, 'object')}"


def _where(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and caption.shown is not None and clause.place is not None
    return f"{_there(caption.shown)} {clause.place.preposition.en} which {_whole(clause, 'place')}"


def _title(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    return f"{thing(caption.shown)} {at(caption.place)}"


_PATTERNS = {
    "plain": _plain, "simple": _simple, "participle": _participle, "place first": _place_first,
    "time first": _time_first, "and": _and, "while": _while, "while first": _while_first, "because": _because,
    "purpose": _purpose, "passive": _passive, "there is": _there_is, "whom": _whom, "where": _where, "title": _title,
}  # fmt: skip
