"""GloVe's update, compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embinit.errors import require
from embinit.seeds import stream
from embinit.types import Matrix


class Parameters(NamedTuple):
    """The arrays that training changes in place: vectors, biases, and the sums of their squared steps."""

    words: Matrix  # (words, dim)
    contexts: Matrix  # (words, dim)
    word_biases: Matrix  # (words,)
    context_biases: Matrix  # (words,)
    words_sum: Matrix
    contexts_sum: Matrix
    word_biases_sum: Matrix
    context_biases_sum: Matrix


class Entries(NamedTuple):
    """The counts that are not zero."""

    rows: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    counts: Matrix


def initial(words: int, dim: int, seed: int) -> Parameters:
    """Return the start of glove.c: vectors and biases uniform in (-0.5, 0.5)/dim, and sums of 1."""

    def drawn(purpose: str, *shape: int) -> Matrix:
        return (stream(seed, f"glove {purpose}").random(shape, dtype=np.float32) - np.float32(0.5)) / np.float32(dim)

    started = (
        drawn("words", words, dim),
        drawn("contexts", words, dim),
        drawn("word biases", words),
        drawn("context biases", words),
    )
    return Parameters(*started, *(np.ones_like(part) for part in started))


def _sweep(order: Any, entries: Any, parameters: Any, x_max: Any, alpha: Any, lr: Any) -> float:
    rows, columns, counts = entries
    words, contexts, word_biases, context_biases, words_sum, contexts_sum, word_sums, context_sums = parameters
    loss = 0.0
    for place in range(order.shape[0]):
        entry = order[place]
        i, j, count = rows[entry], columns[entry], counts[entry]
        word, context, word_sum, context_sum = words[i], contexts[j], words_sum[i], contexts_sum[j]
        dot = np.float32(0)
        for d in range(word.shape[0]):
            dot += word[d] * context[d]
        difference = dot + word_biases[i] + context_biases[j] - np.log(count)
        weighted = difference if count >= x_max else (count / x_max) ** alpha * difference
        loss += weighted * difference
        # As in glove.c: the factor 2 of the gradient is left to the rate, the sums hold the rate's square, and a
        # step is divided by the root of the sum before it.
        step = np.float32(lr * weighted)
        for d in range(word.shape[0]):
            for_word, for_context = step * context[d], step * word[d]
            word[d] -= for_word / np.sqrt(word_sum[d])
            context[d] -= for_context / np.sqrt(context_sum[d])
            word_sum[d] += for_word * for_word
            context_sum[d] += for_context * for_context
        word_biases[i] -= step / np.sqrt(word_sums[i])
        context_biases[j] -= step / np.sqrt(context_sums[j])
        word_sums[i] += step * step
        context_sums[j] += step * step
    return loss


@cache
def sweep() -> Callable[..., float]:
    """Return a function that updates the parameters by entries in the given order and returns the summed loss.

    The function releases Python's global lock, so that threads can share the parameters (Hogwild).
    """
    numba = require("numba", "glove", "training word vectors")
    # Sums may be reordered for SIMD. NaN and infinity are kept, so that divergence is noticed.
    compiled: Callable[..., float] = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})(
        _sweep
    )
    return compiled
