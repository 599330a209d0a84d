"""A model that cannot be extended, or whose extension fails, is as it was before."""

from __future__ import annotations

from typing import Any

import pytest

import embinit
from embinit.extending import extend as extending
from embinit.extending.restoration import restored_after_errors
from tests.extending.made import DIM, FAMILIES, NEW, made, tokenizer_of, torch, transformers
from tests.refusal import refused


def state_of(model: Any) -> tuple[dict[str, Any], list[int], dict[str, Any], list[int]]:
    """Return a copy of everything that an extension changes, and the identities of the parameters."""
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    sizes = [len(model.get_input_embeddings().weight), model.get_input_embeddings().num_embeddings]
    return tensors, sizes, model.config.to_dict(), [id(parameter) for parameter in model.parameters()]


def check_same(model: Any, before: tuple[dict[str, Any], list[int], dict[str, Any], list[int]]) -> None:
    tensors, *others = state_of(model)
    assert tensors.keys() == before[0].keys()
    assert all(torch.equal(tensor, before[0][name]) for name, tensor in tensors.items())
    assert tuple(others) == before[1:]


def marian(rows: int, **settings: Any) -> Any:
    config = transformers.MarianConfig(
        vocab_size=rows, d_model=DIM, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64, pad_token_id=0,
        eos_token_id=3, decoder_start_token_id=0, **settings,
    )  # fmt: skip
    return transformers.MarianMTModel(config)


def encoder_decoder(rows: int) -> Any:
    sizes = {"vocab_size": rows, "hidden_size": DIM, "num_hidden_layers": 1, "num_attention_heads": 2}
    encoder = transformers.BertConfig(**sizes, intermediate_size=32)
    decoder = transformers.BertConfig(**sizes, intermediate_size=32, is_decoder=True, add_cross_attention=True)
    return transformers.EncoderDecoderModel(
        encoder=transformers.BertModel(encoder), decoder=transformers.BertLMHeadModel(decoder)
    )


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_with_its_own_embedding_is_refused_before_anything_changes(tied: bool) -> None:
    tokenizer = tokenizer_of("Unigram")
    model = marian(len(tokenizer), share_encoder_decoder_embeddings=False, tie_word_embeddings=tied)
    before = state_of(model)
    with refused("MarianMTModel", "share one embedding"):
        embinit.extend(model, tokenizer, NEW, method="pieces")
    check_same(model, before)


def test_a_shared_embedding_is_extended_without_a_notice_of_transformers(capfd: pytest.CaptureFixture[str]) -> None:
    tokenizer = tokenizer_of("Unigram")
    model = marian(len(tokenizer), share_encoder_decoder_embeddings=True)
    capfd.readouterr()
    extension = embinit.extend(model, tokenizer, NEW, method="pieces")
    assert len(model.get_decoder().get_input_embeddings().weight) == extension.rows
    printed = capfd.readouterr()
    assert "will be initialized" not in printed.out + printed.err


def test_the_parts_of_an_encoder_decoder_model_are_extended_one_by_one() -> None:
    tokenizer = tokenizer_of("Unigram")
    model = encoder_decoder(len(tokenizer))
    with refused("EncoderDecoderModel", "extend(model.encoder, …) and extend(model.decoder, …)"):
        embinit.extend(model, tokenizer, NEW, method="pieces")
    for part in (model.encoder, model.decoder):
        embinit.extend(part, tokenizer, NEW, method="pieces")
    assert model.config.encoder.vocab_size == model.config.decoder.vocab_size == len(tokenizer) + len(NEW)


def test_a_model_without_weights_is_refused() -> None:
    _, tokenizer = made("bert")
    with torch.device("meta"):
        empty = transformers.BertModel(transformers.BertConfig(vocab_size=len(tokenizer), hidden_size=24))
    with refused("BertModel has no weights yet (device meta)"):
        embinit.extend(empty, tokenizer, NEW)


@pytest.mark.parametrize("spare", [0, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_after_any_error_the_model_is_as_it_was(family: str, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = made(family, spare)
    before = state_of(model)

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(extending, "measure_layers", stop)  # the last step: the rows are in the model already
    with pytest.raises(KeyboardInterrupt):
        embinit.extend(model, tokenizer, NEW, method="pieces")
    check_same(model, before)


def test_a_model_that_was_resized_in_part_is_restored() -> None:
    model = marian(50, share_encoder_decoder_embeddings=False)
    before = state_of(model)
    with pytest.raises(RuntimeError, match="stop"), restored_after_errors(model):
        model.resize_token_embeddings(60)
        model.config.pad_token_id = 7
        raise RuntimeError("stop")
    check_same(model, before)
    assert model(input_ids=torch.tensor([[1, 2]]), decoder_input_ids=torch.tensor([[1]])).logits.shape[-1] == 50


def test_frozen_weights_and_hooks_are_restored() -> None:
    model = marian(50)
    model.get_encoder().layers[0].requires_grad_(False)
    calls: list[str] = []
    model.register_forward_pre_hook(lambda *_: calls.append("before"))
    before = [parameter.requires_grad for parameter in model.parameters()]
    assert set(before) == {True, False}
    with pytest.raises(RuntimeError, match="stop"), restored_after_errors(model):
        for parameter in model.parameters():
            parameter.requires_grad_(not parameter.requires_grad)
        handle = model.register_forward_hook(lambda *_: calls.append("inside"))
        raise RuntimeError("stop")
    assert [parameter.requires_grad for parameter in model.parameters()] == before
    model(input_ids=torch.tensor([[1, 2]]), decoder_input_ids=torch.tensor([[1]]))
    assert calls == ["before"]
    handle.remove()  # of a hook that is gone already


def test_a_class_that_cannot_be_resized_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = made("bert")

    def resize(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("Resizing is not supported.")

    monkeypatch.setattr(model, "resize_token_embeddings", resize)
    with refused("BertForMaskedLM cannot be resized", "not supported"):
        embinit.extend(model, tokenizer, NEW, method="pieces")
