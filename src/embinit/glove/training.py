"""Train vectors on lines of text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from embinit.errors import EmbinitError, require
from embinit.glove.corpus import EncodedCorpus, Progress, encode
from embinit.glove.counts import checksum, cooccurrences
from embinit.glove.kernel import Entries
from embinit.glove.optimizer import fit
from embinit.text.tokenizers import Tokenizer
from embinit.text.tokenizers import tokenizer as tokenizer_of
from embinit.types import Matrix, Vocabulary


@dataclass(frozen=True)
class TrainedVectors:
    """Trained word vectors with the counts of the training."""

    vocabulary: Vocabulary  # most frequent first
    vectors: Matrix  # (words, dim): word plus context vectors
    #: the loss of each epoch: the mean over pairs of f(x) (w·w~ + b + b~ - log x)², each before its update
    losses: tuple[float, ...]
    tokens: int
    #: the number of counts that are not zero
    pairs: int
    #: the number of words that occur too rarely
    rare: int
    #: tokens that no line of a text file can hold: with white space inside, empty, undecodable
    left_out: tuple[str, ...]
    #: the number of updates of an earlier, stopped run
    resumed: int
    threads: int
    #: whether training began again because the checkpoint of a stopped run was damaged
    damaged: bool = False


def train(
    lines: Iterable[str],
    *,
    dim: int = 100,
    window: int = 10,
    symmetric: bool = True,
    epochs: int = 15,
    min_count: int = 5,
    tokenize: Tokenizer | None = None,
    lower: bool = False,
    x_max: float = 100.0,
    alpha: float = 0.75,
    lr: float = 0.05,
    threads: int | None = None,
    seed: int = 0,
    checkpoint: Path | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
    origin: str = "the text",
) -> TrainedVectors:
    """Return vectors of the words of the lines; a training with a checkpoint continues from it.

    One thread gives the same bits for the same seed, even after a stop. Several threads update the vectors without locks.
    """
    threads = cores() if threads is None else threads
    check(
        dim=dim, window=window, epochs=epochs, min_count=min_count, threads=threads, seed=seed,
        x_max=x_max, alpha=alpha, lr=lr,
    )  # fmt: skip
    for library in ("numba", "scipy"):  # raises before the text is read
        require(library, "glove", "training word vectors")
    tell = progress or _silent
    text = (line.lower() for line in lines) if lower else lines
    corpus, entries, identity = _counted(
        text, tokenize or tokenizer_of("whitespace"), min_count, window, symmetric, origin, tell
    )
    vectors, losses, resumed, damaged = fit(
        entries, len(corpus.vocabulary), identity, dim=dim, epochs=epochs, x_max=x_max, alpha=alpha, lr=lr,
        threads=threads, seed=seed, checkpoint=checkpoint, fresh=fresh, progress=tell,
    )  # fmt: skip
    pairs = len(entries.counts)
    return TrainedVectors(
        corpus.vocabulary,
        vectors,
        losses,
        corpus.tokens,
        pairs,
        corpus.rare,
        corpus.left_out,
        resumed,
        threads,
        damaged,
    )


def _counted(
    lines: Iterable[str], tokenize: Tokenizer, min_count: int, window: int, symmetric: bool, origin: str, tell: Progress
) -> tuple[EncodedCorpus, Entries, str]:
    """Return the corpus without its text, its counts, and their checksum; the memory of the text is free."""
    corpus = encode(lines, tokenize, min_count=min_count, origin=origin, progress=tell)
    words = len(corpus.vocabulary)
    pairs = cooccurrences(corpus.ids, words, window=window, symmetric=symmetric, progress=tell)
    if not pairs.nnz:
        raise EmbinitError(f"{origin} has no line with two words that occur at least {min_count} times")
    rows = np.repeat(np.arange(words, dtype=np.int32), np.diff(pairs.indptr))
    entries = Entries(rows, pairs.indices.astype(np.int32), pairs.data.astype(np.float32))
    return replace(corpus, ids=np.zeros(0, dtype=np.int32)), entries, checksum(pairs, corpus.vocabulary.tokens)


def check(
    *, dim: int, window: int, epochs: int, min_count: int, threads: int, seed: int,
    x_max: float, alpha: float, lr: float,
) -> None:  # fmt: skip
    """Raise EmbinitError for the first impossible setting."""
    counts = {"dim": dim, "window": window, "epochs": epochs, "min-count": min_count, "threads": threads}
    for name, value, least in [*((name, value, 1) for name, value in counts.items()), ("seed", seed, 0)]:
        if value < least:
            raise EmbinitError(f"--{name} is {value}; it must be {least} or more")
    for name, number in {"x-max": x_max, "alpha": alpha, "lr": lr}.items():
        if not (math.isfinite(number) and number > 0):
            raise EmbinitError(f"--{name} is {number}; it must be a number above 0")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _silent(what: str, done: int, total: int | None) -> None:
    pass
