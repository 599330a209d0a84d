"""Language models as transformers' classes have them: the class that computes the same, its configuration, its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture

#: Ids of the special tokens that every prepared vocabulary has; a text begins with `<eos>`.
_SPECIALS = {"pad_token_id": 1, "bos_token_id": 3, "eos_token_id": 3}
#: The names of our activations in transformers.
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "swiglu": "silu"}
#: The values that every class requires, and the further values that one class requires.
_ALL = {"scaled": False, "hidden_dropout": False}
_REQUIRED: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {
        "task": "language_model", "positions": "learned", "norm": "pre", "norm_kind": "layer", "biases": True,
        "output_bias": False, "output_block": False, "final_norm": True, "embedding_norm": False,
        "activation": ("relu", "gelu", "gelu_tanh"),
    },
    "LlamaForCausalLM": {
        "task": "language_model", "positions": "rotary", "norm": "pre", "norm_kind": "rms", "output_bias": False,
        "output_block": False, "final_norm": True, "embedding_norm": False, "activation": ("swiglu",),
    },
    "BertForMaskedLM": {
        "task": "masked_language_model", "positions": "learned", "norm": "post", "norm_kind": "layer", "biases": True,
        "output_bias": True, "output_block": True, "final_norm": False, "embedding_norm": True,
        "activation": ("relu", "gelu", "gelu_tanh"),
    },
}  # fmt: skip


@dataclass(frozen=True)
class TransformersModel:
    """A class of transformers that computes what a model of this package computes."""

    #: the class, and the value of `model_type` in its configuration
    name: str
    kind: str
    config: dict[str, Any]


def transformers_model(a: Architecture) -> TransformersModel:
    """Return the class that computes the same and its configuration.

    Raises
    ------
    EmbinitError
        If transformers has no such class; the message names the closest one and the settings that differ.
    """
    differing = {name: list(_differences(a, required)) for name, required in _REQUIRED.items()}
    name = min(differing, key=lambda name: len(differing[name]))
    if differing[name]:
        raise EmbinitError(
            f"transformers has no class for this model; the closest is {name}, which needs {', '.join(differing[name])}"
        )
    shared = {
        "vocab_size": a.vocabularies[0], "tie_word_embeddings": a.tied, "initializer_range": 0.02, **_SPECIALS,
    }  # fmt: skip
    own = {"GPT2LMHeadModel": _gpt2, "LlamaForCausalLM": _llama, "BertForMaskedLM": _bert}[name](a)
    return TransformersModel(name, own.pop("model_type"), {**shared, **own})


def _differences(a: Architecture, required: Mapping[str, Any]) -> Iterator[str]:
    for setting, wanted in {**_ALL, **required}.items():
        value = getattr(a, setting)
        if setting == "hidden_dropout" and a.dropout == 0:
            continue
        if isinstance(wanted, tuple):
            if value not in wanted:
                yield f"{setting} {' or '.join(wanted)} instead of {value}"
        elif value != wanted:
            yield f"{setting} {_text(wanted)} instead of {_text(value)}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _gpt2(a: Architecture) -> dict[str, Any]:
    return {
        "model_type": "gpt2", "n_positions": a.length, "n_embd": a.dim, "n_layer": a.layers, "n_head": a.heads,
        "n_inner": a.feedforward, "activation_function": _ACTIVATIONS[a.activation],
        "layer_norm_epsilon": a.norm_epsilon, "resid_pdrop": a.dropout, "embd_pdrop": a.dropout,
        "attn_pdrop": a.dropout,
    }  # fmt: skip


def _llama(a: Architecture) -> dict[str, Any]:
    return {
        "model_type": "llama", "max_position_embeddings": a.length, "hidden_size": a.dim, "head_dim": a.dim // a.heads,
        "num_hidden_layers": a.layers, "num_attention_heads": a.heads, "num_key_value_heads": a.heads,
        "intermediate_size": a.feedforward, "hidden_act": "silu", "rms_norm_eps": a.norm_epsilon,
        "attention_bias": a.biases, "mlp_bias": a.biases, "attention_dropout": a.dropout,
        "rope_parameters": {"rope_type": "default", "rope_theta": a.base},
    }  # fmt: skip


def _bert(a: Architecture) -> dict[str, Any]:
    return {
        "model_type": "bert", "max_position_embeddings": a.length, "hidden_size": a.dim,
        "num_hidden_layers": a.layers, "num_attention_heads": a.heads, "intermediate_size": a.feedforward,
        "hidden_act": _ACTIVATIONS[a.activation], "layer_norm_eps": a.norm_epsilon, "type_vocab_size": 2,
        "hidden_dropout_prob": a.dropout, "attention_probs_dropout_prob": a.dropout,
    }  # fmt: skip


def transformers_weights(a: Architecture, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return one member's weights under the names, and in the shapes, of the class of `transformers_model`."""
    name = transformers_model(a).name
    make = {"GPT2LMHeadModel": _gpt2_weights, "LlamaForCausalLM": _llama_weights, "BertForMaskedLM": _bert_weights}
    return dict(make[name](a, weights))


