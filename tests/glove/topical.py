"""A made text whose words have topics: a line talks of one topic mostly, between words that every topic uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TOPICS, WORDS, COMMON = 6, 12, 15


def topical_text(lines: int = 3000, seed: int = 5) -> list[str]:
    rng = np.random.default_rng(seed)
    made = []
    for topic in rng.integers(0, TOPICS, lines):
        topics = np.where(rng.random(6) < 0.35, topic, rng.integers(0, TOPICS, 6))
        own = [f"t{about}w{word}" for about, word in zip(topics, rng.integers(0, WORDS, 6), strict=True)]
        common = [f"common{word}" for word in rng.integers(0, COMMON, 4)]
        made.append(" ".join(rng.permutation(own + common)))
    return made


def topic_of(token: str) -> int | None:
    return int(token[1]) if token.startswith("t") else None


def separation(tokens: Sequence[str], vectors: np.ndarray) -> tuple[float, float]:
    """Return how often a pair inside a topic is nearer than one across topics, and how often the nearest is inside."""
    rows = [row for row, token in enumerate(tokens) if topic_of(token) is not None]
    topics = np.array([topic_of(tokens[row]) for row in rows])
    unit = vectors[rows] / np.linalg.norm(vectors[rows], axis=1, keepdims=True)
    cosines = unit @ unit.T
    same = topics[:, None] == topics[None, :]
    others = ~np.eye(len(rows), dtype=bool)
    assert (same & others).sum() == TOPICS * WORDS * (WORDS - 1)
    nearest = np.where(others, cosines, -2).argmax(axis=1)
    across = np.sort(cosines[~same])
    below = np.searchsorted(across, cosines[same & others]) / len(across)
    return float(below.mean()), float((topics[nearest] == topics).mean())
