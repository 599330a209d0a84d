"""Tiny models of four families with tokenizers of four kinds, trained on generated captions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import embinit
from embinit.corpora import captions

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

DIM = 16
NEW = ("graphene", "perovskite", "planetarium", "covid-19", "p53")
SPECIALS = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]


@cache
def caption_lines() -> tuple[str, ...]:
    return tuple(text for pair in captions.pairs(1500, 0, "train") for text in pair)


@cache
def words() -> tuple[str, ...]:
    """Return several thousand different words of this package's own source."""
    sources = sorted(Path(embinit.__file__).parent.rglob("*.py"))
    found = {word for path in sources for word in path.read_text("utf-8").split() if word.isprintable()}
    return tuple(sorted(word for word in found if not set(word) & set("<>▁")))


def _trained(kind: str) -> Any:
    pre, normalizers, decoders = tokenizers.pre_tokenizers, tokenizers.normalizers, tokenizers.decoders
    options = {"special_tokens": SPECIALS, "show_progress": False}
    if kind == "byte-level BPE":
        made = tokenizers.Tokenizer(tokenizers.models.BPE())
        made.pre_tokenizer, made.decoder = pre.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        alphabet = pre.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, **options)
    elif kind == "sentence BPE":
        made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
        made.pre_tokenizer, made.decoder = (
            pre.Metaspace(prepend_scheme="first"),
            decoders.Metaspace(prepend_scheme="first"),
        )
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, **options)
    elif kind == "WordPiece":
        made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="<unk>"))
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=600, **options)
    else:
        made = tokenizers.Tokenizer(tokenizers.models.Unigram())
        made.normalizer, made.pre_tokenizer = normalizers.NFKC(), pre.Metaspace(prepend_scheme="always")
        made.decoder = decoders.Metaspace(prepend_scheme="always")
        trainer = tokenizers.trainers.UnigramTrainer(vocab_size=500, unk_token="<unk>", **options)
    # Words of the source make every sign known.
    made.train_from_iterator([*caption_lines(), *words()[::7]], trainer)
    if kind == "sentence BPE":  # trained on words, used on whole sentences, as Llama's is
        made.pre_tokenizer = pre.Metaspace(prepend_scheme="first", split=False)
    return made


@cache
def _tokenizer_json(kind: str) -> str:
    return str(_trained(kind).to_str())


def tokenizer_of(kind: str) -> Any:
    own = tokenizers.Tokenizer.from_str(_tokenizer_json(kind))
    names = ["input_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=own, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        mask_token="<mask>", model_input_names=names,
    )  # fmt: skip


def bert(rows: int) -> Any:
    config = transformers.BertConfig(
        vocab_size=rows, hidden_size=DIM, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, pad_token_id=0,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config)
    torch.nn.init.normal_(model.cls.predictions.bias)
    return model


def gpt2(rows: int) -> Any:
    config = transformers.GPT2Config(
        vocab_size=rows, n_embd=DIM, n_layer=1, n_head=2, n_positions=64, bos_token_id=2, eos_token_id=3
    )
    return transformers.GPT2LMHeadModel(config)


def llama(rows: int) -> Any:
    config = transformers.LlamaConfig(
        vocab_size=rows, hidden_size=DIM, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        tie_word_embeddings=False, bos_token_id=2, eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def t5(rows: int) -> Any:
    config = transformers.T5Config(
        vocab_size=rows, d_model=DIM, d_kv=8, d_ff=32, num_layers=1, num_heads=2, pad_token_id=0, eos_token_id=3,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


#: family -> its model, and the kind of its tokenizer
FAMILIES: dict[str, tuple[Callable[[int], Any], str]] = {
    "bert": (bert, "WordPiece"),
    "gpt2": (gpt2, "byte-level BPE"),
    "llama": (llama, "sentence BPE"),
    "t5": (t5, "Unigram"),
}
KINDS = tuple(kind for _, kind in FAMILIES.values())


def made(family: str, spare: int = 0) -> tuple[Any, Any]:
    """Return a model with random weights and its tokenizer; the model has `spare` rows more than tokens."""
    make, kind = FAMILIES[family]
    tokenizer = tokenizer_of(kind)
    torch.manual_seed(0)
    model = make(len(tokenizer) + spare)
    return model.eval(), tokenizer


def save(family: str, folder: Path, spare: int = 0) -> Path:
    model, tokenizer = made(family, spare)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
