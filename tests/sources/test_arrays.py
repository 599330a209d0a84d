"""Arrays with a token list beside them, and model2vec's folders."""

import json

import numpy as np
import pytest
import torch

import embinit
from embinit.errors import EmbinitError
from embinit.sources.load import load
from tests.refusal import refused

from .folders import TOKENS, checkpoint, float32, matrix, safetensors

M = matrix()


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "m.npy", M)
    return tmp_path / "m.npy"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.npy.tokens.json", json.dumps(TOKENS)),
        ("m.tokens.json", json.dumps({"tokens": TOKENS})),
        ("m.vocab.txt", "\n".join(TOKENS)),
        ("m.txt", "\n".join(TOKENS) + "\n"),
        ("vocab.txt", "\r\n".join(TOKENS)),
        ("tokenizer.json", json.dumps({"model": {"vocab": {token: i for i, token in enumerate(TOKENS)}}})),
    ],
)
def test_npy_with_a_list_beside_it(name, content, npy):
    npy.with_name(name).write_text(content)
    embeddings = load(npy, wanted={"dog", "cat"})
    assert dict(zip(embeddings.tokens, embeddings.vectors.tolist(), strict=True)) == {
        "cat": M[5].tolist(),
        "dog": M[7].tolist(),
    }
    assert list(load(npy).tokens) == TOKENS
    assert list(load(npy, most=2).tokens) == TOKENS[:2]


def test_npy_with_a_named_list(npy):
    npy.with_name("words").write_text("\n".join(TOKENS))
    assert list(load(f"{npy}::words").tokens) == TOKENS
    with refused("no such token list: other"):
        load(f"{npy}::other")


def test_npy_without_a_list_says_what_to_put_beside_it(npy):
    with refused("put m.tokens.json beside it"):
        load(npy)


def test_a_safetensors_file_that_is_cut_short_is_not_asked_for_tokens(tmp_path):
    whole = safetensors(float32(embedding=matrix(8, 4)))
    (tmp_path / "m.safetensors").write_bytes(whole[:-20])
    with refused("m.safetensors is truncated: embedding ends at byte"):
        load(tmp_path / "m.safetensors")
    (tmp_path / "m.safetensors").write_bytes(whole)
    with refused("put m.tokens.json beside it"):
        load(tmp_path / "m.safetensors")


def test_a_list_of_another_length_is_an_error(npy):
    npy.with_name("vocab.txt").write_text("a\nb\n")
    with refused("2 tokens for 8 rows"):
        load(npy)


def test_a_pickle_in_npy_is_refused(tmp_path):
    np.save(tmp_path / "m.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "vocab.txt").write_text("a\n")
    with refused("cannot be read as .npy"):
        load(tmp_path / "m.npy")


def test_npz_holds_both(tmp_path):
    np.savez(tmp_path / "m.npz", vectors=M.astype(np.float64), words=np.array(TOKENS))
    embeddings = load(tmp_path / "m.npz")
    assert list(embeddings.tokens) == TOKENS
    np.testing.assert_array_equal(embeddings.vectors, M)
    np.savez(tmp_path / "m.npz", first=M, second=M)
    with refused("holds first, second"):
        load(tmp_path / "m.npz")


def test_a_lone_safetensors_file(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(safetensors(float32(weight=M, other=matrix(seed=1), bias=M[0])))
    (tmp_path / "m.tokens.json").write_text(json.dumps(TOKENS))
    with refused("2 matrices", "::TENSOR"):
        load(path)
    np.testing.assert_array_equal(load(f"{path}::weight", wanted={"dog"}).vectors, M[[7]])
    with refused("'wait'", "weight, other"):
        load(f"{path}::wait")


# ---------------------------------------------------------------- objects


@pytest.mark.parametrize(
    "thing",
    [M, torch.from_numpy(M), torch.nn.Embedding.from_pretrained(torch.from_numpy(M))],
    ids=["array", "tensor", "layer"],
)
def test_an_object_with_its_tokens(thing):
    embeddings = load(thing, tokens=TOKENS, wanted={"dog"})
    assert (list(embeddings.tokens), embeddings.vectors.tolist()) == (["dog"], [M[7].tolist()])
    assert len(load(thing, tokens=TOKENS, most=3)) == 3
    with refused("(8, 4)", "load(x, tokens=[...])"):
        load(thing)


def test_duplicates_and_nan_rows_are_counted():
    broken = M.copy()
    broken[2] = np.nan
    embeddings = load(broken, tokens=[*TOKENS[:7], TOKENS[0]])
    assert list(embeddings.tokens) == [TOKENS[0], TOKENS[1], *TOKENS[3:7]]
    np.testing.assert_array_equal(embeddings.vectors[0], M[0])
    assert embeddings.origin.counts == {"rows": 8, "duplicates": 1, "rejected": 1, "rejected: NaN or infinite": 1}


def test_duplicates_among_wanted_tokens_are_counted_and_shown():
    broken = np.concatenate([M, M])
    broken[1] = np.nan
    embeddings = load(broken, tokens=[*TOKENS, *TOKENS], wanted=set(TOKENS))
    assert embeddings.origin.counts["duplicates"] == 8
    for shown in (
        str(embeddings),
        str(embinit.align(embeddings, TOKENS)),
        repr(embinit.diagnose(embinit.align(embeddings))),
    ):
        assert "duplicates: 8" in shown
        assert "1 row rejected (NaN or infinite)" in shown


def test_a_tokenizer_with_more_tokens_than_rows_is_an_error():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(1_200)}, unk_token="w0"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner)
    with refused("1,200 tokens", "1,100 rows", "own tokenizer"):
        load(matrix(1_100), tokens=tokenizer)
    assert len(load(matrix(1_300), tokens=tokenizer)) == 1_200
    with refused("1 token for 1,100 rows"):
        load(matrix(1_100), tokens=["a"])


