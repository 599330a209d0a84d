"""Vectors that GloVe learns from the generated captions carry meaning: words of one topic are near each other."""

from __future__ import annotations

import tomllib
from importlib import resources
from itertools import islice

import numpy as np

from embinit.corpora import captions
from embinit.glove import train


def topics_of_nouns() -> dict[str, str]:
    """Return the English nouns that belong to one topic alone."""
    text = resources.files("embinit.corpora.captions").joinpath("nouns.toml").read_text("utf-8")
    nouns: dict[str, str] = {}
    for entries in tomllib.loads(text).values():
        for entry in entries.values():
            topics = entry.get("in", "").split()
            if len(topics) == 1:
                nouns[entry["en"][0].partition("/")[0].lower()] = topics[0]
    return nouns


def test_words_of_one_topic_are_nearer_than_words_of_two() -> None:
    lines = list(islice(captions.stream("en", 3), 30_000))
    made = train(
        (line.replace(".", " ").replace(",", " ") for line in lines), dim=50, lower=True, x_max=10, threads=1, epochs=15
    )
    index = made.vocabulary.index
    topics = {word: topic for word, topic in topics_of_nouns().items() if word in index}
    assert len(topics) > 40
    rows = made.vectors[[index[word] for word in topics]].astype(np.float64)
    rows -= made.vectors.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    similar = rows @ rows.T
    names = np.array(list(topics.values()))
    same = names[:, None] == names[None]
    np.fill_diagonal(same, False)
    other = ~same & ~np.eye(len(names), dtype=bool)
    assert similar[same].mean() > similar[other].mean() + 0.2
    np.fill_diagonal(similar, -1)
    nearest = similar.argmax(axis=1)
    assert (names[nearest] == names).mean() > 0.3
