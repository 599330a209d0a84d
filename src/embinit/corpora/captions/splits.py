"""Which split a meaning belongs to, whatever words it is said in."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Literal

from embinit.corpora.captions.entries import Noun, Verb
from embinit.corpora.captions.lexicon import lexicon
from embinit.corpora.captions.meaning import At, Both, Caption, Clause, Thing

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


def split_of(caption: Caption) -> Split:
    """Return the split of a caption: 90 % train, 5 % valid, 5 % test.

    It hangs on the caption's nouns and verbs alone, as classes of what shares a word. These can be read off either
    language: two captions with the same German or the same English sentence have the same split.
    """
    of = _classes()
    key = " ".join(sorted([of[entry] for entry in content(caption)]))
    bucket = hashlib.sha256(key.encode()).digest()[0]
    return "train" if bucket < 230 else "valid" if bucket < 243 else "test"


def content(caption: Caption) -> list[Noun | Verb]:
    """Return the nouns and verbs that both languages say."""
    found: list[Noun | Verb] = []
    if caption.clause is not None:
        _clause(caption.clause, found)
    elif caption.shown is not None:
        _thing(caption.shown, found)
    if caption.second is not None:
        _clause(caption.second, found, shared=caption.second.subject is getattr(caption.clause, "subject", None))
    if caption.place is not None:
        _thing(caption.place.thing, found)
    return found


def _clause(clause: Clause, found: list[Noun | Verb], shared: bool = False) -> None:
    if not shared:
        subject = clause.subject
        for one in (subject.first, subject.second) if isinstance(subject, Both) else (subject,):
            _thing(one, found)
    if "silent" not in clause.verb.flags:
        found.append(clause.verb)
    for it in (clause.object, clause.receiver):
        if it is not None:
            _thing(it, found)
    for at in (clause.place, clause.direction, clause.tool):
        if at is not None:
            _thing(at.thing, found)


def _thing(it: Thing, found: list[Noun | Verb]) -> None:
    found.append(it.noun)
    if isinstance(it.attribute, At):
        _thing(it.attribute.thing, found)
    elif it.attribute is not None:
        _clause(it.attribute.clause, found, shared=True)


@cache
def _classes() -> dict[Noun | Verb, str]:
    """Return a name for each entry, the same for entries that share a form in either language."""
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
