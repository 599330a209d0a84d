"""Data sets of generated captions."""

from __future__ import annotations

from embinit.corpora import captions as generator
from embinit.corpora.examples import Corpus, Reading, split_of
from embinit.errors import EmbinitError


def captions(size: int, seed: int, pair: str | None = None) -> Corpus:
    """Return generated caption pairs: `size` for training, a twentieth each (at most 1,000) for valid and test."""
    if pair not in (None, "de-en", "en-de"):
        raise EmbinitError(f"captions: unknown pair {pair!r}; one of de-en, en-de")
    columns = (1, 0) if pair == "en-de" else (0, 1)
    splits = {}
    for split, count in _sizes(size).items():
        rows = generator.pairs(count, seed, split)  # type: ignore[arg-type]
        texts = [[row[side] for row in rows] for side in columns]
        splits[split] = split_of(texts, None, Reading([f"captions, {split}, seed {seed}, {count} rows"]))
    return Corpus("captions", "translation", splits, languages=("en", "de") if pair == "en-de" else ("de", "en"))


def labelled_captions(size: int, seed: int) -> Corpus:
    """Return generated English captions, each with a label."""
    splits = {}
    for split, count in _sizes(size).items():
        rows = generator.labelled(count, seed, split)  # type: ignore[arg-type]
        reading = Reading([f"labelled captions, {split}, seed {seed}, {count} rows"])
        splits[split] = split_of([[text for text, _ in rows]], [label for _, label in rows], reading)
    return Corpus("captions-labelled", "classification", splits, tuple(generator.LABELS), ("en",))


def caption_text(size: int, seed: int) -> Corpus:
    """Return generated English captions as running text, a caption a line."""
    splits = {}
    for split, count in _sizes(size).items():
        rows = generator.pairs(count, seed, split)  # type: ignore[arg-type]
        reading = Reading([f"caption text, {split}, seed {seed}, {count} rows"])
        splits[split] = split_of([[english for _, english in rows]], None, reading)
    return Corpus("captions-text", "language_model", splits, languages=("en",))


def _sizes(size: int) -> dict[str, int]:
    held_out = min(1000, max(50, size // 20))
    return {"train": size, "valid": held_out, "test": held_out}
