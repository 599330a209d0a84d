"""Training follows the published rule, learns, and gives the same bits again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.glove import TrainedVectors, train
from embinit.glove.corpus import encode
from embinit.glove.counts import cooccurrences
from embinit.glove.kernel import Entries, Parameters, initial, sweep
from embinit.glove.output import nearest, telling, write
from embinit.seeds import stream
from embinit.text.tokenizers import tokenizer
from tests.glove.topical import TOPICS, WORDS, separation, topical_text

F = np.float32


def one_by_one(order: np.ndarray, entries: Entries, start: Parameters, x_max: float, alpha: float, lr: float):
    """Return loss and parameters by the rule of glove.c, in float64 and without anything clever."""
    w, c, b, d, gw, gc, gb, gd = (part.astype(np.float64) for part in start)
    loss = 0.0
    for entry in order:
        i, j, x = entries.rows[entry], entries.columns[entry], float(entries.counts[entry])
        difference = w[i] @ c[j] + b[i] + d[j] - np.log(x)
        weight = min(1.0, (x / x_max) ** alpha)
        loss += weight * difference**2
        step = lr * weight * difference
        word, context = step * c[j], step * w[i]
        w[i] -= word / np.sqrt(gw[i])
        c[j] -= context / np.sqrt(gc[j])
        gw[i] += word**2
        gc[j] += context**2
        b[i] -= step / np.sqrt(gb[i])
        d[j] -= step / np.sqrt(gd[j])
        gb[i] += step**2
        gd[j] += step**2
    return loss, (w, c, b, d, gw, gc, gb, gd)


def some(seed: int, words: int = 9, number: int = 40) -> Entries:
    rng = np.random.default_rng(seed)
    places = rng.choice(words * words, number, replace=False).astype(np.int32)
    return Entries(places // words, places % words, rng.lognormal(2, 2, number).astype(F))


def large(words: int, dim: int, seed: int) -> Parameters:
    """Return a start with numbers of about 1 and unequal sums, so that every term of the rule shows."""
    rng = np.random.default_rng(seed)
    vectors = initial(words, dim, seed)
    parts = [rng.standard_normal(part.shape).astype(F) for part in vectors[:4]]
    return Parameters(*parts, *(rng.uniform(1, 4, part.shape).astype(F) for part in vectors[4:]))


@pytest.mark.parametrize("dim", [1, 3, 16, 37])
@pytest.mark.parametrize("steps", [1, 40, 200])
def test_steps_equal_the_published_rule(dim: int, steps: int) -> None:
    entries, start = some(dim), large(9, dim, steps)
    order = np.random.default_rng(2).integers(0, 40, steps).astype(np.int32)
    expected_loss, expected = one_by_one(order, entries, start, 20.0, 0.75, 0.05)
    loss = sweep()(order, entries, start, F(20), F(0.75), F(0.05))
    assert loss == pytest.approx(expected_loss, rel=2e-4)
    for found, wanted in zip(start, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4)


def test_a_step_goes_down_the_gradient_of_the_objective() -> None:
    """With sums of 1, a step is lr/2 times the gradient of f (w·c + b + d - log x)², by differences."""
    start = large(9, 5, 1)._replace(
        **{name: np.ones_like(part) for name, part in large(9, 5, 1)._asdict().items() if "sum" in name}
    )
    entries = Entries(np.array([3], np.int32), np.array([4], np.int32), np.array([7.0], F))

    def objective(vector: np.ndarray) -> float:
        inner = vector @ start.contexts[4].astype(np.float64)
        return 0.2**0.5 * float(inner + start.word_biases[3] + start.context_biases[4] - np.log(7)) ** 2

    before = start.words[3].astype(np.float64)
    slopes = [(objective(before + 1e-5 * unit) - objective(before - 1e-5 * unit)) / 2e-5 for unit in np.eye(5)]
    words = start.words.copy()
    sweep()(np.zeros(1, np.int32), entries, start._replace(words=words), F(35), F(0.5), F(0.01))
    np.testing.assert_allclose(before - words[3], 0.005 * np.array(slopes), rtol=1e-3)
    assert (words[[0, 1, 2, 4, 5, 6, 7, 8]] == start.words[[0, 1, 2, 4, 5, 6, 7, 8]]).all()


def test_the_start_is_as_in_the_reference_implementation() -> None:
    start = initial(2000, 10, seed=4)
    for part in start[:4]:
        assert abs(part).max() <= 0.05
        assert part.std() == pytest.approx(0.1 / 12**0.5, rel=0.05)
    assert all((part == 1).all() for part in start[4:])
    assert not np.array_equal(start.words, start.contexts)


def test_a_training_is_these_steps_in_the_order_of_the_named_streams() -> None:
    lines = ["a b a", "b c a c", "c a b b"]
    corpus = encode(lines, tokenizer("whitespace"), min_count=1, origin="a text", progress=lambda *step: None)
    pairs = cooccurrences(corpus.ids, 3, window=2, symmetric=True, progress=lambda *step: None)
    rows, columns = pairs.nonzero()
    entries = Entries(rows.astype(np.int32), columns.astype(np.int32), pairs.data.astype(F))
    expected, losses = initial(3, 4, 7), []
    for epoch in (1, 2, 3):
        order = np.arange(pairs.nnz, dtype=np.int32)
        stream(7, f"glove epoch {epoch}").shuffle(order)
        loss, parts = one_by_one(order, entries, expected, 100.0, 0.75, 0.05)
        expected, losses = Parameters(*parts), [*losses, loss / pairs.nnz]
    done = train(lines, dim=4, window=2, epochs=3, min_count=1, seed=7, threads=1)
    assert done.losses == pytest.approx(losses, rel=1e-5)
    np.testing.assert_allclose(done.vectors, expected.words + expected.contexts, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def text() -> list[str]:
    return topical_text()


@pytest.fixture(scope="module")
def trained(text: list[str]) -> TrainedVectors:
    return train(text, dim=20, epochs=15, threads=1, x_max=10)


def test_the_loss_falls(trained: TrainedVectors) -> None:
    assert len(trained.losses) == 15
    assert all(later < earlier for earlier, later in zip(trained.losses, trained.losses[1:], strict=False))
    assert trained.losses[-1] < trained.losses[0] / 5


def test_words_of_a_topic_are_nearer_than_words_of_two_as_with_gensim(text: list[str], trained: TrainedVectors) -> None:
    from gensim.models import Word2Vec

    other = Word2Vec(
        [line.split() for line in text], vector_size=20, window=10, min_count=5, epochs=15, workers=1, seed=1
    )
    ours = separation(trained.vocabulary.tokens, trained.vectors)
    theirs = separation(other.wv.index_to_key, other.wv.vectors)
    untrained = separation(trained.vocabulary.tokens, initial(len(trained.vocabulary), 20, 0).words)
    assert untrained[0] < 0.6 and untrained[1] < 0.4
    assert ours[0] > 0.97 and ours[1] == 1.0
    assert ours[0] >= theirs[0] - 0.02 and ours[1] >= theirs[1]


def test_one_thread_gives_the_same_bits_and_another_seed_others(text: list[str], trained: TrainedVectors) -> None:
    again = train(iter(text), dim=20, epochs=15, threads=1, x_max=10)
    assert again.vectors.tobytes() == trained.vectors.tobytes()
    assert again.losses == trained.losses
    other = train(text, dim=20, epochs=15, threads=1, x_max=10, seed=1)
    assert not np.allclose(other.vectors, trained.vectors)


def test_several_threads_learn_the_same(text: list[str], trained: TrainedVectors) -> None:
    several = train(text, dim=20, epochs=15, threads=3, x_max=10)
    assert several.threads == 3
    assert several.losses[-1] == pytest.approx(trained.losses[-1], rel=0.1)
    assert separation(several.vocabulary.tokens, several.vectors)[1] == 1.0


def test_what_was_counted_comes_back(text: list[str]) -> None:
    seen: list[tuple[str, int, int | None]] = []
    done = train(
        [*text, "Seldom COMMON3"], lower=True, dim=4, epochs=2, threads=1, progress=lambda *step: seen.append(step)
    )
    assert done.tokens == 10 * len(text) + 2
    assert done.rare == 1
    assert train([*text, "Seldom COMMON3"], dim=4, epochs=1, threads=1).rare == 2
    assert done.vectors.shape == (len(done.vocabulary), 4)
    assert done.vectors.dtype == F
    assert done.vocabulary.counts is not None
    assert (np.diff(done.vocabulary.counts) <= 0).all()
    assert seen[0][0] == "counting"
    assert seen[-1] == (f"epoch 2 of 2, loss {done.losses[0]:.4f}", 2 * done.pairs, 2 * done.pairs)


def test_neighbours_are_of_the_same_topic(trained: TrainedVectors) -> None:
    words = telling(trained.vocabulary, 4)
    assert len(words) == 4
    near = nearest(trained.vocabulary, trained.vectors, ["t1w3", "t4w0"], WORDS - 1)
    assert {other[:2] for other in near["t1w3"]} == {"t1"}
    assert near["t4w0"] and "t4w0" not in near["t4w0"]
    assert TOPICS > 4


def test_the_file_reads_back_to_six_digits(trained: TrainedVectors, tmp_path: Path) -> None:
    from embinit.sources.load import load

    write(tmp_path / "v.txt", trained.vocabulary, trained.vectors)
    read = load(str(tmp_path / "v.txt"))
    assert tuple(read.tokens) == trained.vocabulary.tokens
    np.testing.assert_allclose(read.vectors, trained.vectors, rtol=1e-5)
    assert list(tmp_path.iterdir()) == [tmp_path / "v.txt"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dim": 0}, "--dim is 0; it must be 1 or more"),
        ({"window": -1}, "--window is -1"),
        ({"epochs": 0}, "--epochs is 0"),
        ({"min_count": 0}, "--min-count is 0"),
        ({"threads": 0}, "--threads is 0"),
        ({"seed": -1}, "--seed is -1; it must be 0 or more"),
        ({"lr": 0.0}, "--lr is 0.0; it must be a number above 0"),
        ({"x_max": float("nan")}, "--x-max is nan"),
        ({"alpha": float("inf")}, "--alpha is inf"),
        ({"min_count": 10**6}, "has no word that occurs at least 1000000 times"),
        ({"lr": 1e6}, "diverged in epoch [0-9]+; a smaller --lr helps"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(text: list[str], settings: dict, sentence: str) -> None:
    with pytest.raises(EmbinitError, match=sentence):
        train(text, **{"dim": 4, "threads": 1, **settings})


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "the text is empty"),
        (["", "  "], "the text is empty"),
        (["a"] * 9, "no line with two words that occur at least 5 times"),
    ],
)
def test_text_without_pairs_is_one_sentence(lines: list[str], sentence: str) -> None:
    with pytest.raises(EmbinitError, match=sentence):
        train(lines, threads=1)
