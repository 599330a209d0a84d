"""Auxiliary vectors: vectors that hold new tokens and old ones, given or trained on text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from embinit.alignment import align
from embinit.errors import EmbinitError
from embinit.extending.methods import Auxiliary
from embinit.extending.tokenizers import ExtendedTokenizer, backend
from embinit.glove.training import train
from embinit.text.tokenizers import tokenizer as tokenizer_of
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Aligned, Embeddings, Origin

_DIM, _MIN_COUNT, _EPOCHS, _X_MAX = 100, 2, 15, 10.0
#: Fewer shared tokens than this cannot make up a new one.
_LEAST = 20


def auxiliary_of(
    extended: ExtendedTokenizer, vectors: Any, text: Iterable[str] | None, *, seed: int
) -> tuple[Auxiliary, str]:
    """Return auxiliary vectors of the new tokens and of the old tokens that kept their rows, and a sentence about them.

    Parameters
    ----------
    extended
        The new tokenizer.
    vectors
        Anything that `load` takes, or None to train vectors on the text.
    text
        Lines; used if no vectors are given.
    seed
        The seed of the training.

    Returns
    -------
    tuple
        The vectors and a sentence.

    Raises
    ------
    EmbinitError
        If there are neither vectors nor text, or they hold no new token or too few old ones.
    """
    if vectors is None and text is None:
        raise EmbinitError("the methods focus and omp need auxiliary vectors: give vectors, or text to train them on")
    if vectors is None:
        assert text is not None
        trained = train(
            text, dim=_DIM, min_count=_MIN_COUNT, epochs=_EPOCHS, x_max=_X_MAX, threads=1, seed=seed,
            tokenize=tokenizer_of(extended.tokenizer),
        )  # fmt: skip
        vectors = Embeddings(list(trained.vocabulary.tokens), trained.vectors, Origin("the text", "GloVe"))
    aligned: Aligned = align(vectors, as_vocabulary(extended.tokenizer))
    ids = backend(extended.tokenizer).get_vocab(with_added_tokens=True)
    place_of = {ids[token]: place for place, token in enumerate(aligned.vocabulary.tokens) if token in ids}
    new = np.zeros((len(extended.ids), aligned.dim), np.float32)
    for row, token_id in enumerate(extended.ids):
        if token_id in place_of:
            new[row] = aligned.vectors[place_of[token_id]]
    added = set(extended.ids)
    kept = extended.kept or {token_id: token_id for token_id in place_of if token_id not in added}
    shared = {
        old: place_of[own]
        for own, old in kept.items()
        if own in place_of and aligned.found[place_of[own]] and aligned.vectors[place_of[own]].any()
    }
    count = int(new.any(axis=1).sum())
    if len(shared) < _LEAST or not count:
        raise EmbinitError(
            f"the auxiliary vectors hold {len(shared):,} old tokens and {count:,} new ones; give more text, or vectors with "
            "both"
        )
    about = (
        f"{aligned.origin.source}: {count:,} of {len(extended.ids):,} new tokens and {len(shared):,} old ones; other new "
        "tokens got the mean of their pieces"
    )
    return Auxiliary(new, aligned.vectors[list(shared.values())], list(shared)), about
