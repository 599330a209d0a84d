"""The lexicon's files: nothing twice, nothing empty, nothing that leads nowhere, enough for every topic."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .grammar_tables import read

CLASSES = {**read("nouns"), **read("places")}
NOUNS: dict[str, Any] = {name: data for entries in CLASSES.values() for name, data in entries.items()}
VERBS = read("verbs")
ADJECTIVES = read("adjectives")
WORDS = read("words")
TOPICS = read("topics")["topics"]
TAGS = set(CLASSES) | set(NOUNS) | {tag for data in NOUNS.values() for tag in data.get("is", "").split()}
TAGS |= {tag.removesuffix("_many") for tag in TAGS}


def test_there_are_enough_entries_and_none_twice() -> None:
    assert len(NOUNS) == sum(len(entries) for entries in CLASSES.values()) >= 250
    assert len(VERBS) >= 110
    assert len(ADJECTIVES["adjectives"]) >= 80
    for entries in (NOUNS, VERBS, ADJECTIVES["adjectives"]):
        both = Counter((tuple(data["en"]), tuple(data["de"])) for data in entries.values())
        twice = [forms for forms, count in both.items() if count > 1]
        assert len(twice) <= 3, twice  # a verb with one form for different objects


def test_no_form_is_empty() -> None:
    for entries in (NOUNS, VERBS, ADJECTIVES["adjectives"], WORDS["adverbs"], WORDS["times"], WORDS["reasons"]):
        for name, data in entries.items():
            assert data["en"] and data["de"], name
            for form in (*data["en"], *data["de"]):
                assert all(part.strip() for part in form.replace("|", "/").split("/")), (name, form)


def test_nouns_have_a_gender_and_a_capital_and_both_numbers_or_neither() -> None:
    for name, data in NOUNS.items():
        for form in data["de"]:
            gender, singular, *rest = form.split("/")
            assert gender in ("m", "f", "n", "p"), name
            assert singular[0].isupper() and all(part[0].isupper() or part == "weak" for part in rest), name
            if not data.get("pair"):
                assert bool(rest) == ("/" in data["en"][0]), name
            if "weak" in rest:
                assert gender == "m" and rest[0].endswith("n"), name


def test_verbs_have_all_their_forms() -> None:
    for name, data in VERBS.items():
        for form in data["en"]:
            assert 3 <= len(form.split("/")) <= 4 and form.split("/")[2].split()[0].endswith("ing"), name
        for form in data["de"]:
            assert 2 <= len(form.rpartition("|")[2].split("/")) <= 3, name


def test_what_verbs_and_adjectives_ask_for_exists() -> None:
    groups = ADJECTIVES["groups"]
    for name, data in VERBS.items():
        for key in ("who", "object", "to", "with"):
            assert set(data.get(key, "").split()) <= TAGS, (name, key)
        assert set(data.get("in", "").split()) <= set(TOPICS), name
        assert set(data.get("clash", "").split()) <= set(ADJECTIVES["adjectives"]), name
    for name, data in ADJECTIVES["adjectives"].items():
        assert set(data["of"].split()) <= TAGS | set(groups), name
    for group in groups.values():
        assert set(group.split()) <= TAGS
    for name, data in NOUNS.items():
        assert set(data.get("in", "").split()) <= set(TOPICS), name
        for key in ("at", "seat", "bed", "top", "swim", "ski", "skate", "to", "path", "dive", "fly"):
            assert set(data.get(key, "").split()) <= set(WORDS["prepositions"]), (name, key)
    for name, data in (*WORDS["times"].items(), *WORDS["reasons"].items()):
        assert set((data.get("only", "") + " " + data.get("not", "")).split()) <= set(TOPICS), name
        assert set(data.get("for", "").split()) <= set(VERBS), name


def test_every_topic_has_people_things_places_and_verbs_of_its_own() -> None:
    for topic in TOPICS:
        count = {
            kind: sum(topic in d.get("in", "").split() for d in entries.values()) for kind, entries in CLASSES.items()
        }
        assert count["person"] >= 2, topic
        assert count["place"] >= 2, topic
        assert sum(count.values()) >= 15, topic
        assert sum(topic in data.get("in", "").split() for data in VERBS.values()) >= 8, topic
