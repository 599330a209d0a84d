"""The embedding of a checkpoint: which tensor, which rows, and what is left out."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import torch

from embinit.sources.load import load
from tests.refusal import refused

from .folders import TOKENS, checkpoint, float32, matrix, safetensors

M, OTHER = matrix(), matrix(seed=1)
SQUARE = matrix(4, 4)

# model_type -> names as the families' own checkpoints have them, the embedding first.
FAMILIES = {
    "bert": ["bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"],
    "roberta": ["roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"],
    "xlm-roberta": ["roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"],
    "camembert": ["roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"],
    "distilbert": ["distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight"],
    "mpnet": ["embeddings.word_embeddings.weight", "pooler.dense.weight"],
    "electra": ["electra.embeddings.word_embeddings.weight", "generator_lm_head.weight"],
    "albert": ["albert.embeddings.word_embeddings.weight", "predictions.decoder.weight"],
    "deberta-v2": ["deberta.embeddings.word_embeddings.weight", "lm_predictions.lm_head.weight"],
    "modernbert": ["model.embeddings.tok_embeddings.weight", "decoder.weight"],
    "t5": ["shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"],
    "mt5": ["shared.weight", "lm_head.weight"],
    "umt5": ["shared.weight", "lm_head.weight"],
    "bart": ["model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"],
    "mbart": ["model.shared.weight", "model.decoder.embed_tokens.weight"],
    "marian": ["model.shared.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"],
    "gpt2": ["transformer.wte.weight", "lm_head.weight"],
    "gpt_neo": ["transformer.wte.weight", "lm_head.weight"],
    "gpt_neox": ["gpt_neox.embed_in.weight", "embed_out.weight"],
    "bloom": ["transformer.word_embeddings.weight", "lm_head.weight"],
    "falcon": ["transformer.word_embeddings.weight", "lm_head.weight"],
    "llama": ["model.embed_tokens.weight", "lm_head.weight"],
    "mistral": ["model.embed_tokens.weight", "lm_head.weight"],
    "gemma": ["model.embed_tokens.weight", "lm_head.weight"],
    "gemma3": ["model.language_model.embed_tokens.weight", "lm_head.weight"],
    "qwen2": ["model.embed_tokens.weight", "lm_head.weight"],
    "opt": ["model.decoder.embed_tokens.weight", "lm_head.weight"],
    "xlnet": ["transformer.word_embedding.weight", "lm_loss.weight"],
    "model2vec": ["embeddings"],
}


def arrays(names: list[str]) -> dict[str, np.ndarray]:
    """Return a checkpoint of these tensors, with others of a layer between them."""
    layer = {"encoder.layer.0.attention.self.query.weight": SQUARE, "ln.bias": matrix(1, 4)[0]}
    return {**dict.fromkeys(names[1:], OTHER), **layer, names[0]: M}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_embedding_is_found_by_family(family, tmp_path):
    names = FAMILIES[family]
    embeddings = load(checkpoint(tmp_path, arrays(names), {"model_type": family, "vocab_size": 8}))
    assert embeddings.origin.format == f"checkpoint ({names[0]})"
    assert list(embeddings.tokens) == TOKENS
    np.testing.assert_array_equal(embeddings.vectors, M)


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"model2vec"}))
def test_the_embedding_is_found_by_its_ending_in_a_family_of_the_future(family, tmp_path):
    embeddings = load(checkpoint(tmp_path, arrays(FAMILIES[family]), {"model_type": "future"}))
    np.testing.assert_array_equal(embeddings.vectors, M)


def test_the_embedding_is_found_by_shape(tmp_path):
    tensors = {"odd.name": M, "small": SQUARE, "lm_head.weight": OTHER}
    embeddings = load(checkpoint(tmp_path, tensors, {"model_type": "future", "vocab_size": 8}))
    np.testing.assert_array_equal(embeddings.vectors, M)


def test_the_encoders_table_goes_before_the_decoders(tmp_path):
    names = ["model.encoder.embed_tokens.weight", "decoder.embed_tokens.weight"]
    np.testing.assert_array_equal(load(checkpoint(tmp_path, arrays(names), {"model_type": "llama"})).vectors, M)


def test_several_candidates_are_named(tmp_path):
    checkpoint(tmp_path, {"first.table": M, "second.table": OTHER}, {})
    with refused("several tensors (first.table, second.table)", "::TENSOR"):
        load(tmp_path)
    np.testing.assert_array_equal(load(f"{tmp_path}::second.table").vectors, OTHER)


def test_no_candidate_is_an_error_that_says_how_to_name_one(tmp_path):
    with refused("no tensor could be the embedding", "::TENSOR"):
        load(checkpoint(tmp_path, {"ln.weight": matrix(1, 4)[0]}, {}))


def test_an_unknown_tensor_names_the_closest(tmp_path):
    checkpoint(tmp_path, arrays(FAMILIES["bert"]), {"model_type": "bert"})
    with refused("'bert.embeddings.word_embeddings.weight'"):
        load(f"{tmp_path}::bert.embeddings.word_embedding.weight")
    with refused("expected a matrix"):
        load(f"{tmp_path}::ln.bias")


# ---------------------------------------------------------------- rows


def test_wanted_and_most(tmp_path):
    checkpoint(tmp_path, arrays(FAMILIES["bert"]), {"model_type": "bert"})
    embeddings = load(tmp_path, wanted={"dog", "the", "absent"})
    assert dict(zip(embeddings.tokens, embeddings.vectors.tolist(), strict=True)) == {
        "the": M[4].tolist(),
        "dog": M[7].tolist(),
    }
    assert list(load(tmp_path, most=3).tokens) == TOKENS[:3]


def test_specials_are_those_of_the_tokenizer(tmp_path):
    checkpoint(tmp_path, arrays(FAMILIES["bert"]), {"model_type": "bert"})
    assert load(tmp_path).specials == {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}


def test_padded_rows_are_cut_and_counted(tmp_path):
    """T5's matrix has 28 rows more than its tokenizer has tokens."""
    padded = matrix(8 + 28)
    embeddings = load(checkpoint(tmp_path, {"shared.weight": padded}, {"model_type": "t5", "vocab_size": 36}))
    np.testing.assert_array_equal(embeddings.vectors, padded[:8])
    assert embeddings.origin.counts == {"rows": 8, "rows beyond the tokenizer, cut": 28}


