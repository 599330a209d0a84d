"""The split that a caption belongs to, decided by its meaning."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Literal

from embinit.corpora.captions.entries import Noun, Verb
from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import Caption, Clause, PrepositionalPhrase, Thing, TwoThings

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


def caption_split(caption: Caption) -> Split:
    """Return the split of a caption: 90 % train, 5 % valid, 5 % test.

    Only the caption's nouns and verbs decide, each as the class of the entries that it shares a word with. Both languages
    show these classes: two captions with the same German or the same English sentence have the same split.
    """
    classes = _classes()
    key = " ".join(sorted([classes[entry] for entry in content_words(caption)]))
    bucket = hashlib.sha256(key.encode()).digest()[0]
    return "train" if bucket < 230 else "valid" if bucket < 243 else "test"


def content_words(caption: Caption) -> list[Noun | Verb]:
    """Return the nouns and verbs that occur in both languages."""
    entries: list[Noun | Verb] = []
    if caption.clause is not None:
        _add_clause(caption.clause, entries)
    elif caption.shown is not None:
        _add_thing(caption.shown, entries)
    if caption.second is not None:
        _add_clause(caption.second, entries, shared=caption.second.subject is getattr(caption.clause, "subject", None))
    if caption.place is not None:
        _add_thing(caption.place.thing, entries)
    return entries


def _add_clause(clause: Clause, entries: list[Noun | Verb], shared: bool = False) -> None:
    if not shared:
        subject = clause.subject
        for doer in (subject.first, subject.second) if isinstance(subject, TwoThings) else (subject,):
            _add_thing(doer, entries)
    if "silent" not in clause.verb.flags:
        entries.append(clause.verb)
    for thing in (clause.object, clause.receiver):
        if thing is not None:
            _add_thing(thing, entries)
    for phrase in (clause.place, clause.direction, clause.tool):
        if phrase is not None:
            _add_thing(phrase.thing, entries)


def _add_thing(thing: Thing, entries: list[Noun | Verb]) -> None:
    entries.append(thing.noun)
    if isinstance(thing.attribute, PrepositionalPhrase):
        _add_thing(thing.attribute.thing, entries)
    elif thing.attribute is not None:
        _add_clause(thing.attribute.clause, entries, shared=True)


@cache
def _classes() -> dict[Noun | Verb, str]:
    """Return the class of each entry: entries that share a form in either language have the same."""
    entries: dict[str, Noun | Verb] = {f"n:{noun.name}": noun for noun in lexicon().nouns.values()}
    entries |= {f"v:{verb.name}": verb for verb in lexicon().verbs.values()}
    parent = {name: name for name in entries}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    seen: dict[str, str] = {}
    for name, entry in entries.items():
        for form in _forms(entry):
            first, second = sorted((root(name), root(seen.setdefault(form, name))))
            parent[second] = first
    return {entry: root(name) for name, entry in entries.items()}


def _forms(entry: Noun | Verb) -> set[str]:
    if isinstance(entry, Noun):
        german = {f"n de {form}" for noun in entry.de for form in (*noun.singular, *noun.plural)}
        return german | {f"n en {form}" for forms in entry.en for form in forms}
    german = {f"v de {verb.joined}{form}" for verb in entry.de for form in (verb.singular, verb.plural)}
    return german | {f"v en {form}" for forms in entry.en for form in forms if form}