_Named = Iterator[tuple[str, Tensor]]


def _both(ours: str, theirs: str, weights: Mapping[str, Tensor], transposed: bool = False) -> _Named:
    """Yield a layer's weight and its bias; PyTorch stores a matrix as (out, in), GPT-2 and this package as (in, out)."""
    weight = weights[f"{ours}.weight"]
    yield f"{theirs}.weight", weight.T if transposed else weight
    if f"{ours}.bias" in weights:
        yield f"{theirs}.bias", weights[f"{ours}.bias"]


def _gpt2_weights(a: Architecture, weights: Mapping[str, Tensor]) -> _Named:
    yield "transformer.wte.weight", weights["text.embedding"]
    yield "transformer.wpe.weight", weights["text.positions"]
    parts = {
        "self.norm": "ln_1", "self.qkv": "attn.c_attn", "self.out": "attn.c_proj", "feedforward.norm": "ln_2",
        "up": "mlp.c_fc", "down": "mlp.c_proj",
    }  # fmt: skip
    for layer in range(a.layers):
        for ours, theirs in parts.items():
            yield from _both(f"decoder.{layer}.{ours}", f"transformer.h.{layer}.{theirs}", weights)
    yield from _both("decoder.norm", "transformer.ln_f", weights)
    yield from _untied(a, "lm_head.weight", weights)


def _untied(a: Architecture, name: str, weights: Mapping[str, Tensor]) -> _Named:
    yield name, weights["text.embedding"] if a.tied else weights["output.weight"].T


def _llama_weights(a: Architecture, weights: Mapping[str, Tensor]) -> _Named:
    yield "model.embed_tokens.weight", weights["text.embedding"]
    parts = {
        "self.out": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
    }  # fmt: skip
    norms = {"self.norm": "input_layernorm", "feedforward.norm": "post_attention_layernorm"}
    for layer in range(a.layers):
        mine, own = f"decoder.{layer}", f"model.layers.{layer}"
        for part, matrix in zip("qkv", weights[f"{mine}.self.qkv.weight"].chunk(3, dim=-1), strict=True):
            yield f"{own}.self_attn.{part}_proj.weight", _turned_halves(matrix, a, part).T
        if a.biases:
            for part, bias in zip("qkv", weights[f"{mine}.self.qkv.bias"].chunk(3, dim=-1), strict=True):
                yield f"{own}.self_attn.{part}_proj.bias", _turned_halves(bias, a, part)
        for ours, theirs in parts.items():
            yield from _both(f"{mine}.{ours}", f"{own}.{theirs}", weights, transposed=True)
        for ours, theirs in norms.items():
            yield from _both(f"{mine}.{ours}", f"{own}.{theirs}", weights)
    yield from _both("decoder.norm", "model.norm", weights)
    yield from _untied(a, "lm_head.weight", weights)


def _turned_halves(columns: Tensor, a: Architecture, part: str) -> Tensor:
    """Return columns of queries or keys in transformers' order.

    Rotary positions turn pairs of numbers. Here the numbers of a pair are neighbours; transformers keeps the first numbers
    of all pairs in the first half of a head.
    """
    if part == "v":
        return columns
    heads = columns.reshape(*columns.shape[:-1], a.heads, -1)
    return torch.cat((heads[..., ::2], heads[..., 1::2]), dim=-1).reshape(columns.shape)


def _bert_weights(a: Architecture, weights: Mapping[str, Tensor]) -> _Named:
    yield "bert.embeddings.word_embeddings.weight", weights["text.embedding"]
    yield "bert.embeddings.position_embeddings.weight", weights["text.positions"]
    # There is one kind of segment, whose row is part of the positions.
    yield "bert.embeddings.token_type_embeddings.weight", torch.zeros(2, a.dim)
    yield from _both("text.norm", "bert.embeddings.LayerNorm", weights)
    parts = {"self.out": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
    norms = {"self.norm": "attention.output.LayerNorm", "feedforward.norm": "output.LayerNorm"}
    for layer in range(a.layers):
        mine, own = f"encoder.{layer}", f"bert.encoder.layer.{layer}"
        for kind in ("weight", "bias"):
            three = weights[f"{mine}.self.qkv.{kind}"].chunk(3, dim=-1)
            for part, values in zip(("query", "key", "value"), three, strict=True):
                yield f"{own}.attention.self.{part}.{kind}", values.T if kind == "weight" else values
        for ours, theirs in parts.items():
            yield from _both(f"{mine}.{ours}", f"{own}.{theirs}", weights, transposed=True)
        for ours, theirs in norms.items():
            yield from _both(f"{mine}.{ours}", f"{own}.{theirs}", weights)
    yield from _both("output.block", "cls.predictions.transform.dense", weights, transposed=True)
    yield from _both("output.norm", "cls.predictions.transform.LayerNorm", weights)
    yield "cls.predictions.bias", weights["output.bias"]
    yield "cls.predictions.decoder.bias", weights["output.bias"]
    yield from _untied(a, "cls.predictions.decoder.weight", weights)
