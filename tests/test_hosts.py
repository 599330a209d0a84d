"""Hosts told from a checkpoint's folder: what is measured, what is assumed and said so, and what is damage."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embinit.alignment import align
from embinit.diagnosis.diagnose import diagnose
from embinit.export.outputs import output_of
from embinit.hosts import host
from embinit.types import Embeddings, Origin
from tests.refusal import refused

from .sources.folders import float32, matrix, safetensors

WORDS = {"bert.embeddings.word_embeddings.weight": matrix(40, 16)}
POSITIONS = {"bert.embeddings.position_embeddings.weight": np.full((8, 16), 0.5, dtype=np.float32)}


def folder(path: Path, weights: bytes | None, kind: str = "bert") -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"model_type": kind, "hidden_size": 16}))
    if weights is not None:
        (path / "model.safetensors").write_bytes(weights)
    return path


def test_the_size_of_learned_positions_is_measured(tmp_path: Path) -> None:
    known = host(str(folder(tmp_path / "model", safetensors(float32(**WORDS, **POSITIONS)))))
    assert (known.position_rms, known.position_rms_assumed) == (0.5, False)


@pytest.mark.parametrize("weights", [None, safetensors(float32(**WORDS))], ids=["a config alone", "an embedding alone"])
def test_positions_that_are_not_there_are_assumed_and_the_verdict_says_so(
    weights: bytes | None, tmp_path: Path
) -> None:
    known = host(str(folder(tmp_path / "model", weights)))
    assert (known.position_rms, known.position_rms_assumed) == (0.02, True)
    rows = Embeddings([f"w{i}" for i in range(100)], matrix(100, 16), Origin("made", "made"))
    findings = {finding.name: finding.numbers for finding in diagnose(align(rows), host=known).verdict.findings}
    assert findings["positions"] == {"rms": 0.02, "host": "model (bert)"}
    assert diagnose(align(rows), host=known).as_dict()["host"]["position_rms_assumed"] is True
    assert "positions" not in {one.name for one in diagnose(align(rows), host="bert").verdict.findings}


@pytest.mark.parametrize("kept", [4, 60, 1500])
def test_a_damaged_file_of_weights_is_an_error_and_not_an_assumption(kept: int, tmp_path: Path) -> None:
    weights = safetensors(float32(**WORDS, **POSITIONS))
    assert kept < len(weights)
    with refused("model.safetensors", "truncated"):
        host(str(folder(tmp_path / "model", weights[:kept])))


def test_positions_that_are_no_numbers_are_an_error(tmp_path: Path) -> None:
    broken = {name: table * np.float32("nan") for name, table in POSITIONS.items()}
    with refused("position_embeddings.weight is damaged"):
        host(str(folder(tmp_path / "model", safetensors(float32(**broken)))))


def test_where_positions_are_not_learned_the_weights_are_not_read(tmp_path: Path) -> None:
    known = host(str(folder(tmp_path / "model", b"damaged", "llama")))
    assert (known.position_rms, known.position_rms_assumed) == (0.0, False)


# ---------------------------------------------------------------- objects of transformers

SIZES = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def test_a_config_and_a_model_are_hosts_like_their_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))
    model.save_pretrained(tmp_path / "model")
    read, whole, config = host(tmp_path / "model"), host(model), host(model.config)
    told = ("positions", "scaled", "tied", "norm", "initial", "dim", "numbers", "output_scaled")
    for name in told:
        assert getattr(whole, name) == getattr(read, name) == getattr(config, name), name
    assert whole.position_rms == pytest.approx(read.position_rms, rel=1e-6)
    assert (whole.position_rms_assumed, config.position_rms_assumed) == (False, True)
    assert whole.about == config.about == host("bert").about


def test_a_head_of_its_own_is_seen_in_the_model_itself() -> None:
    transformers = pytest.importorskip("transformers")
    for tied in (True, False):
        config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=tied)
        assert host(transformers.LlamaForCausalLM(config)).tied is tied


def test_a_model_without_an_output_layer_is_shown_as_such(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    headless = host(transformers.BertForSequenceClassification(transformers.BertConfig(**SIZES)))
    assert headless.headless and not host(transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))).headless
    assert "output layer        none" in str(headless) and "no output layer" in repr(headless)
    rows = Embeddings([f"w{i}" for i in range(100)], 50 * matrix(100, 16), Origin("made", "made"))
    findings = {
        name: [finding.name for finding in diagnose(align(rows), host=model).verdict.findings]
        for name, model in (("none", headless), ("tied", replace(headless, headless=False)))
    }
    assert "logits" in findings["tied"] and "logits" not in findings["none"]


def base_model(name: str, tied: bool) -> Any:
    transformers = pytest.importorskip("transformers")
    if name == "GPT2Model":
        config = transformers.GPT2Config(vocab_size=30, n_embd=16, n_layer=1, n_head=2, tie_word_embeddings=tied)
    elif name == "MarianDecoder":
        config = transformers.MarianConfig(
            vocab_size=30, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=8, pad_token_id=0,
            share_encoder_decoder_embeddings=False, tie_word_embeddings=tied,
        )  # fmt: skip
        return transformers.MarianModel(config).get_decoder()
    else:
        config = transformers.BertConfig(**SIZES, tie_word_embeddings=tied)
    return getattr(transformers, name)(config)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", ["BertModel", "GPT2Model", "MarianDecoder"])
def test_the_output_layer_of_a_base_model_is_outside_and_tied_as_its_config_says(name: str, tied: bool) -> None:
    model = base_model(name, tied)
    assert output_of(model, model.get_input_embeddings()) == "outside"
    described = host(model)
    assert (described.headless, described.output_outside, described.tied) == (False, True, tied)
    words = "tied to the embedding" if tied else "not tied"
    assert f"output layer        not part of this model; {words} by its config" in str(described)
    assert f", {'tied' if tied else 'not tied'} outside, " in repr(described)
    rows = Embeddings([f"w{i}" for i in range(100)], 50 * matrix(100, 16), Origin("made", "made"))
    diagnosis = diagnose(align(rows), host=model)
    assert ("logits" in {finding.name for finding in diagnosis.verdict.findings}) == tied
    assert diagnosis.as_dict()["host"]["headless"] is False


@pytest.mark.parametrize("scaled", [True, False])
def test_the_description_follows_the_config(scaled: bool) -> None:
    transformers = pytest.importorskip("transformers")
    known = host(transformers.MarianConfig(scale_embedding=scaled))
    assert (known.scaled, "× √D" in known.about) == (scaled, scaled)
    assert "× √D" in host("marian").about and "{" not in host("bert").about


def test_rows_of_another_dimension_than_the_model_are_noted() -> None:
    rows = align(Embeddings([f"w{i}" for i in range(100)], matrix(100, 8), Origin("made", "made")))
    known = replace(host("bert"), dim=16)
    findings = {finding.name: finding for finding in diagnose(rows, host=known).verdict.findings}
    assert (findings["dimension"].severity, findings["dimension"].numbers["model"]) == ("note", 16)
    for fitting in (replace(known, dim=8), host("bert")):
        assert "dimension" not in {finding.name for finding in diagnose(rows, host=fitting).verdict.findings}


def test_a_layer_has_a_dimension_and_the_default_for_the_rest() -> None:
    torch = pytest.importorskip("torch")
    assert host(torch.nn.Embedding(5, 12)) == replace(host(), dim=12)


def test_an_unknown_type_with_rotary_positions_is_like_llama_and_one_without_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "future", "rope_theta": 1e4, "initializer_range": 0.05}')
    assert (host(tmp_path).positions, host(tmp_path).initial) == ("rotary", 0.05)
    assert host(tmp_path).about == f"like llama: {host('llama').about}"
    (tmp_path / "config.json").write_text('{"model_type": "future"}')
    with refused("unknown model type 'future'", "name the known model"):
        host(tmp_path)


def test_diagnose_takes_the_model_itself() -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=100, n_embd=16, n_layer=1, n_head=2))
    rows = Embeddings([f"w{i}" for i in range(100)], matrix(100, 16), Origin("made", "made"))
    assert diagnose(align(rows), host=model).host == host(model)


@pytest.mark.parametrize("wrong", ["x" * 5000, 7, None], ids=["a long text", "a number", "nothing"])
def test_no_model_is_one_sentence(wrong: object) -> None:
    with refused("a folder with a config.json"):
        host(wrong)
