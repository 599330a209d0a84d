"""A matrix in a model's folder: by token, verified, and the model itself untouched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import embinit
from embinit.errors import EmbinitError
from embinit.export import resize as resize_and_verify
from embinit.export.models import apply as apply_advised
from embinit.export.report import Initialization
from embinit.types import Embeddings
from tests.export.tiny_models import (
    DIM,
    FAMILIES,
    ROWS,
    SPECIALS,
    TIED,
    TOKENS,
    WORDS,
    bert,
    gpt2,
    llama,
    save,
    vectors,
    weights,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(family: str, tmp_path: Path) -> Path:
    return save(FAMILIES[family], tmp_path / "model")


def apply(source: Any, model: Path, out: Path, **options: Any) -> Initialization:
    """Apply vectors as they are: these tests are on rows, not on recipes."""
    return apply_advised(source, model, out, recipe="pretrained", **options)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_go_by_token_and_the_others_stay(family: str, model: Path, tmp_path: Path) -> None:
    untouched = contents(model)
    old, old_head = weights(model)
    ours = vectors(["horse", "zebra", "cat", "STOP", "</s>", "Über"])
    done = apply(ours, model, tmp_path / "out")
    new, new_head = weights(tmp_path / "out")
    expected = old.copy()
    for token in ("horse", "cat", "Über"):
        expected[TOKENS.index(token)] = ours.vectors[ours.index[token]]
    assert new.tobytes() == expected.tobytes()
    assert (new_head if TIED[family] else new).tobytes() == expected.tobytes()
    if not TIED[family]:
        assert new_head.tobytes() == old_head.tobytes()
    assert contents(model) == untouched
    expected_counts = {
        "rows": ROWS,
        "dim": DIM,
        "replaced": 3,
        "specials_kept": len(SPECIALS),
        "others_kept": len(WORDS) - 3 + 3,
        "tied": TIED[family],
        "resized": False,
        "missing": 0,
    }
    assert done.as_dict().items() >= expected_counts.items()


def test_the_base_model_and_embinit_read_the_same_rows(model: Path, tmp_path: Path) -> None:
    ours = vectors(WORDS)
    apply(ours, model, tmp_path / "out")
    base = transformers.AutoModel.from_pretrained(tmp_path / "out").get_input_embeddings().weight.detach().numpy()
    assert base[len(SPECIALS) : len(TOKENS)].tobytes() == ours.vectors.tobytes()
    read = embinit.load(tmp_path / "out")
    assert list(read.tokens) == TOKENS
    assert read.vectors[len(SPECIALS) :].tobytes() == ours.vectors.tobytes()
    assert read.vectors[: len(SPECIALS)].tobytes() == embinit.load(model).vectors[: len(SPECIALS)].tobytes()


def test_everything_but_the_embedding_is_as_it_was(model: Path, tmp_path: Path) -> None:
    apply(vectors(WORDS), model, tmp_path / "out")
    before, after = (load_file(folder / "model.safetensors") for folder in (model, tmp_path / "out"))
    changed = {name for name in before if before[name].tobytes() != after[name].tobytes()}
    assert before.keys() == after.keys()
    assert len(changed) == 1
    assert changed.pop().endswith(("shared.weight", "embed_tokens.weight", "wte.weight", "word_embeddings.weight"))
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == (model / "tokenizer.json").read_bytes()


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = save(gpt2, tmp_path / "model")
    capfd.readouterr()
    apply(vectors(WORDS), model, tmp_path / "out")
    assert capfd.readouterr() == ("", "")


def test_what_transformers_prints_elsewhere_is_as_it_was(tmp_path: Path) -> None:
    log = transformers.utils.logging
    log.set_verbosity_info()
    log.enable_progress_bar()
    try:
        apply(vectors(WORDS), save(gpt2, tmp_path / "model"), tmp_path / "out")
        assert log.get_verbosity() == log.INFO
        assert log.is_progress_bar_enabled()
    finally:
        log.set_verbosity_warning()


def test_specials_that_the_matrix_declares_stay(tmp_path: Path) -> None:
    model = save(gpt2, tmp_path / "model")
    ours = vectors(["cat", "dog"])
    ours = Embeddings(ours.tokens, ours.vectors, ours.origin, specials=frozenset({"dog"}))
    done = apply(ours, model, tmp_path / "out")
    old, new = weights(model)[0], weights(tmp_path / "out")[0]
    assert (done.replaced, len(done.kept["special"])) == (1, len(SPECIALS) + 1)
    assert new[TOKENS.index("dog")].tobytes() == old[TOKENS.index("dog")].tobytes()


def test_a_matrix_without_a_common_token_is_an_error(tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    with pytest.raises(EmbinitError, match=r"has none of the tokens of .*model.*horse"):
        apply(vectors(["zebra", "yak"]), model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_half_precision_model_holds_the_rounded_rows(tmp_path: Path) -> None:
    model = save(lambda: llama().to(torch.bfloat16), tmp_path / "model")
    ours = vectors(WORDS)
    apply(ours, model, tmp_path / "out")
    loaded = transformers.AutoModel.from_pretrained(tmp_path / "out", dtype="auto").get_input_embeddings().weight
    assert loaded.dtype == torch.bfloat16
    assert torch.equal(loaded[len(SPECIALS) : len(TOKENS)], torch.from_numpy(ours.vectors).to(torch.bfloat16))


# ---------------------------------------------------------------- another vocabulary

#: Some tokens of the model in another order, new ones among them; fewer than it has, or more.
SMALLER = ["yak", "<unk>", "dog", "<pad>", "zebra", "</s>", "cat"]
LARGER = [*SMALLER, *(f"new{i}" for i in range(30))]


@pytest.mark.parametrize("tokens", [SMALLER, LARGER], ids=["smaller", "larger"])
def test_resize_gives_the_model_the_tokens_of_the_matrix(
    tokens: list[str], family: str, model: Path, tmp_path: Path
) -> None:
    untouched = contents(model)
    old, old_head = weights(model)
    ours = vectors(tokens)
    done = apply(ours, model, tmp_path / "out", resize=True)
    new, new_head = weights(tmp_path / "out")
    expected = ours.vectors.copy()
    for token in ("<unk>", "<pad>", "</s>"):
        expected[tokens.index(token)] = old[TOKENS.index(token)]
    assert new.tobytes() == expected.tobytes()
    if TIED[family]:
        assert new_head.tobytes() == expected.tobytes()
    else:
        for i, token in enumerate(tokens):
            own = old_head[TOKENS.index(token)] if token in TOKENS else old_head.mean(axis=0)
            np.testing.assert_allclose(new_head[i], own, rtol=0, atol=0 if token in TOKENS else 1e-7)
    assert (done.rows, done.replaced, len(done.kept["special"])) == (len(tokens), len(tokens) - 3, 3)
    assert (done.as_dict()["others_kept"], done.unused, done.resized, done.tied) == (0, 0, True, TIED[family])
    assert contents(model) == untouched
    read = embinit.load(tmp_path / "out")
    assert list(read.tokens) == tokens
    assert read.vectors.tobytes() == expected.tobytes()


def test_after_a_resize_the_ids_in_the_configuration_mean_the_same_tokens(
    family: str, model: Path, tmp_path: Path
) -> None:
    apply(vectors(SMALLER), model, tmp_path / "out", resize=True)
    before, after = (transformers.AutoConfig.from_pretrained(folder) for folder in (model, tmp_path / "out"))
    assert after.vocab_size == len(SMALLER)
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_eos_token_id"):
        old = getattr(before, name, None)
        if isinstance(old, int):
            expected: Any = SMALLER.index(TOKENS[old]) if TOKENS[old] in SMALLER else None
        else:
            expected = None if old is None else [SMALLER.index(TOKENS[i]) for i in old if TOKENS[i] in SMALLER]
        assert getattr(after, name, None) == expected, name
    if (tmp_path / "out" / "generation_config.json").exists():
        ids = json.loads((tmp_path / "out" / "generation_config.json").read_text())
        flat = [i for key, value in ids.items() if key.endswith("_token_id") for i in np.ravel(value)]
        assert all(SMALLER[i] in SPECIALS for i in flat)


@pytest.mark.parametrize("family", ["bert", "marian"])
def test_after_a_resize_an_output_bias_belongs_to_its_token(family: str, model: Path, tmp_path: Path) -> None:
    def bias(folder: Path) -> Any:
        kind = {"bert": transformers.BertForMaskedLM, "marian": transformers.MarianMTModel}[family]
        loaded = kind.from_pretrained(folder)
        return (loaded.cls.predictions.bias if family == "bert" else loaded.final_logits_bias[0]).detach().numpy()

    apply(vectors(LARGER), model, tmp_path / "out", resize=True)
    old, new = bias(model), bias(tmp_path / "out")
    assert len(new) == len(LARGER)
    for i, token in enumerate(LARGER):
        assert new[i] == pytest.approx(old[TOKENS.index(token)] if token in TOKENS else old.mean(), abs=1e-6)


def test_a_resized_model_runs(family: str, model: Path, tmp_path: Path) -> None:
    apply(vectors(LARGER), model, tmp_path / "out", resize=True)
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    loaded = getattr(transformers, config["architectures"][0]).from_pretrained(tmp_path / "out")
    ids = torch.tensor([[2, len(LARGER) - 1, 5]])
    loss = loaded(input_ids=ids, labels=ids).loss
    assert torch.isfinite(loss)


def test_the_old_tokenizer_does_not_travel_with_a_new_vocabulary(tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    apply(vectors(SMALLER), model, tmp_path / "out", resize=True)
    assert not (tmp_path / "out" / "tokenizer.json").exists()


# ---------------------------------------------------------------- without a tokenizer


def test_a_model_without_a_tokenizer_takes_a_matrix_of_its_shape_row_by_row(tmp_path: Path) -> None:
    model = save(gpt2, tmp_path / "model", tokenizer=False)
    ours = vectors(["<unk>", *(f"w{i}" for i in range(ROWS - 1))])
    done = apply(ours, model, tmp_path / "out")
    new = weights(tmp_path / "out")[0]
    assert new[1:].tobytes() == ours.vectors[1:].tobytes()
    assert new[0].tobytes() == weights(model)[0][0].tobytes()
    assert (done.replaced, len(done.kept["special"]), done.unused) == (ROWS - 1, 1, 0)


def test_a_model_without_a_tokenizer_refuses_another_size(tmp_path: Path) -> None:
    model = save(gpt2, tmp_path / "model", tokenizer=False)
    with pytest.raises(EmbinitError, match=f"{ROWS} rows, but the matrix has 2; give a matrix of {ROWS} rows"):
        apply(vectors(["a", "b"]), model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_without_a_tokenizer_can_be_resized(tmp_path: Path) -> None:
    model = save(gpt2, tmp_path / "model", tokenizer=False)
    ours = vectors(["<unk>", "a", "b"])
    done = apply(ours, model, tmp_path / "out", resize=True)
    assert weights(tmp_path / "out")[0].tobytes() == ours.vectors.tobytes()
    assert (done.rows, done.replaced) == (3, 3)


def test_a_damaged_tokenizer_is_not_taken_for_none(tmp_path: Path) -> None:
    model = save(gpt2, tmp_path / "model", tokenizer=False)
    (model / "tokenizer.json").write_text("")
    with pytest.raises(EmbinitError, match=r"tokenizer\.json is empty"):
        apply(vectors([f"w{i}" for i in range(ROWS)]), model, tmp_path / "out")


# ---------------------------------------------------------------- what is refused


def test_another_dimension_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    with pytest.raises(EmbinitError, match=f"5 dimensions, but the model has {DIM}; choose a projection"):
        apply(vectors(WORDS, 5), model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_out_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("keep")
    with pytest.raises(EmbinitError, match="exists already"):
        apply(vectors(WORDS), model, tmp_path / "out")
    assert contents(tmp_path / "out") == {"mine": b"keep"}


@pytest.mark.parametrize("spelling", ["model", "model/../model", "link"])
def test_the_model_itself_is_no_place_to_write(spelling: str, tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    (tmp_path / "link").symlink_to(model)
    untouched = contents(model)
    with pytest.raises(EmbinitError, match="is the model itself; give another folder"):
        apply(vectors(WORDS), model, tmp_path / spelling)
    assert contents(model) == untouched


def test_a_folder_without_a_configuration_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match=r"is no model folder: it has no config\.json"):
        apply(vectors(WORDS), tmp_path, tmp_path / "out")


@pytest.mark.parametrize("config", ['{"model_type": "no-such-model"}', '{"model_type": "bert"}'])
def test_a_folder_that_transformers_cannot_load_is_an_error(config: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(config)
    with pytest.raises(EmbinitError, match="cannot be loaded by transformers"):
        apply(vectors(WORDS), tmp_path / "model", tmp_path / "out")


@pytest.mark.parametrize("resize", [False, True])
def test_rows_that_do_not_come_back_are_noticed_and_nothing_is_left(
    resize: bool, family: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = resize_and_verify.load_model

    def damaged(folder: Path) -> Any:
        loaded, missing = real(folder)
        if folder != model:
            with torch.no_grad():
                loaded.get_input_embeddings().weight[6, 2] += 1e-3
        return loaded, missing

    monkeypatch.setattr(resize_and_verify, "load_model", damaged)
    with pytest.raises(EmbinitError, match="loaded again differ from those that were put in"):
        apply(vectors(SMALLER), model, tmp_path / "out", resize=resize)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_a_model_without_its_weights_and_its_other_files_is_told_and_kept(tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    weights_file = model / "model.safetensors"
    kept = {name: value for name, value in load_file(weights_file).items() if "embeddings" in name}
    save_file(kept, weights_file, metadata={"format": "pt"})
    (model / "1_Pooling").mkdir()
    (model / "1_Pooling" / "config.json").write_text("{}")
    (model / "modules.json").write_text("[]")
    done = apply(vectors(WORDS), model, tmp_path / "out")
    assert done.missing_tensors > 5
    assert (tmp_path / "out" / "modules.json").is_file()
    assert (tmp_path / "out" / "1_Pooling" / "config.json").is_file()
    assert apply(vectors(WORDS), save(bert, tmp_path / "whole"), tmp_path / "again").missing_tensors == 0


def test_a_cut_weight_file_is_one_sentence(tmp_path: Path) -> None:
    model = save(bert, tmp_path / "model")
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EmbinitError, match="cannot be loaded by transformers"):
        apply(vectors(WORDS), model, tmp_path / "out")
