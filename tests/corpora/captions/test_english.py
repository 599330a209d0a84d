"""English captions: articles, and subject and verb."""

from __future__ import annotations

import re

from embinit.corpora.captions import pairs

from .grammar_tables import read

SENTENCES = [english for _, english in pairs(5000, 41, "train")]
SINGULAR, PLURAL = set(), set()
for _entries in (*read("nouns").values(), *read("places").values()):
    for _data in _entries.values():
        for _form in _data["en"]:
            if "/" in _form:
                SINGULAR.add(_form.split("/")[0])
                PLURAL.add(_form.split("/")[1])
PLURAL -= SINGULAR


def wrong(sentence: str) -> list[str]:
    found = []
    text = sentence[0].lower() + sentence[1:]
    for article, word in re.findall(r"\b(an?) ([\w-]+)", text):
        if (article == "an") != (word[0] in "aeiou" and word != "uniform"):
            found.append(f"{article} {word}")
    for phrase in re.findall(r"\ban? ((?:[\w-]+ )*?[\w-]+)(?= (?:is|are|in|on|at|with|wearing|and)\b)", text):
        if phrase in PLURAL:
            found.append(f"a {phrase}")
    start = re.split(r"^.*?, (?=(?:an?|the|two|three|four|five|several|some|many|[a-z]+) )", text)[-1]
    verb = re.match(r"(an?|two|three|four|five|several|some|many) ((?:(?! and | is | are ).)*?) (is|are)\b", start)
    if verb and not re.search(r",| who | that ", verb[0]) and (verb[1] in ("a", "an")) != (verb[3] == "is"):
        found.append(verb[0])
    there = re.match(r"there (is|are) (an?|two|three|four|five|several|some|many)\b", text)
    if there and (there[1] == "is") != (there[2] in ("a", "an")):
        found.append(there[0])
    return found


def test_articles_and_verbs_agree() -> None:
    assert not [(sentence, found) for sentence in SENTENCES if (found := wrong(sentence))][:5]


def test_sentences_begin_with_a_capital_and_end_with_a_full_stop() -> None:
    assert all(re.fullmatch(r"[A-Z][^.]*[a-zé]\.", sentence) and "  " not in sentence for sentence in SENTENCES)


def test_the_check_notices() -> None:
    for right, spoilt in ((" an ", " a "), (" is ", " are "), (" are ", " is ")):
        changed = [s.replace(right, spoilt, 1) for s in SENTENCES if right in s and " and " not in s and "," not in s]
        assert len(changed) > 100
        assert sum(bool(wrong(s)) for s in changed) > 0.6 * len(changed)
    assert wrong("An man is sleeping.")
    assert wrong("There are a dog in the park.")
