"""A whole new tokenizer: shared tokens keep their rows, special tokens their roles, and the model its input format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.extending.folders import extend_folder
from embinit.text.markers import strip_marker
from tests.cli.running import run
from tests.extending.made import FAMILIES, made, save, tokenizer_of, tokenizers, transformers
from tests.refusal import refused

#: From a family to the kind of its new tokenizer.
NEW_KIND = {"bert": "Unigram", "gpt2": "sentence BPE", "llama": "byte-level BPE", "t5": "WordPiece"}
SCHEMES = {
    "Unigram": "sentencepiece", "sentence BPE": "sentencepiece", "byte-level BPE": "byte-level", "WordPiece": "wordpiece",
}  # fmt: skip


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows_of(layer: Any) -> np.ndarray:
    return layer.weight.detach().numpy().copy()  # type: ignore[no-any-return]


def new_tokenizer(kind: str) -> Any:
    """Return a tokenizer whose special tokens have other names and ids than those of the models."""
    made_one = tokenizer_of(kind)
    made_one.add_special_tokens({"pad_token": "[blank]"})
    return made_one


def texts_of(tokenizer: Any, kind: str) -> dict[tuple[str, bool], int]:
    ids = {strip_marker(token, SCHEMES[kind]): i for token, i in tokenizer.get_vocab().items()}  # type: ignore[arg-type]
    specials = tokenizer.all_special_ids
    return {text: i for text, i in ids.items() if i not in specials and text[0].isascii() and "<" not in text[0]}


def test_shared_tokens_keep_their_rows_and_special_tokens_their_roles(family: str) -> None:
    model, tokenizer = made(family)
    kind = NEW_KIND[family]
    new = new_tokenizer(kind)
    layers = [layer for layer in (model.get_input_embeddings(), model.get_output_embeddings()) if layer is not None]
    before = [rows_of(layer) for layer in layers]
    model.config.pad_token_id = tokenizer.pad_token_id
    extension = embinit.extend(model, tokenizer, new_tokenizer=new, method="pieces", pad_to_multiple_of=8)
    layers = [model.get_input_embeddings(), model.get_output_embeddings()]
    assert extension.rows == model.config.vocab_size == len(rows_of(layers[0]))
    assert extension.rows % 8 == 0 and extension.rows - len(extension.tokenizer) < 8
    own, theirs = texts_of(extension.tokenizer, kind), texts_of(tokenizer, FAMILIES[family][1])
    shared = {own[text]: theirs[text] for text in own.keys() & theirs.keys()}
    assert len(shared) > 100
    assert not set(shared) & set(extension.ids)
    for layer, old in zip(layers, before, strict=True):
        assert (rows_of(layer)[list(shared)] == old[list(shared.values())]).all()
        for role in ("bos", "eos", "unk", "pad"):
            ids = [getattr(each, f"{role}_token_id") for each in (extension.tokenizer, tokenizer)]
            assert (rows_of(layer)[ids[0]] == old[ids[1]]).all(), role
    assert model.config.pad_token_id == extension.tokenizer.convert_tokens_to_ids("[blank]") != tokenizer.pad_token_id
    assert extension.output == {"llama": "own"}.get(family, "tied")


def test_new_tokens_are_means_of_old_pieces_inside_words_and_at_their_beginning() -> None:
    model, tokenizer = made("bert")
    old = rows_of(model.get_input_embeddings())
    extension = embinit.extend(model, tokenizer, new_tokenizer=new_tokenizer("Unigram"), method="pieces")
    rows = rows_of(model.get_input_embeddings())
    vocabulary = tokenizer.get_vocab()
    begins = [i for i, word in zip(extension.ids, extension.words, strict=True) if len(word) > 3]
    assert len(begins) > 5
    for token_id in begins[:20]:
        word = extension.tokenizer.convert_ids_to_tokens(token_id)[1:]
        pieces = tokenizer(word, add_special_tokens=False)["input_ids"]
        assert rows[token_id] == pytest.approx(old[pieces].mean(axis=0), abs=1e-6)
    pairs = {token: i for token, i in extension.tokenizer.get_vocab().items() if len(token) == 2 and token.isalpha()}
    found = [
        (token, i) for token, i in pairs.items() if i in extension.ids and all(f"##{c}" in vocabulary for c in token)
    ]
    assert found
    for token, token_id in found:
        whole = vocabulary.get(f"##{token}")
        ids = [vocabulary[f"##{char}"] for char in token] if whole is None else [whole]
        assert rows[token_id] == pytest.approx(old[ids].mean(axis=0), abs=1e-6)


def test_the_special_tokens_around_a_text_stay_those_of_the_model() -> None:
    model, tokenizer = made("bert")
    backend = tokenizer.backend_tokenizer
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    new = tokenizer_of("Unigram")
    extension = embinit.extend(model, tokenizer, new_tokenizer=new, method="pieces")
    ids = extension.tokenizer("a dog")["input_ids"]
    assert extension.tokenizer.convert_ids_to_tokens([ids[0], ids[-1]]) == ["<s>", "</s>"]
    assert extension.tokenizer("a", "dog")["input_ids"].count(extension.tokenizer.eos_token_id) == 2
    assert new("a dog")["input_ids"] == ids[1:-1]


def test_a_folder_gets_a_new_tokenizer(family: str, tmp_path: Path) -> None:
    folder, kind = save(family, tmp_path / "model"), NEW_KIND[family]
    new_tokenizer(kind).save_pretrained(tmp_path / "tokenizer")
    done = run(
        "extend", folder, "--tokenizer", tmp_path / "tokenizer", "--method", "pieces", "-o", tmp_path / "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    config = json.loads((tmp_path / "out/config.json").read_text())
    kinds = getattr(transformers, config["architectures"][0])
    loaded = kinds.from_pretrained(tmp_path / "out")
    assert len(tokenizer) == content["rows"] == config["vocab_size"] == len(rows_of(loaded.get_input_embeddings()))
    text = "a dog sees the graphene"
    assert tokenizer(text)["input_ids"] == new_tokenizer(kind)(text)["input_ids"]
    if family != "bert":
        generation = json.loads((tmp_path / "out/generation_config.json").read_text())
        assert generation["eos_token_id"] == config["eos_token_id"] == tokenizer.eos_token_id


def test_distillation_fits_a_new_tokenizer_on_text() -> None:
    text = ["a young man sees the old dog in the park", "two women walk near a big red house"] * 20
    model, tokenizer = made("bert")
    extension = embinit.extend(model, tokenizer, new_tokenizer=new_tokenizer("Unigram"), text=text)
    assert extension.method == "distill"
    assert not np.isnan(rows_of(model.get_input_embeddings())).any()


def test_a_wrong_new_tokenizer_is_refused_and_the_model_stays(tmp_path: Path) -> None:
    model, tokenizer = made("bert")
    before = rows_of(model.get_input_embeddings())
    with refused("nothing to do"):
        embinit.extend(model, tokenizer, new_tokenizer=tokenizer_of("WordPiece"), method="pieces")
    with refused("no fast tokenizer", "int"):
        embinit.extend(model, tokenizer, new_tokenizer=3, method="pieces")
    with refused("both given"):
        embinit.extend(model, tokenizer, ["graphene"], new_tokenizer=tokenizer_of("Unigram"))
    with refused("nothing to add", "tokens=[…]", "new_tokenizer=…"):
        embinit.extend(model, tokenizer)
    assert (rows_of(model.get_input_embeddings()) == before).all()
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        pad_token_id=0,
    )  # fmt: skip
    with refused("padding id"):
        embinit.extend(transformers.RobertaModel(config), tokenizer, new_tokenizer=new_tokenizer("Unigram"))
    folder = save("bert", tmp_path / "model")
    with refused("nothing to do"):
        extend_folder(
            folder, tmp_path / "out",
            lambda own, old: embinit.extend(own, old, new_tokenizer=tokenizer_of("WordPiece"), method="pieces"),
        )  # fmt: skip
    assert not (tmp_path / "out").exists()
