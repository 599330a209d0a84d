"""The public functions with what people naturally give them: taken, or answered in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.errors import EmbinitError
from embinit.types import Aligned

TOKENS = ["<pad>", "w1", "w2", "lacking"]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(TOKENS) + "\n")
    return path


def test_a_vocabulary_may_be_the_path_of_a_token_file(glove_file: Path, token_file: Path) -> None:
    listed = embinit.align(glove_file, TOKENS)
    for given in (token_file, str(token_file)):
        read = embinit.align(str(glove_file), given)
        assert read.vocabulary.tokens == listed.vocabulary.tokens
        np.testing.assert_array_equal(read.vectors, listed.vectors)


def test_a_matrix_is_written_to_a_text_that_names_a_file(glove_file: Path, token_file: Path, tmp_path: Path) -> None:
    aligned = embinit.align(glove_file, TOKENS)
    given: list[Any] = [aligned.vocabulary, TOKENS, token_file]
    for place, vocabulary in enumerate(given):
        name = str(tmp_path / f"{place}.npy")
        assert embinit.write(aligned.vectors, vocabulary, name).path == Path(name)
        np.testing.assert_array_equal(embinit.load(name).vectors, aligned.vectors)


def test_a_model_may_be_given_as_a_path(aligned: Aligned, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "t5"}')
    folder = tmp_path / "model"
    assert embinit.host(folder) == embinit.host(str(folder))
    assert embinit.diagnose(aligned, host=folder).host == embinit.host(folder)
    made = embinit.recipe("pretrained | scale to=host")(aligned, embinit.stream(0, "matrix"), folder)
    assert made.std() == pytest.approx(1, rel=0.05)


def test_a_matrix_is_put_into_a_model_by_texts_that_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    transformers.BertModel(transformers.BertConfig(vocab_size=4, **sizes)).save_pretrained("model")
    Path("model/vocab.txt").write_text("[PAD]\n[UNK]\nw1\nw2\n")
    embinit.write(np.full((2, 24), 0.25), ["w1", "w2"], "rows.npy")
    assert embinit.apply("rows.npy", "model", "out", recipe="pretrained").replaced == 2
    assert (embinit.load("out", ["w1", "w2"]).vectors == 0.25).all()


def test_a_layer_takes_rows_of_any_kind() -> None:
    torch = pytest.importorskip("torch")
    layer, other = torch.nn.Embedding(3, 2), torch.nn.Embedding(3, 2)
    for rows in (other.weight, other.weight.tolist()):
        embinit.set_embedding(layer, rows)
        assert torch.equal(layer.weight, other.weight)


WRONG: dict[str, tuple[Callable[[Path, Aligned], object], str]] = {
    "numbers for tokens": (lambda file, _: embinit.align(file, [1, 2]), "the vocabulary (a list) has 1 (int)"),  # type: ignore[list-item]
    "a hole among tokens": (
        lambda file, _: embinit.align(file, [None, "a"]),  # type: ignore[list-item]
        "the vocabulary (a list) has None (NoneType)",
    ),
    "a number for a vocabulary": (
        lambda file, _: embinit.align(file, 5),  # type: ignore[arg-type]
        "a vocabulary is a tokenizer, a list of tokens or a token file, not int",
    ),
    "a text for a vocabulary": (lambda file, _: embinit.align(file, "the cat"), "there is no file 'the cat'"),
    "a long text for a vocabulary": (lambda file, _: embinit.align(file, "the cat " * 999), "there is no file 'the"),
    "a file for a vocabulary": (lambda file, _: embinit.align(file, Path("none.txt")), "there is no file 'none.txt'"),
    "vectors without a vocabulary": (
        lambda file, _: embinit.diagnose(embinit.load(file)),  # type: ignore[arg-type]
        "diagnose takes aligned vectors, not Embeddings; call embinit.align(source, vocabulary) first",
    ),
    "a recipe without a vocabulary": (
        lambda file, _: embinit.recipe("xavier")(embinit.load(file), embinit.stream(0, "matrix")),  # type: ignore[arg-type]
        "a recipe takes aligned vectors, not Embeddings",
    ),
    "a seed for a generator": (
        lambda _, aligned: embinit.recipe("pretrained")(aligned, 0),  # type: ignore[arg-type]
        'a recipe takes a random generator, not 0; give embinit.stream(0, "matrix")',
    ),
    "no recipe": (lambda *_: embinit.recipe(5), "unknown recipe '5'"),  # type: ignore[arg-type]
    "no matrix": (
        lambda _, aligned: embinit.write(aligned, aligned.vocabulary, "x.npy"),  # type: ignore[arg-type]
        "a matrix is an array of (tokens, dimensions), not Aligned",
    ),
    "one row": (
        lambda *_: embinit.write(np.zeros(3, dtype=np.float32), ["a", "b", "c"], "x.npy"),
        "not ndarray of shape (3,)",
    ),
}
WITH_TORCH: dict[str, tuple[Callable[[Path, Aligned], object], str]] = {
    "an array for a layer": (
        lambda *_: embinit.set_embedding(np.zeros((3, 2)), np.zeros((3, 2))),  # type: ignore[arg-type]
        "set_embedding(layer, matrix) fills a torch.nn.Embedding, not ndarray",
    ),
    "vectors for a matrix": (
        lambda _, aligned: embinit.set_embedding(_layer(), aligned),  # type: ignore[arg-type]
        "a matrix is an array of (tokens, dimensions), not Aligned",
    ),
    "aligned vectors for a model": (
        lambda _, aligned: embinit.apply(aligned, "model", "out"),  # type: ignore[arg-type]
        "cannot load embinit.Aligned; expected a path",
    ),
}


def _layer() -> Any:
    import torch

    return torch.nn.Embedding(3, 2)


@pytest.mark.parametrize("case", [*WRONG, *WITH_TORCH])
def test_a_wrong_argument_is_one_sentence(case: str, glove_file: Path, aligned: Aligned) -> None:
    if case in WITH_TORCH:
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
    call, sentence = {**WRONG, **WITH_TORCH}[case]
    with pytest.raises(EmbinitError) as caught:
        call(glove_file, aligned)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
