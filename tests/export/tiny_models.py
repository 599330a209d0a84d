"""Tiny models of five families in folders, with a word-level tokenizer, and vectors for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embinit.types import Embeddings, Origin

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SPECIALS = ["<pad>", "<unk>", "<s>", "</s>", "STOP"]  # the last is special by the tokenizer's word alone
WORDS = ["cat", "dog", "bird", "fish", "horse", "cow", "Über"]
TOKENS = [*SPECIALS, *WORDS]
ROWS, DIM = len(TOKENS) + 3, 8  # models have more rows than tokens


def bert() -> Any:
    config = transformers.BertConfig(
        vocab_size=ROWS,
        hidden_size=DIM,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        pad_token_id=0,
    )
    model = transformers.BertForMaskedLM(config)
    torch.nn.init.normal_(model.cls.predictions.bias)
    return model


def gpt2() -> Any:
    config = transformers.GPT2Config(
        vocab_size=ROWS, n_embd=DIM, n_layer=1, n_head=2, n_positions=16, bos_token_id=2, eos_token_id=3
    )
    return transformers.GPT2LMHeadModel(config)


def t5() -> Any:
    config = transformers.T5Config(
        vocab_size=ROWS,
        d_model=DIM,
        d_kv=4,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=3,
        decoder_start_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config)


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=ROWS,
        hidden_size=DIM,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        tie_word_embeddings=False,
        bos_token_id=2,
        eos_token_id=[3, 4],
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config)


def marian() -> Any:
    config = transformers.MarianConfig(
        vocab_size=ROWS,
        decoder_vocab_size=ROWS,
        d_model=DIM,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=16,
        pad_token_id=0,
        eos_token_id=3,
        bos_token_id=2,
        decoder_start_token_id=0,
        forced_eos_token_id=3,
    )
    model = transformers.MarianMTModel(config)
    model.final_logits_bias.normal_()
    return model


FAMILIES: dict[str, Callable[[], Any]] = {"bert": bert, "gpt2": gpt2, "t5": t5, "llama": llama, "marian": marian}
TIED = {"bert": True, "gpt2": True, "t5": True, "llama": False, "marian": True}


def save(make: Callable[[], Any], folder: Path, tokenizer: bool = True) -> Path:
    torch.manual_seed(0)
    make().save_pretrained(folder)
    if tokenizer:
        ids = {token: i for i, token in enumerate(TOKENS)}
        own = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="<unk>"))
        own.add_special_tokens(SPECIALS)
        own.save(str(folder / "tokenizer.json"))
    return folder


def vectors(tokens: list[str], dim: int = DIM) -> Embeddings:
    rows = np.random.default_rng(5).normal(3, 1, (len(tokens), dim)).astype(np.float32)
    return Embeddings(tokens, rows, Origin("test", "array"))


def weights(folder: Path) -> tuple[Any, Any]:
    """Return input and output weights as transformers loads them, by the class that the config names."""
    config = json.loads((folder / "config.json").read_text())
    loaded = getattr(transformers, config["architectures"][0]).from_pretrained(folder)
    return (
        loaded.get_input_embeddings().weight.detach().numpy(),
        loaded.get_output_embeddings().weight.detach().numpy(),
    )
