"""Checkpoints that transformers saves: the rows are those of get_input_embeddings()."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from embinit.sources.load import load

from .folders import sentencepiece_model

WORDS = [f"w{i}" for i in range(40)]


def bert():
    config = BertConfig(vocab_size=40, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    return BertModel(config)


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=2, n_positions=16))


def t5():
    return T5ForConditionalGeneration(T5Config(vocab_size=40, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))


@pytest.mark.parametrize("make", [bert, gpt2, t5])
@pytest.mark.parametrize("shard", ["50GB", "1KB"], ids=["one file", "shards"])
def test_rows_are_those_of_transformers(make, shard, tmp_path):
    model = make()
    model.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "1KB")
    Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "w0")).save(str(tmp_path / "tokenizer.json"))
    expected = model.get_input_embeddings().weight.detach().numpy()
    embeddings = load(tmp_path)
    assert list(embeddings.tokens) == WORDS
    np.testing.assert_array_equal(embeddings.vectors, expected)
    np.testing.assert_array_equal(load(tmp_path, wanted={"w7", "w3"}).vectors, expected[[3, 7]])


def test_half_precision_as_transformers_saves_it(tmp_path):
    model = gpt2().bfloat16()
    model.save_pretrained(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(WORDS)}))
    expected = model.get_input_embeddings().weight.detach().float().numpy()
    np.testing.assert_array_equal(load(tmp_path).vectors, expected)


def test_t5_with_its_sentencepiece_model(tmp_path):
    """10 pieces, 100 extra ids, and 18 rows of padding, as T5's own 32,000 + 100 + 28."""
    model = T5ForConditionalGeneration(T5Config(vocab_size=128, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2))
    model.save_pretrained(tmp_path)
    pieces = [("<pad>", 3), ("</s>", 3), ("<unk>", 2), *((f"▁w{i}", 1) for i in range(7))]
    (tmp_path / "spiece.model").write_bytes(sentencepiece_model(pieces))
    embeddings = load(tmp_path)
    weight = model.shared.weight.detach().numpy()
    assert len(embeddings) == 110
    assert embeddings.origin.counts["rows beyond the tokenizer, cut"] == 18
    np.testing.assert_array_equal(embeddings.vectors[embeddings.index["▁w3"]], weight[6])
    np.testing.assert_array_equal(embeddings.vectors[embeddings.index["<extra_id_99>"]], weight[10])
    np.testing.assert_array_equal(embeddings.vectors[embeddings.index["<extra_id_0>"]], weight[109])
    assert {"<pad>", "</s>", "<unk>", "<extra_id_0>"} <= embeddings.specials
