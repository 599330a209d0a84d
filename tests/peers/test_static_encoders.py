"""model2vec and sentence-transformers load our folders and encode words to our rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from embinit.export.formats import write
from embinit.text.vocabulary import from_file, from_tokens
from embinit.types import Matrix

pytestmark = pytest.mark.long

WORDS = ["cat", "dog", "Über", "猫", "3", ".", "seven"]


@pytest.fixture
def matrix() -> Matrix:
    return np.random.default_rng(0).normal(0.2, 0.4, (len(WORDS), 16)).astype(np.float32)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def pieces(tmp_path: Path) -> Path:
    """A WordPiece tokenizer of its own, whose pieces are rows too."""
    tokenizers = pytest.importorskip("tokenizers")
    ids = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "walk", "##ing", "##ed", "talk", "[CLS]"])}
    own = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]"))
    own.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    own.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_model2vec_encodes_words_to_their_rows(matrix: Matrix, tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    write(matrix, from_tokens(WORDS), tmp_path / "out", format="model2vec", card={"seed": 0})
    model = model2vec.StaticModel.from_pretrained(str(tmp_path / "out"))
    assert np.array_equal(model.embedding[: len(WORDS)], matrix)
    assert np.array_equal(model.encode(WORDS), matrix)


def test_model2vec_encodes_a_text_to_the_mean_and_unknown_words_to_nothing(matrix: Matrix, tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    write(matrix, from_tokens(WORDS), tmp_path / "out", format="model2vec")
    model = model2vec.StaticModel.from_pretrained(str(tmp_path / "out"))
    np.testing.assert_allclose(model.encode(["cat zebra dog"])[0], matrix[:2].mean(axis=0), rtol=1e-6)
    assert not model.encode(["zebra"]).any()


def test_model2vec_uses_the_tokenizer_that_the_vocabulary_came_from(pieces: Path, tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    rows = np.random.default_rng(1).normal(size=(7, 8)).astype(np.float32)
    write(rows, from_file(pieces), tmp_path / "out", format="model2vec")
    model = model2vec.StaticModel.from_pretrained(str(tmp_path / "out"))
    np.testing.assert_allclose(model.encode(["walking"])[0], rows[[2, 3]].mean(axis=0), rtol=1e-6)


def test_sentence_transformers_loads_the_rows_and_encodes_words_to_them(matrix: Matrix, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    write(matrix, from_tokens(WORDS), tmp_path / "out", format="sentence-transformers", card={"seed": 0})
    model = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    weight = model[0].embedding.weight.detach().numpy()
    assert np.array_equal(weight[: len(WORDS)], matrix)
    assert not weight[len(WORDS) :].any()
    assert np.array_equal(model.encode(WORDS), matrix)


def test_sentence_transformers_uses_the_tokenizer_that_the_vocabulary_came_from(pieces: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    rows = np.random.default_rng(1).normal(size=(7, 8)).astype(np.float32)
    write(rows, from_file(pieces), tmp_path / "out", format="sentence-transformers")
    model = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(model.encode(["talked"])[0], rows[[5, 4]].mean(axis=0), rtol=1e-6)


def test_what_sentence_transformers_saves_again_is_read_back(matrix: Matrix, tmp_path: Path) -> None:
    import embinit

    library = pytest.importorskip("sentence_transformers")
    write(matrix, from_tokens(WORDS), tmp_path / "out", format="sentence-transformers")
    library.SentenceTransformer(str(tmp_path / "out"), device="cpu").save(str(tmp_path / "again"))
    again = embinit.load(tmp_path / "again", WORDS)
    assert np.array_equal(again.vectors[[again.index[word] for word in WORDS]], matrix)
