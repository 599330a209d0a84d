"""English sentences from meanings."""

from __future__ import annotations

from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import Caption, Clause, PrepositionalPhrase, Thing, TwoThings

_POSSESSIVES = {"m": "his", "f": "her", "p": "their"}
_PRONOUNS = {"m": "he", "f": "she", "p": "they"}


def sentence(caption: Caption) -> str:
    """Return a caption as an English sentence."""
    text = _PATTERNS[caption.pattern](caption)
    return text[0].upper() + text[1:] + "."


def article(word: str) -> str:
    """Return the indefinite article of a word.

    >>> article("old"), article("uniform")
    ('an', 'a')
    """
    return "an" if word[0] in "aeiou" and word.partition(" ")[0] not in lexicon().consonant else "a"


def takes_plural(subject: Thing | TwoThings) -> bool:
    """Return whether the English verb is in the plural."""
    return isinstance(subject, TwoThings) or ((subject.plural and not subject.group) or subject.noun.en_plural)


def noun_phrase(thing: Thing) -> str:
    """Return a noun with its determiner, adjectives and attribute."""
    plural = thing.plural or thing.noun.en_plural
    word = thing.noun.en[thing.en][plural]
    if thing.adjectives:
        word = f"{' '.join([adjective.en[en] for adjective, en, _ in thing.adjectives])} {word}"
    determiner = thing.determiner
    if thing.group:
        word = f"a group of {word}"
    elif determiner == "the":
        word = f"the {word}"
    elif determiner == "number" and thing.number is not None:
        word = f"{thing.number[0]} {word}"
    elif determiner == "owner":
        word = f"{_POSSESSIVES.get(thing.owner, 'its')} {word}"
    elif determiner == "no":
        word = f"no {word}"
    elif determiner == "a" and not plural and not thing.noun.mass:
        word = f"{article(word)} {word}"
    attribute = thing.attribute
    if attribute is None:
        return word
    if isinstance(attribute, PrepositionalPhrase):
        return f"{word} {prepositional_phrase(attribute)}"
    if attribute.en == "short" and attribute.worn is not None:
        return f"{word} {prepositional_phrase(attribute.worn)}"
    clause = attribute.clause
    if attribute.en == "ing":
        return f"{word} {_predicate(clause, 'ing')}"
    who = "who" if thing.noun.kind == "person" else "that"
    return f"{word} {who} {_predicate(clause, 'are' if plural else 'is')}"


def _subject(subject: Thing | TwoThings) -> str:
    if isinstance(subject, TwoThings):
        return f"{noun_phrase(subject.first)} and {noun_phrase(subject.second)}"
    return noun_phrase(subject)


def prepositional_phrase(phrase: PrepositionalPhrase) -> str:
    """Return a preposition with its noun phrase."""
    return f"{phrase.preposition.en} {noun_phrase(phrase.thing)}"


def _predicate(clause: Clause, form: str, skip: str = "") -> str:
    """Return the verb and what follows.

    `form` is the auxiliary `is` or `are`, `ing` (no auxiliary), or a simple form: `base` or `third`. `skip` names a part
    that stands elsewhere.
    """
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
    thing = clause.object if skip != "object" else None
    receiver = noun_phrase(clause.receiver) if clause.receiver is not None else ""
    if receiver and "arrow" not in verb.flags:
        start.append(receiver)
    if thing is not None:
        bare = "bare" in verb.flags and not thing.adjectives
        start.append(f"the {thing.noun.en[thing.en][0]}" if bare else noun_phrase(thing))
    if receiver and "arrow" in verb.flags:
        start.append(f"to {receiver}")
    if clause.tool is not None:
        start.append(prepositional_phrase(clause.tool))
    if late:
        start.append(late)
    if clause.direction is not None:
        start.append(prepositional_phrase(clause.direction))
    if clause.place is not None and skip != "place":
        start.append(prepositional_phrase(clause.place))
    if clause.time is not None and skip != "time":
        start.append(clause.time[0].en[clause.time[1]])
    return " ".join(start)


def _clause(clause: Clause, skip: str = "", simple: bool = False) -> str:
    """Return subject and predicate, in the progressive or the simple present."""
    many = takes_plural(clause.subject)
    form = ("base" if many else "third") if simple else "are" if many else "is"
    return f"{_subject(clause.subject)} {_predicate(clause, form, skip)}"


def _plain(caption: Caption) -> str:
    assert caption.clause is not None
    return _clause(caption.clause)


def _simple(caption: Caption) -> str:
    assert caption.clause is not None
    return _clause(caption.clause, simple=True)


def _participle(caption: Caption) -> str:
    assert caption.clause is not None
    return f"{_subject(caption.clause.subject)} {_predicate(caption.clause, 'ing')}"


def _place_first(caption: Caption) -> str:
    assert caption.clause is not None and caption.clause.place is not None
    return f"{prepositional_phrase(caption.clause.place)}, {_clause(caption.clause, 'place')}"


def _time_first(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and clause.time is not None
    return f"{clause.time[0].en[clause.time[1]]}, {_clause(clause, 'time')}"


def _and(caption: Caption) -> str:
    assert caption.second is not None
    return f"{_plain(caption)} and {_predicate(caption.second, 'ing')}"


def _while(caption: Caption) -> str:
    assert caption.second is not None
    return f"{_plain(caption)} while {_clause(caption.second)}"


def _while_first(caption: Caption) -> str:
    assert caption.second is not None
    return f"while {_clause(caption.second)}, {_plain(caption)}"


def _because(caption: Caption) -> str:
    assert caption.clause is not None and caption.reason is not None
    subject = caption.clause.subject
    many = takes_plural(subject)
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
    be = "are" if takes_plural(clause.object) else "is"
    text = f"{noun_phrase(clause.object)} {be} being {clause.verb.en[clause.en][3]} by {_subject(clause.subject)}"
    phrases = [prepositional_phrase(phrase) for phrase in (clause.tool, clause.place) if phrase is not None]
    return " ".join([text, *phrases])


def _there_is(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    return f"{_there(caption.shown)} {prepositional_phrase(caption.place)}"


def _there(thing: Thing) -> str:
    return f"there {'are' if takes_plural(thing) else 'is'} {noun_phrase(thing)}"


def _whom(caption: Caption) -> str:
    assert caption.clause is not None and caption.shown is not None
    pronoun = "whom" if caption.shown.noun.kind == "person" else "that"
    return f"{_there(caption.shown)} {pronoun} {_clause(caption.clause, 'object')}"


def _where(caption: Caption) -> str:
    clause = caption.clause
    assert clause is not None and caption.shown is not None and clause.place is not None
    return f"{_there(caption.shown)} {clause.place.preposition.en} which {_clause(clause, 'place')}"


def _title(caption: Caption) -> str:
    assert caption.shown is not None and caption.place is not None
    return f"{noun_phrase(caption.shown)} {prepositional_phrase(caption.place)}"


_PATTERNS = {
    "plain": _plain, "simple": _simple, "participle": _participle, "place first": _place_first,
    "time first": _time_first, "and": _and, "while": _while, "while first": _while_first, "because": _because,
    "purpose": _purpose, "passive": _passive, "there is": _there_is, "whom": _whom, "where": _where, "title": _title,
}  # fmt: skip