def test_tokens_without_a_row_are_counted(tmp_path):
    config = {"model_type": "bert", "vocab_size": 6}
    embeddings = load(checkpoint(tmp_path, {"bert.embeddings.word_embeddings.weight": M[:6]}, config))
    assert list(embeddings.tokens) == TOKENS[:6]
    assert embeddings.origin.counts["tokens without a row"] == 2


def test_nan_rows_are_counted_out(tmp_path):
    broken = M.copy()
    broken[5, 1], broken[7, 0] = np.nan, np.inf
    embeddings = load(checkpoint(tmp_path, {"embeddings.word_embeddings.weight": broken}, {"model_type": "bert"}))
    assert list(embeddings.tokens) == [t for t in TOKENS if t not in ("cat", "dog")]
    assert embeddings.origin.counts["rejected: NaN or infinite"] == 2
    assert embeddings.origin.examples[0] == "the row of 'cat' is NaN or infinite"


def test_words_are_composed_from_pieces(tmp_path):
    checkpoint(tmp_path, {"embeddings.word_embeddings.weight": M}, {"model_type": "bert"})
    (tmp_path / "vocab.txt").write_text("\n".join([*TOKENS[:6], "##s", "##ss"]))  # two marks make a scheme
    compose = load(tmp_path).compose
    assert compose is not None
    vectors, made = compose(["cats", "zebra"])
    assert made.tolist() == [True, False]
    np.testing.assert_allclose(vectors[0], (M[5] + M[6]) / 2, rtol=1e-6)


def test_continuation_pieces_are_composed_from_the_longest_pieces_inside_words(tmp_path):
    checkpoint(tmp_path, {"embeddings.word_embeddings.weight": M}, {"model_type": "bert"})
    (tmp_path / "vocab.txt").write_text("\n".join([*TOKENS[:5], "##ing", "##s", "##in"]))
    inside = load(tmp_path).compose_inside
    assert inside is not None
    vectors, made = inside(["ings", "INS", "cat", "ingx"])
    assert made.tolist() == [True, True, False, False]
    np.testing.assert_allclose(vectors[0], (M[5] + M[6]) / 2, rtol=1e-6)
    np.testing.assert_allclose(vectors[1], (M[7] + M[6]) / 2, rtol=1e-6)


