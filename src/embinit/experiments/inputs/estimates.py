"""The sizes of a task that is not prepared yet, estimated from the numbers of its lines and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from embinit.corpora.examples import Corpus
from embinit.experiments.definition.settings import TaskSettings
from embinit.experiments.spec import digest
from embinit.prepared.folder import VERSION, Prepared
from embinit.types import TaskKind

#: Words are counted in the first lines of the training split.
_LINES = 20_000
#: Tokens for each word between spaces: of word tokenizers, which split punctuation off, and of sub-word tokenizers.
_TOKENS, _PIECES = 1.15, 1.5
#: The vocabulary grows with this power of the number of words (Heaps' law).
_GROWTH = 0.6
#: Sub-word tokenizers of one language rarely have more tokens in use.
_LARGEST_VOCABULARY = 30_000
_counts: dict[str, TextCounts] = {}


@dataclass(frozen=True)
class TextCounts:
    """The numbers of lines and words of a corpus."""

    task: TaskKind
    labels: tuple[str, ...]
    #: split -> number of lines
    rows: dict[str, int]
    #: side -> words in a line, on average
    words: dict[str, float]
    #: side -> number of different words in the lines that were read
    vocabulary: dict[str, int]
    notes: tuple[str, ...]


def counts_of(about: Any, read: Callable[[], Corpus]) -> TextCounts:
    """Return the counts of a corpus, which is read once for all tasks that tokenize it; `about` identifies it."""
    key = digest(about)
    if key not in _counts:
        _counts[key] = _counted(read())
    return _counts[key]


def _counted(corpus: Corpus) -> TextCounts:
    train = corpus.splits["train"]
    sides = ("source", "target") if corpus.task == "translation" else ("text",)
    texts = [[text] for text in train.texts] if len(sides) == 2 else [train.texts]
    words, vocabulary = {}, {}
    for side, columns in zip(sides, texts, strict=True):
        seen = Counter(word for column in columns for text in islice(column, _LINES) for word in text.lower().split())
        words[side] = seen.total() / max(1, min(len(train), _LINES))
        vocabulary[side] = sum(count > 1 for count in seen.values())
    rows = {name: len(split) for name, split in corpus.splits.items()}
    return TextCounts(corpus.task, corpus.labels, rows, words, vocabulary, corpus.notes)


def estimated(counts: TextCounts, task: TaskSettings, tokenizers: Sequence[str]) -> Prepared:
    """Return a task with estimated sizes; its folder does not exist.

    Parameters
    ----------
    counts
        The lines and words of the task's corpus.
    task
        The settings of the task.
    tokenizers
        One tokenizer for all sides or one for each.
    """
    rows = {**counts.rows, "train": min(counts.rows["train"], task.rows or counts.rows["train"])}
    growth = max(1.0, rows["train"] / _LINES) ** _GROWTH
    tokens, vocabularies = {}, {}
    for number, side in enumerate(counts.words):
        words = _splits_words(tokenizers[number % len(tokenizers)])
        each = counts.words[side] * (_TOKENS if words else _PIECES)
        tokens[side] = min(each, float(task.longest or each))
        size = int(counts.vocabulary[side] * growth) + 4
        vocabularies[side] = size if words else min(size, _LARGEST_VOCABULARY)
    splits = {
        split: {
            "rows": count,
            "rejected": {},
            "left out": 0,
            "examples": [],
            "sides": {side: {"tokens": int(count * each), "longest": 0} for side, each in tokens.items()},
        }
        for split, count in rows.items()
    }
    manifest = {
        "version": VERSION, "name": task.name, "task": counts.task, "labels": list(counts.labels), "splits": splits,
        "vocabularies": vocabularies, "notes": list(counts.notes),
    }  # fmt: skip
    return Prepared(Path("not prepared", digest([vocabularies, tokens, rows]), task.name), manifest)


def _splits_words(tokenizer: str) -> bool:
    return tokenizer == "whitespace" or tokenizer.partition(":")[0] == "spacy"