def test_wanted_is_no_text():
    with refused("wanted=['dog']"):
        load(M, tokens=TOKENS, wanted="dog")


def test_gensims_fasttext_composes_words_from_their_ngrams():
    models = pytest.importorskip("gensim.models")
    lines = [["the", "graphene", "layer"], ["the", "graphite", "layer"]] * 20
    model = models.FastText(
        lines, vector_size=8, min_count=1, epochs=1, min_n=3, max_n=4, bucket=500, seed=0, workers=1
    )
    for source in (model, model.wv):
        aligned = embinit.align(source, ["graphene", "graphenes", "\udcff", ""])
        assert aligned.kinds == ("exact", "composed", "missing", "missing")
        np.testing.assert_array_equal(aligned.vectors[1], model.wv.get_vector("graphenes"))
    read = load(model, wanted={"graphene", "graphenes"})
    assert (list(read.tokens), read.composed) == (["graphene", "graphenes"], {"graphenes"})
    assert read.origin.counts["composed from n-grams"] == 1
    assert list(load(model, wanted={"graphene", "graphenes"}, compose=False).tokens) == ["graphene"]
    word2vec = models.Word2Vec(lines, vector_size=8, min_count=1, epochs=1, seed=0, workers=1)
    assert embinit.align(word2vec, ["graphene", "graphenes"]).kinds == ("exact", "missing")


@pytest.mark.parametrize(
    "thing",
    [3, [1.0, 2.0], np.zeros(3), np.array([["a"]]), np.zeros((1, 0)), torch.zeros(1, 4, device="meta")],
    ids=["number", "list", "1-D", "text", "no dimensions", "meta"],
)
def test_what_cannot_be_vectors_is_an_error(thing):
    with pytest.raises(EmbinitError):
        load(thing, tokens=["a"])


def test_embeddings_pass_through():
    embeddings = load(M, tokens=TOKENS)
    assert load(embeddings) is embeddings


# ---------------------------------------------------------------- model2vec


@pytest.mark.parametrize("inner", ["", "0_StaticEmbedding"], ids=["model2vec", "sentence-transformers"])
def test_model2vec_folder(inner, tmp_path):
    checkpoint(tmp_path / inner, {"embeddings": M}, {"model_type": "model2vec"})
    np.testing.assert_array_equal(load(tmp_path).vectors, M)


def test_model2vec_mapping_and_weights_are_seen_through(tmp_path):
    """Tokens share three rows through `mapping`, and each has a weight of its own."""
    shared, mapping = matrix(3), np.array([0, 1, 2, 0, 1, 2, 0, 1])
    weights = np.linspace(0.5, 2, 8)
    checkpoint(tmp_path, {}, {"model_type": "model2vec"})
    tensors = {
        **float32(embeddings=shared),
        "mapping": ("I64", (8,), mapping.astype("<i8").tobytes()),
        "weights": ("F64", (8,), weights.astype("<f8").tobytes()),
    }
    (tmp_path / "model.safetensors").write_bytes(safetensors(tensors))
    expected = shared[mapping] * weights[:, None].astype(np.float32)
    np.testing.assert_allclose(load(f"{tmp_path}::embeddings").vectors, expected, rtol=1e-6)
    np.testing.assert_allclose(load(tmp_path).vectors, expected, rtol=1e-6)


def test_a_mapping_beyond_the_rows_is_an_error(tmp_path):
    checkpoint(tmp_path, {"embeddings": matrix(3), "mapping": np.full(8, 5.0)}, {"model_type": "model2vec"})
    with refused("3 rows"):
        load(f"{tmp_path}::embeddings")


def test_fewer_weights_than_rows_are_an_error(tmp_path):
    checkpoint(tmp_path, {"embeddings": matrix(8), "weights": np.ones(2)}, {"model_type": "model2vec"})
    with refused("2 weights for 8 rows"):
        load(tmp_path)


def test_rows_that_are_all_nan_are_an_error(tmp_path):
    checkpoint(tmp_path, {"embeddings": np.full((8, 4), np.nan)}, {"model_type": "model2vec"})
    with refused(tmp_path, "no usable row"):
        load(tmp_path)


def test_an_array_without_dimensions_is_an_error(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((2, 0), np.float32))
    (tmp_path / "rows.txt").write_text("a\nb\n")
    with pytest.raises(EmbinitError, match=r"shape \(2, 0\)"):
        load(tmp_path / "rows.npy")
    with pytest.raises(EmbinitError, match=r"shape \(2, 0\)"):
        load(np.zeros((2, 0)), tokens=["a", "b"])
    with pytest.raises(EmbinitError, match=r"shape \(2, 0\)"):
        embinit.write(np.zeros((2, 0)), ["a", "b"], tmp_path / "out.npy")
