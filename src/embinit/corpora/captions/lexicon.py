"""The bilingual lexicon, read from the TOML files of this folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from embinit.corpora.captions import inflection
from embinit.corpora.captions.entries import (
    Adjective,
    GermanNoun,
    GermanVerb,
    Lexicon,
    Noun,
    Phrase,
    Preposition,
    Topic,
    Verb,
)

_PLACES = ("at", "seat", "bed", "top", "swim", "ski", "skate", "to", "path", "dive", "fly")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("embinit.corpora.captions").joinpath(f"{name}.toml").read_text("utf-8"))


def _words(data: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(str(data.get(key, "")).split())


def _noun(name: str, kind: str, data: Mapping[str, Any]) -> Noun:
    tags = frozenset({name, kind}) | _words(data, "is")
    if data.get("apart"):
        tags -= {kind}
    en = [(*form.split("/"), form)[:2] for form in data["en"]]
    plural = data.get("plural", "")
    sex = "a" if kind == "animal" else "m" if "male" in tags else "f" if "female" in tags else ""
    return Noun(
        name=name,
        kind=kind,
        en=tuple((singular, many) for singular, many in en),
        de=tuple(GermanNoun(*inflection.noun(form)) for form in data["de"]),
        tags=tags,
        topics=_words(data, "in"),
        places={key: tuple(data[key].split()) for key in _PLACES if key in data},
        the=float(data.get("the", 0.2)),
        often=float(data.get("often", 1)),
        mass="/" not in data["en"][0] and not data.get("pair", False),
        pair=bool(data.get("pair", False)),
        en_plural=bool(plural) or bool(data.get("pair", False)),
        de_plural=plural == "both",
        sex=sex if sex or kind != "person" or tags & {"neuter", "unit"} else "g",
    )


def _verb(name: str, data: Mapping[str, Any]) -> Verb:
    flags = ("must", "many", "aim", "aims", "plain", "bare", "arrow", "silent", "base", "still", "one")
    forms = [(*form.split("/"), "")[:4] for form in data["en"]]
    return Verb(
        name=name,
        en=tuple((base, third, ing, participle) for base, third, ing, participle in forms),
        de=tuple(GermanVerb(*inflection.verb(form)) for form in data["de"]),
        topics=_words(data, "in"),
        who=_words(data, "who") or frozenset({"person"}),
        object=_words(data, "object"),
        to=_words(data, "to"),
        tool=_words(data, "with"),
        case=inflection.CASES.index(data.get("case", "acc")),
        prep=data.get("prep", ""),
        place=data.get("place", "none"),
        go=tuple(str(data.get("go", "")).split()),
        kind=_words(data, "kind"),
        often=float(data.get("often", 1)),
        flags=frozenset(flag for flag in flags if data.get(flag)),
        clash=_words(data, "clash"),
    )


def _phrases(data: Mapping[str, Any]) -> dict[str, Phrase]:
    return {n: Phrase(n, tuple(d["en"]), tuple(d["de"]), float(d.get("often", 1)), d) for n, d in data.items()}


def labels() -> tuple[str, ...]:
    """Return the names of the labels of topics, in the order of their numbers."""
    return tuple(_read("topics")["labels"]["names"])


@cache
def lexicon() -> Lexicon:
    """Return the lexicon, read once."""
    classes = {**_read("nouns"), **_read("places")}
    words, topics, adjectives = _read("words"), _read("topics"), _read("adjectives")
    groups: Mapping[str, str] = adjectives["groups"]
    slots = ("opinion", "size", "state", "age", "colour", "material")
    return Lexicon(
        nouns={n: _noun(n, kind, data) for kind, entries in classes.items() for n, data in entries.items()},
        verbs={name: _verb(name, data) for name, data in _read("verbs").items()},
        adjectives={
            name: Adjective(
                name=name,
                en=tuple(data["en"]),
                de=tuple(inflection.adjective(stem, data.get("fixed", False)) for stem in data["de"]),
                slot=slots.index(data["slot"]),
                tags=frozenset(tag for word in data["of"].split() for tag in groups.get(word, word).split()),
                often=float(data["often"]),
            )
            for name, data in adjectives["adjectives"].items()
        },
        adverbs=_phrases(words["adverbs"]),
        prepositions={
            name: Preposition(d["en"], d["de"], inflection.CASES.index(d["case"]), d.get("after", ""))
            for name, d in words["prepositions"].items()
        },
        numerals={name: (d["en"], d["de"], float(d["often"])) for name, d in words["numerals"].items()},
        times=_phrases(words["times"]),
        reasons=_phrases(words["reasons"]),
        existence={kind: (forms.split("/")[0], forms.split("/")[1]) for kind, forms in words["existence"].items()},
        topics={n: Topic(n, d["label"], d["outdoors"], float(d["often"])) for n, d in topics["topics"].items()},
        consonant=frozenset(words["english"]["consonant"]),
    )
