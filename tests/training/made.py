"""Two tiny tasks, and members to train on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embinit.corpora.examples import Corpus, Reading, split_of
from embinit.models.architecture import Architecture
from embinit.models.model import Member
from embinit.prepared.folder import Prepared
from embinit.prepared.prepare import Settings, prepare
from embinit.training.loop import Outcome, train
from embinit.training.options import Training
from embinit.types import task_kind

WORDS = [f"w{i}" for i in range(12)]


def copying_task(folder: Path) -> Prepared:
    """Sentences to be copied in capital letters: a translation that a tiny model learns in a few epochs.

    Some words of the validation split are in no vocabulary.
    """
    rng = np.random.default_rng(0)

    def rows(count: int, words: list[str]) -> list[list[str]]:
        texts = [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(count)]
        return [texts, [text.upper() for text in texts]]

    sizes = {"train": (203, WORDS), "valid": (40, [*WORDS, "rare"]), "test": (30, WORDS)}
    splits = {name: split_of(rows(*size), None, Reading([name])) for name, size in sizes.items()}
    corpus = Corpus("copying", "translation", splits, languages=("xx", "xx"))
    return prepare(corpus, Settings("copying", ("whitespace",) * 2, False, 1, ("xx", "xx")), folder)[0]


def sorting_task(folder: Path) -> Prepared:
    """Sentences labelled by whether words of the first half are in the majority."""
    rng = np.random.default_rng(1)

    def rows(count: int) -> tuple[list[list[str]], list[int]]:
        picked = [rng.integers(0, 12, 5) for _ in range(count)]
        return [[" ".join(WORDS[i] for i in one) for one in picked]], [int((one < 6).sum() > 2) for one in picked]

    splits = {name: split_of(*rows(n), Reading([name])) for name, n in (("train", 200), ("valid", 60))}
    corpus = Corpus("sorting", "classification", splits, ("low", "high"), ("xx",))
    return prepare(corpus, Settings("sorting", ("whitespace",), False, 1, ("xx",)), folder)[0]


def text_task(folder: Path, masked: bool = False) -> Prepared:
    """Lines that count up from a word on: a running text whose next word is known from the one before."""
    rng = np.random.default_rng(2)

    def lines(count: int) -> list[str]:
        return [
            " ".join(WORDS[(first + i) % 12] for i in range(length))
            for first, length in zip(rng.integers(0, 12, count), rng.integers(0, 9, count), strict=True)
        ]

    sizes = {"train": 160, "valid": 40, "test": 30}
    splits = {name: split_of([lines(count)], None, Reading([name])) for name, count in sizes.items()}
    kind = task_kind("masked_language_model" if masked else "language_model")
    corpus = Corpus("counting", kind, splits, languages=("xx",))
    return prepare(corpus, Settings("counting", ("whitespace",), False, 1, ("xx",)), folder)[0]


def architecture(prepared: Prepared, **changes: object) -> Architecture:
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    values = {"dim": 24, "heads": 2, "layers": 1, "feedforward": 32, "length": 40, **changes}
    return Architecture(task=prepared.task, vocabularies=sizes, **values)  # type: ignore[arg-type]


def member(a: Architecture, seed: int, std: float = 0.2) -> Member:
    rng = np.random.default_rng(seed)
    return Member(seed, tuple((std * rng.standard_normal((n, a.dim))).astype(np.float32) for n in a.vocabularies))


def settings(**options: object) -> Training:
    return Training(**{"epochs": 3, "batch": 16, "rate": 5e-3, "bleu_every": 0, **options})  # type: ignore[arg-type]


def run(prepared: Prepared, members: list[tuple[int, float]], **options: object) -> Outcome:
    """Return members of these seeds and σ, trained."""
    a = architecture(prepared)
    return train(prepared, a, [member(a, seed, std) for seed, std in members], settings(**options))


def eventful(prepared: Prepared, **how: object) -> Outcome:
    """Return members of a training in which as much happens as can: what a checkpoint may forget, it needs.

    Embeddings are thawed after an epoch, some rows never; rates rise and fall; the last member is lost from the
    beginning, and stopped after an epoch for getting no better.
    """
    a = architecture(prepared, positions="gained")
    kept = tuple(np.arange(n) % 3 == 0 for n in a.vocabularies)
    lost = Member(3, tuple(np.full((n, a.dim), np.nan, dtype=np.float32) for n in a.vocabularies))
    members = [member(a, 1), Member(2, member(a, 2).matrices, kept), lost]
    training = settings(
        rate=1.5e-2, warmup=20, schedule="linear", clip=1.0, smoothing=0.1, embedding_rate=0.5, frozen_epochs=1,
        order="shuffled" if a.is_language_model else "bucketed", patience=1, bleu_every=2,
        weight_decay=0.1 if a.is_language_model else 0.0,
    )  # fmt: skip
    return train(prepared, a, members, training, **how)  # type: ignore[arg-type]


def same(one: Outcome, other: Outcome) -> bool:
    """Return whether two trainings gave the same bits."""
    weights = zip(one.stack.weights.items(), other.stack.weights.items(), strict=True)
    return repr(one.members) == repr(other.members) and all(
        a == b and x.detach().numpy().tobytes() == y.detach().numpy().tobytes() for (a, x), (b, y) in weights
    )
