"""A model that the fastText package has trained gives the same vectors here as there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit

pytestmark = pytest.mark.long

WORDS = ["cat", "dog", "Übermut", "naïve", "猫", "猫猫", "walking", "walked", "a", "I", "straße", "x-ray"]
ABSENT = ["cats", "doggish", "Über", "猫猫猫", "walks", "zzz", "é", "strassen", "<unk>", "a b"]


@pytest.fixture(scope="module", params=["skipgram", "cbow"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    fasttext = pytest.importorskip("fasttext")
    folder = tmp_path_factory.mktemp("fasttext")
    rng = np.random.default_rng(0)
    text = "\n".join(" ".join(rng.choice(WORDS, 12)) for _ in range(400))
    (folder / "text.txt").write_text(text, encoding="utf-8")
    # With fewer than ten threads, fastText 0.9.3 leaves a part of its matrix without a start value.
    model = fasttext.train_unsupervised(
        str(folder / "text.txt"),
        model=request.param,
        dim=20,
        minCount=1,
        epoch=2,
        lr=0.01,
        bucket=5000,
        thread=10,
        verbose=0,
    )
    model.save_model(str(folder / "model.bin"))
    return model, folder / "model.bin"


def test_all_words_are_there_in_order(trained: tuple[Any, Path]) -> None:
    model, path = trained
    ours = embinit.load(path)
    assert list(ours.tokens) == model.get_words()
    theirs = np.stack([model.get_word_vector(word) for word in ours.tokens])
    np.testing.assert_allclose(ours.vectors, theirs, rtol=0, atol=1e-6)


def test_words_in_and_out_of_the_vocabulary_have_their_vectors(trained: tuple[Any, Path]) -> None:
    model, path = trained
    ours = embinit.load(path, [*WORDS, *ABSENT])
    assert ours.composed == frozenset(ABSENT)
    assert sorted(ours.tokens) == sorted([*WORDS, *ABSENT])
    theirs = np.stack([model.get_word_vector(word) for word in ours.tokens])
    np.testing.assert_allclose(ours.vectors, theirs, rtol=0, atol=1e-6)


def test_the_text_that_it_prints_is_read_too(trained: tuple[Any, Path], tmp_path: Path) -> None:
    model, path = trained
    words = model.get_words()
    lines = [f"{word} {' '.join(f'{x:.5g}' for x in model.get_word_vector(word))} " for word in words]
    (tmp_path / "model.vec").write_text(f"{len(words)} 20\n" + "\n".join(lines) + "\n", encoding="utf-8")
    text, binary = embinit.load(tmp_path / "model.vec"), embinit.load(path)
    assert list(text.tokens) == list(binary.tokens)
    np.testing.assert_allclose(text.vectors, binary.vectors, rtol=1e-4, atol=1e-7)