def test_a_piece_beyond_the_rows_is_skipped_and_counted(tmp_path):
    rows = matrix(7)  # `dog`, the last token, has no row
    checkpoint(tmp_path, {"embeddings.word_embeddings.weight": rows}, {"model_type": "bert", "vocab_size": 7})
    source = load(tmp_path, wanted={"cats"})
    assert source.compose is not None
    vectors, made = source.compose(["cat dog", "dog", "cats"])
    assert made.tolist() == [True, False, True]
    np.testing.assert_allclose(vectors[0], rows[5])
    assert source.origin.counts["words with a piece that has no row, which was skipped"] == 2
    assert source.origin.counts["tokens without a row"] == 1


@pytest.mark.parametrize(
    ("kind", "file", "name"),
    [
        ("mt5", "spiece.model", "shared.weight"),
        ("xlm-roberta", "sentencepiece.bpe.model", "roberta.embeddings.word_embeddings.weight"),
    ],
)
def test_words_are_composed_from_the_pieces_of_a_sentencepiece_model_alone(kind, file, name, tmp_path):
    (tmp_path / "text").write_text("the cats sat on the mats\n" * 50)
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "m"), vocab_size=60, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    rows = np.random.default_rng(0).normal(size=(library.get_piece_size() + 110, 4)).astype(np.float32)
    folder = checkpoint(tmp_path / "model", {name: rows}, {"model_type": kind, "vocab_size": len(rows)})
    (folder / "vocab.txt").unlink()
    (tmp_path / "m.model").rename(folder / file)
    compose = load(folder).compose
    assert compose is not None
    vectors, made = compose(["matsat", "日"])
    assert made.tolist() == [True, False]
    moved = 1 if kind == "xlm-roberta" else 0  # fairseq's numbers are one more, specials aside
    ids = library.encode("matsat")
    assert len(ids) > 1
    np.testing.assert_allclose(vectors[0], rows[[i + moved for i in ids]].mean(axis=0), rtol=1e-5)


# ---------------------------------------------------------------- files


def test_shards_are_found_by_their_index(tmp_path):
    checkpoint(tmp_path, {}, {"model_type": "llama", "vocab_size": 8})
    (tmp_path / "model.safetensors").unlink()
    shards = {"model-1.safetensors": {"model.embed_tokens.weight": M}, "model-2.safetensors": {"lm_head.weight": OTHER}}
    for file, tensors in shards.items():
        (tmp_path / file).write_bytes(safetensors(float32(**tensors)))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: file for file, ts in shards.items() for name in ts}}))
    np.testing.assert_array_equal(load(tmp_path).vectors, M)
    (tmp_path / "model-1.safetensors").unlink()
    with refused("model-1.safetensors", "index"):
        load(tmp_path)


@pytest.mark.parametrize("file", ["../secret.safetensors", "/secret.safetensors"])
def test_a_shard_outside_of_the_folder_is_refused(file, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"wte.weight": file}}))
    with refused("model.safetensors.index.json", file):
        load(folder)


def test_a_cut_weight_file_is_an_error(tmp_path):
    checkpoint(tmp_path, {"embeddings.word_embeddings.weight": M}, {"model_type": "bert"})
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with refused("model.safetensors is truncated"):
        load(tmp_path)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before torch 1.6"])
def test_torch_weights_are_read(zipped, tmp_path):
    checkpoint(tmp_path, {}, {"model_type": "bert", "vocab_size": 8})
    (tmp_path / "model.safetensors").unlink()
    state = {"bert.embeddings.word_embeddings.weight": torch.from_numpy(M).bfloat16(), "step": 5}
    torch.save(state, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    expected = torch.from_numpy(M).bfloat16().float().numpy()
    np.testing.assert_array_equal(load(tmp_path).vectors, expected)
    np.testing.assert_array_equal(load(tmp_path, wanted={"dog"}).vectors, expected[[7]])


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_no_code_of_a_torch_file_is_run(tmp_path):
    checkpoint(tmp_path, {}, {"model_type": "bert"})
    (tmp_path / "model.safetensors").unlink()
    ran = tmp_path / "ran"
    torch.save({"weight": Malicious(ran)}, tmp_path / "pytorch_model.bin")
    with refused("cannot be read as plain weights"):
        load(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Malicious(ran)))
    with refused("cannot be read as plain weights"):
        load(tmp_path)
    assert not ran.exists()
    pickle.loads(pickle.dumps(Malicious(ran)))  # it would have
    assert ran.exists()
