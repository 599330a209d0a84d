"""Rows that are combined from old rows by auxiliary vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import embinit
from embinit.extending.methods import matching_pursuit, sparsemax, unit_rows
from embinit.text.markers import looks_special
from embinit.types import Embeddings, Origin
from tests.extending.made import NEW, caption_lines, made
from tests.refusal import refused


def rows_of(model: Any) -> np.ndarray:
    return model.get_input_embeddings().weight.detach().numpy().copy()  # type: ignore[no-any-return]


def auxiliary(tokenizer: Any, twins: dict[str, str]) -> Embeddings:
    """Return random vectors of whole words, in which new words have the vector of another word."""
    words = [token for token in tokenizer.get_vocab() if token.isalpha() and not looks_special(token)]
    rng = np.random.default_rng(0)
    vectors = dict(zip(words, rng.standard_normal((len(words), 40)).astype(np.float32), strict=True))
    vectors.update({new: vectors[old] for new, old in twins.items()})
    return Embeddings(list(vectors), np.stack(list(vectors.values())), Origin("made", "made"))


@pytest.mark.parametrize("method", ["focus", "omp"])
def test_a_word_with_the_vector_of_another_word_gets_its_row(method: str) -> None:
    model, tokenizer = made("bert")
    old = rows_of(model)
    vectors = auxiliary(tokenizer, {"graphene": "dog"})
    extension = embinit.extend(model, tokenizer, ["graphene", "covid-19"], method=method, vectors=vectors)
    new = rows_of(model)
    dog = old[tokenizer.convert_tokens_to_ids("dog")]
    assert np.corrcoef(new[extension.ids[0]], dog)[0, 1] > 0.9
    # A token without a vector of its own gets the mean of its pieces.
    pieces = tokenizer("covid-19", add_special_tokens=False)["input_ids"]
    assert new[extension.ids[1]] == pytest.approx(old[pieces].mean(axis=0), abs=1e-6)


def test_vectors_are_trained_on_text_if_none_are_given() -> None:
    pytest.importorskip("numba")
    text = [*caption_lines()[:400], *(line.replace("dog", "graphene") for line in caption_lines()[:400])]
    model, tokenizer = made("gpt2")
    extension = embinit.extend(model, tokenizer, ["graphene"], method="focus", text=text)
    pieces = tokenizer(" graphene", add_special_tokens=False)["input_ids"]
    rows = rows_of(model)
    assert not np.allclose(rows[extension.ids[0]], rows[pieces].mean(axis=0), atol=1e-5)


def test_sparsemax_is_the_nearest_distribution() -> None:
    scores = np.random.default_rng(0).standard_normal(30)
    weights = sparsemax(scores)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all() and (weights == 0).any()
    for other in np.random.default_rng(1).dirichlet(np.full(30, 0.2), 200):
        assert ((weights - scores) ** 2).sum() <= ((other - scores) ** 2).sum() + 1e-9


def test_matching_pursuit_finds_a_sparse_combination() -> None:
    shared = unit_rows(np.random.default_rng(0).standard_normal((100, 50)).astype(np.float32))
    target = 2 * shared[7] - 0.5 * shared[40]
    weights = matching_pursuit(target, shared, 8)
    assert weights[7] == pytest.approx(2, abs=1e-4) and weights[40] == pytest.approx(-0.5, abs=1e-4)
    assert np.abs(np.delete(weights, [7, 40])).max() < 1e-4


def test_vectors_that_do_not_fit_are_refused() -> None:
    with refused("need auxiliary vectors"):
        embinit.extend(*made("bert"), NEW, method="focus")
    strangers = Embeddings(["x", "y"], np.ones((2, 4), np.float32), Origin("made", "made"))
    with refused("old tokens", "new ones"):
        embinit.extend(*made("bert"), NEW, method="omp", vectors=strangers)
