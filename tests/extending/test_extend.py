"""A model with new tokens: rows by each method, saved, loaded again, and trained without moving the old rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.extending.extend import DEFAULT
from embinit.extending.folders import extend_folder
from embinit.extending.methods import METHODS
from embinit.extending.verdict import NewRows
from tests.cli.running import run
from tests.extending.made import DIM, FAMILIES, NEW, made, save, torch, transformers
from tests.refusal import refused


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows_of(layer: Any) -> np.ndarray:
    return layer.weight.detach().numpy().copy()  # type: ignore[no-any-return]


def test_old_rows_stay_and_new_rows_are_the_mean_of_their_pieces(family: str) -> None:
    model, tokenizer = made(family)
    before = rows_of(model.get_input_embeddings())
    extension = embinit.extend(model, tokenizer, NEW, method="pieces")
    after = rows_of(model.get_input_embeddings())
    assert extension.ids == tuple(range(len(before), len(before) + len(NEW)))
    assert model.config.vocab_size == len(after) == len(before) + len(NEW)
    assert (after[: len(before)] == before).all()
    for word, new_id in zip(NEW, extension.ids, strict=True):
        space = " " if family == "gpt2" else ""
        pieces = tokenizer(space + word, add_special_tokens=False)["input_ids"]
        assert after[new_id] == pytest.approx(before[pieces].mean(axis=0), abs=1e-6)
    assert len(tokenizer) == len(before)
    output = {"llama": "own"}.get(family, "tied")
    assert extension.output == output
    assert np.array_equal(rows_of(model.get_output_embeddings()), after) == (output == "tied")


def test_output_rows_and_biases_are_made_like_input_rows() -> None:
    model, tokenizer = made("llama")
    old = rows_of(model.get_output_embeddings())
    extension = embinit.extend(model, tokenizer, NEW, method="first-piece")
    first = tokenizer("graphene", add_special_tokens=False)["input_ids"][0]
    assert (rows_of(model.get_output_embeddings())[extension.ids[0]] == old[first]).all()
    model, tokenizer = made("bert")
    bias = model.cls.predictions.bias.detach().clone()
    extension = embinit.extend(model, tokenizer, NEW, method="pieces")
    pieces = tokenizer("graphene", add_special_tokens=False)["input_ids"]
    assert model.cls.predictions.bias[extension.ids[0]].item() == pytest.approx(bias[pieces].mean().item(), abs=1e-6)


def test_spare_rows_are_used_first_and_rows_are_padded_to_a_multiple() -> None:
    model, tokenizer = made("bert", spare=3)
    rows = len(model.get_input_embeddings().weight)
    extension = embinit.extend(model, tokenizer, NEW, method="pieces", pad_to_multiple_of=64)
    assert extension.ids[0] == rows - 3
    assert extension.rows == model.config.vocab_size == len(model.get_input_embeddings().weight)
    assert extension.rows % 64 == 0 and extension.rows - rows < 64


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs])
def test_every_method_makes_finite_rows_that_depend_on_the_seed_alone(method: str) -> None:
    def made_rows(seed: int) -> np.ndarray:
        model, tokenizer = made("gpt2")
        torch.manual_seed(seed + 7)
        state = torch.random.get_rng_state()
        extension = embinit.extend(model, tokenizer, NEW, method=method, seed=seed)
        assert torch.equal(torch.random.get_rng_state(), state)
        return rows_of(model.get_input_embeddings())[list(extension.ids)]

    first = made_rows(1)
    assert first.shape == (len(NEW), DIM) and np.isfinite(first).all()
    assert (made_rows(1) == first).all()
    assert (made_rows(2) == first).all() == (method not in ("mean", "multivariate", "distill"))


def test_the_default_of_transformers_collapses_and_the_report_says_so() -> None:
    model, tokenizer = made("gpt2")
    bad = embinit.extend(model, tokenizer, NEW, method="mean")
    assert bad.new_rows.collapsed and bad.new_rows.mean_cosine > 0.99
    assert bad.new_rows.length_ratio < 0.5
    assert "harm" in [severity for severity, _ in bad.new_rows.findings()]
    model, tokenizer = made("gpt2")
    good = embinit.extend(model, tokenizer, NEW, method="multivariate")
    assert not good.new_rows.collapsed
    assert good.stages[DEFAULT].collapsed
    html = good._repr_html_()
    assert "graphene" in html and DEFAULT.replace("'", "&#x27;") in html
    assert good.as_dict()["trainable_token_indices"] == good.trainable_token_indices == list(good.ids)


def test_good_rows_are_reported_with_their_measures_and_limits() -> None:
    rows = NewRows(rows=3, mean_cosine=0.116, old_mean_cosine=0.018, length_ratio=0.69, duplicates=0)
    ((severity, sentence),) = rows.findings()
    assert severity == "good"
    assert all(number in sentence for number in ("0.116", "0.018", "0.90", "0.69", "0.5 to 2"))
    ((_, sentence),) = replace(rows, rows=1).findings()
    assert "cosine" not in sentence and "0.69" in sentence
    assert "1,917.00 times" in replace(rows, length_ratio=1917).findings()[0][1]


def test_lengths_can_be_matched_to_the_pieces() -> None:
    model, tokenizer = made("gpt2")
    before = np.linalg.norm(rows_of(model.get_input_embeddings()), axis=1)
    extension = embinit.extend(model, tokenizer, ["graphene"], method="pieces", match_length=True)
    pieces = tokenizer(" graphene", add_special_tokens=False)["input_ids"]
    row = rows_of(model.get_input_embeddings())[extension.ids[0]]
    assert np.linalg.norm(row) == pytest.approx(before[pieces].mean(), rel=1e-5)
    assert extension.length_factor > 1


def test_like_and_description_take_rows_of_named_tokens() -> None:
    model, tokenizer = made("bert")
    old = rows_of(model.get_input_embeddings())
    dog, cat = tokenizer.convert_tokens_to_ids(["dog", "a"])
    ids = embinit.extend(model, tokenizer, ["graphene"], method="like", like={"graphene": "dog"}).ids
    assert (rows_of(model.get_input_embeddings())[ids[0]] == old[dog]).all()
    model, tokenizer = made("bert")
    ids = embinit.extend(model, tokenizer, ["graphene"], method="description", like={"graphene": "a dog"}).ids
    assert rows_of(model.get_input_embeddings())[ids[0]] == pytest.approx((old[dog] + old[cat]) / 2, abs=1e-6)
    with refused("'graphene'", "an existing token"):
        embinit.extend(*made("bert"), ["graphene"], method="like", like={"graphene": "perovskite"})
    with refused("no entry", "graphene", "give it an existing token"):
        embinit.extend(*made("bert"), ["graphene"], method="like", like={"other": "dog"})
    model, tokenizer = made("bert")  # which normalizes the word
    ids = embinit.extend(model, tokenizer, ["Graphène"], method="like", like={"Graphène": "dog"}).ids
    assert (rows_of(model.get_input_embeddings())[ids[0]] == old[dog]).all()
    with refused("needs a mapping"):
        embinit.extend(*made("bert"), ["graphene"], method="like")
    with refused("takes no mapping"):
        embinit.extend(*made("bert"), ["graphene"], method="pieces", like={"graphene": "dog"})


@pytest.mark.parametrize("name", ["AdamW", "SGD"])
def test_old_rows_are_kept_bit_for_bit_in_training_with_weight_decay(family: str, name: str) -> None:
    model, tokenizer = made(family)
    extension = embinit.extend(model, tokenizer, NEW)
    model.train()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, weight_decay=0.1)
    extension.keep_old_rows(optimizer, model)
    before = [rows_of(layer) for layer in (model.get_input_embeddings(), model.get_output_embeddings())]
    ids = extension.tokenizer("a dog and graphene", return_tensors="pt")["input_ids"]
    for _ in range(2):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    old = [row for row in range(extension.rows) if row not in extension.ids]
    for layer, kept in zip((model.get_input_embeddings(), model.get_output_embeddings()), before, strict=True):
        assert (rows_of(layer)[old] == kept[old]).all()
        assert (rows_of(layer)[list(extension.ids)] != kept[list(extension.ids)]).any(axis=1).all()


def test_a_folder_is_extended_saved_and_loaded(family: str, tmp_path: Path) -> None:
    folder, out = save(family, tmp_path / "model"), tmp_path / "out"
    (folder / "modules.json").write_text("[]")
    untouched = {path.name: path.read_bytes() for path in folder.iterdir()}
    extension = extend_folder(folder, out, lambda model, tokenizer: embinit.extend(model, tokenizer, NEW))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == untouched
    assert (out / "modules.json").read_text() == "[]"
    kind = getattr(transformers, json.loads((out / "config.json").read_text())["architectures"][0])
    loaded, old = kind.from_pretrained(out), kind.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    rows = rows_of(loaded.get_input_embeddings())
    assert len(rows) == extension.rows == loaded.config.vocab_size
    assert (rows[: extension.rows_before] == rows_of(old.get_input_embeddings())).all()
    assert tokenizer("a planetarium bird", add_special_tokens=False)["input_ids"].count(extension.ids[2]) == 1


def test_a_sharded_folder_is_read(tmp_path: Path) -> None:
    model, tokenizer = made("gpt2")
    model.save_pretrained(tmp_path / "model", max_shard_size="20KB")
    tokenizer.save_pretrained(tmp_path / "model")
    assert (tmp_path / "model" / "model.safetensors.index.json").is_file()
    extend_folder(tmp_path / "model", tmp_path / "out", lambda model, own: embinit.extend(model, own, NEW))
    assert not (tmp_path / "out" / "model.safetensors.index.json").exists()


def test_a_tokenizer_with_far_fewer_tokens_than_the_model_has_rows_is_reported() -> None:
    for spare, reported in ((8, False), (200, True)):
        extension = embinit.extend(*made("bert", spare=spare), NEW, method="pieces")
        assert ("rows without a token" in extension.details) == reported


def test_a_slow_tokenizer_is_refused(tmp_path: Path) -> None:
    made("t5")[0].save_pretrained(tmp_path / "model")
    transformers.ByT5Tokenizer().save_pretrained(tmp_path / "model")
    with refused("no fast tokenizer", "tokenizer.json"):
        extend_folder(tmp_path / "model", tmp_path / "out", lambda model, own: embinit.extend(model, own, NEW))
    assert not (tmp_path / "out").exists()


def test_a_wrong_folder_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    def extended(folder: Path) -> None:
        extend_folder(folder, tmp_path / "out", lambda model, own: embinit.extend(model, own, NEW))

    with refused("nowhere", "config.json"):
        extended(tmp_path / "nowhere")
    folder = save("bert", tmp_path / "model")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(folder / f"{name}.away")
    with refused("tokenizer"):
        extended(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / f"{name}.away").rename(folder / name)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": {"bits": 4}}))
    with refused("quantized"):
        extended(folder)
    (folder / "config.json").write_text("{}")
    with refused("cannot be loaded"):
        extended(folder)
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": config["vocab_size"] + 1}))
    with refused("cannot be loaded", "vocab_size"):
        extended(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (tmp_path / "out").mkdir()
    with refused("exists already"):
        extended(folder)
    (tmp_path / "out").rmdir()
    with refused("'dog'"):
        extend_folder(folder, tmp_path / "out", lambda model, own: embinit.extend(model, own, ["dog"]))
    assert not (tmp_path / "out").exists()


def test_what_is_no_model_is_refused() -> None:
    with refused("model of transformers", "int"):
        embinit.extend(3, made("bert")[1], NEW)
    with refused("unknown method 'piece'", "pieces"):
        embinit.extend(*made("bert"), NEW, method="piece")


def test_the_command_prints_ids_and_measures(tmp_path: Path) -> None:
    folder = save("gpt2", tmp_path / "model")
    (tmp_path / "words.txt").write_text("graphene\n\nperovskite\n")
    done = run("extend", folder, "--tokens", tmp_path / "words.txt", "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["tokens"] == ["Ġgraphene", "Ġperovskite"]
    assert told["trainable_token_indices"] == [told["rows_before"], told["rows_before"] + 1]
    again = run("extend", folder, "--tokens", tmp_path / "words.txt", "-o", tmp_path / "out")
    assert again.returncode == 2 and "exists already" in again.stderr
