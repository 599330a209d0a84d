"""The sources of `apply`: a matrix of `make` bit for bit, any other source by the advised recipe, and their warnings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.alignment import align
from embinit.errors import EmbinitError
from embinit.export.card import card
from embinit.export.formats import write
from embinit.export.models import NO_TOKENIZER, apply
from embinit.hosts import host
from embinit.recipes.recipe import recipe
from embinit.seeds import stream
from tests.cli.running import run

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SPECIALS = ["[PAD]", "[UNK]"]
WORDS = [f"word{place}" for place in range(60)]
DIM = 16


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A BERT of 62 tokens, 16 dimensions and σ 0.02, with its tokenizer."""
    torch.manual_seed(0)
    folder = tmp_path / "model"
    config = transformers.BertConfig(
        vocab_size=len(SPECIALS + WORDS), hidden_size=DIM, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, pad_token_id=0,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    save_tokenizer(SPECIALS + WORDS, folder)
    return folder


def save_tokenizer(tokens: list[str], folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    ids = {token: place for place, token in enumerate(tokens)}
    own = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    own.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    own.add_special_tokens(SPECIALS)
    own.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return folder


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    """Vectors of σ 3 for 50 of the 60 words and for a word that the model lacks."""
    rows = np.random.default_rng(1).normal(0.5, 3, (51, DIM))
    lines = [
        f"{word} {' '.join(f'{x:.5f}' for x in row)}" for word, row in zip([*WORDS[:50], "other"], rows, strict=True)
    ]
    path = tmp_path / "glove.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(folder: Path) -> Any:
    return transformers.BertForMaskedLM.from_pretrained(folder).get_input_embeddings().weight.detach().numpy()


ENDINGS = {".safetensors": None, ".npy": None, ".txt": None, ".vec": None, ".bin": None, "": "model2vec"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_matrix_of_make_goes_in_bit_for_bit(ending: str, model: Path, glove: Path, tmp_path: Path) -> None:
    made = tmp_path / f"made{ending}"
    options = ["--format", ENDINGS[ending]] if ENDINGS[ending] else []
    done = run("make", glove, "--vocab", model, "--model", model, "-o", made, *options)
    assert done.returncode == 0, done.stderr
    matrix = embinit.load(made)
    report = apply(made, model, tmp_path / "out")
    assert report.from_make
    assert report.advised
    assert report.replaced == len(WORDS)
    new, old = rows_of(tmp_path / "out"), rows_of(model)
    expected = np.array([matrix.vectors[matrix.index[word]] for word in WORDS])
    assert new[len(SPECIALS) :].tobytes() == expected.tobytes()
    assert new[: len(SPECIALS)].tobytes() == old[: len(SPECIALS)].tobytes()
    assert report.warnings == ()


def test_make_and_apply_give_the_same_rows_as_apply_alone(model: Path, glove: Path, tmp_path: Path) -> None:
    run("make", glove, "--vocab", model, "--model", model, "-o", tmp_path / "made.npy")
    apply(tmp_path / "made.npy", model, tmp_path / "by-make")
    apply(glove, model, tmp_path / "direct", fill="target")
    assert rows_of(tmp_path / "by-make").tobytes() == rows_of(tmp_path / "direct").tobytes()


def test_another_source_gets_the_advised_recipe_and_missing_tokens_keep_their_rows(
    model: Path, glove: Path, tmp_path: Path
) -> None:
    report = apply(glove, model, tmp_path / "out")
    aligned = align(glove, model)
    verdict = embinit.diagnose(aligned, host=model).verdict
    new, old = rows_of(tmp_path / "out"), rows_of(model)
    assert str(report.recipe) == str(recipe(verdict.recipe)) != "pretrained"
    assert new[aligned.found].tobytes() == verdict.matrix(aligned)[aligned.found].tobytes()
    assert new[~aligned.found].tobytes() == old[~aligned.found].tobytes()
    assert report.ids.tolist() == np.flatnonzero(aligned.found).tolist()
    assert report.kept == {"special": tuple(SPECIALS), "not found": tuple(WORDS[50:]), "no token": ()}
    assert not report.from_make


def test_the_recipe_pretrained_keeps_the_vectors_and_warns_of_their_size(
    model: Path, glove: Path, tmp_path: Path
) -> None:
    report = apply(glove, model, tmp_path / "out", recipe="pretrained")
    aligned = align(glove, model)
    assert rows_of(tmp_path / "out")[aligned.found].tobytes() == aligned.rows.tobytes()
    sizes = {name: spread.std for name, spread in report.sizes.items()}
    assert sizes["now"] == sizes["source"] > 100 * sizes["before"]
    assert any("times the σ of the rows that they replace" in warning for warning in report.warnings)
    assert not any("σ" in warning for warning in apply(glove, model, tmp_path / "advised").warnings)


def test_fill_gives_missing_tokens_rows_of_the_new_size(model: Path, glove: Path, tmp_path: Path) -> None:
    report = apply(glove, model, tmp_path / "out", recipe="pretrained", fill="zeros")
    new = rows_of(tmp_path / "out")
    assert not new[-10:].any()
    assert report.kept["not found"] == ()
    assert new[0].tobytes() == rows_of(model)[0].tobytes()  # a special token keeps its row


def test_few_matches_are_a_warning(model: Path, glove: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.txt"
    few.write_text("".join(glove.read_text().splitlines(keepends=True)[:20]))
    assert any("33 % of the tokens" in warning for warning in apply(few, model, tmp_path / "out").warnings)
    assert not any("of the tokens" in warning for warning in apply(glove, model, tmp_path / "most").warnings)


def test_a_matrix_that_was_made_for_another_kind_of_model_is_judged_by_its_size(
    model: Path, glove: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made.npy"
    run("make", glove, "--vocab", model, "--model", "llama", "--recipe", "pretrained", "-o", made)
    report = apply(made, model, tmp_path / "out")
    assert report.from_make
    assert not report.advised
    assert any("times the σ" in warning for warning in report.warnings)


def test_a_matrix_that_was_changed_after_make_is_a_source_like_any_other(
    model: Path, glove: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made.npy"
    run("make", glove, "--vocab", model, "--model", model, "-o", made)
    np.save(made, np.load(made) * 50)
    report = apply(made, model, tmp_path / "out")
    assert not report.from_make
    assert any("was changed after" in warning for warning in report.warnings)
    assert np.abs(rows_of(tmp_path / "out")).max() < 1


def test_a_card_of_another_tool_is_no_card(model: Path, glove: Path, tmp_path: Path) -> None:
    beside = glove.with_name("glove.txt.card.json")
    for content in ('{"made by": "someone"}', "[]", "{", '{"made by": "embinit 0.1"}'):
        beside.write_text(content)
        out = tmp_path / f"out{len(content)}"
        assert not apply(glove, model, out).from_make


def test_a_matrix_of_make_with_another_dimension_says_how_to_make_it(model: Path, glove: Path, tmp_path: Path) -> None:
    aligned = align(glove, model, dim=8, project="pca")
    matrix = recipe("pretrained")(aligned, stream(0, "matrix"))
    about = card(aligned, matrix, recipe("pretrained"), host("bert"), 0)
    write(matrix, aligned.vocabulary, tmp_path / "made.npy", card=about)
    with pytest.raises(EmbinitError, match="16 dimensions, but the matrix has 8; make the matrix with --dim 16 and"):
        apply(tmp_path / "made.npy", model, tmp_path / "out")


def test_vectors_of_another_dimension_are_projected(model: Path, tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=(60, 5)).astype(np.float32)
    report = apply((rows, WORDS), model, tmp_path / "out", project="orthogonal")
    assert (report.replaced, report.dim) == (60, DIM)
    with pytest.raises(EmbinitError, match="choose a projection"):
        apply((rows, WORDS), model, tmp_path / "again")


def test_a_model_of_an_unknown_type_is_judged_like_the_one_that_is_named(
    glove: Path, model: Path, tmp_path: Path
) -> None:
    run("make", glove, "--vocab", model, "--model", "llama", "-o", tmp_path / "made.npy")
    config = transformers.MambaConfig(vocab_size=62, hidden_size=DIM, num_hidden_layers=1, state_size=4, pad_token_id=0)
    mamba = tmp_path / "mamba"
    transformers.MambaForCausalLM(config).save_pretrained(mamba)
    save_tokenizer(SPECIALS + WORDS, mamba)
    with pytest.raises(EmbinitError, match="unknown model type 'mamba'"):
        apply(glove, mamba, tmp_path / "out")
    assert apply(glove, mamba, tmp_path / "named", host="llama").advised
    made = apply(tmp_path / "made.npy", mamba, tmp_path / "made")
    assert (made.from_make, made.verdict) == (True, None)


# ---------------------------------------------------------------- resized, with a tokenizer

NEW = ["[UNK]", "word3", "fresh", "word7", "[PAD]", "new"]


@pytest.fixture
def made_for_new(tmp_path: Path) -> tuple[Path, Path]:
    """A tokenizer of other tokens, and the matrix that `make` wrote for it."""
    folder = save_tokenizer(NEW, tmp_path / "tokenizer")
    source = tmp_path / "new.txt"
    rows = np.random.default_rng(3).normal(0, 0.3, (len(NEW) - 2, DIM))
    words = [token for token in NEW if token not in SPECIALS]
    source.write_text("".join(f"{w} {' '.join(map(str, row))}\n" for w, row in zip(words, rows, strict=True)))
    done = run("make", source, "--vocab", folder, "--model", "bert", "-o", tmp_path / "new.safetensors")
    assert done.returncode == 0, done.stderr
    return folder, tmp_path / "new.safetensors"


def test_resize_saves_the_tokenizer_of_the_matrix(made_for_new: tuple[Path, Path], model: Path, tmp_path: Path) -> None:
    folder, made = made_for_new
    report = apply(made, model, tmp_path / "out", resize=True, tokenizer=folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    new = rows_of(tmp_path / "out")
    ids = tokenizer("fresh word7 new")["input_ids"]
    assert [NEW[place] for place in ids] == ["fresh", "word7", "new"]
    made_rows = embinit.load(made)
    assert new[ids].tobytes() == made_rows.vectors[ids].tobytes()
    old = rows_of(model)
    assert new[NEW.index("[PAD]")].tobytes() == old[0].tobytes()
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").pad_token_id == NEW.index("[PAD]")
    assert report.tokenizer_saved
    assert NO_TOKENIZER not in report.warnings
    assert not (tmp_path / "out" / "tokens.json").exists()


def test_resize_without_a_tokenizer_saves_none_and_warns_first(
    made_for_new: tuple[Path, Path], model: Path, tmp_path: Path
) -> None:
    _, made = made_for_new
    report = apply(made, model, tmp_path / "out", resize=True)
    assert report.warnings[0] == NO_TOKENIZER
    assert not (tmp_path / "out" / "tokenizer.json").exists()
    done = run("apply", made, model, "-o", tmp_path / "cli", "--resize")
    assert " ".join(done.stdout.split()).startswith("warning: the folder gets no tokenizer")


def test_a_tokenizer_of_other_tokens_is_an_error(made_for_new: tuple[Path, Path], model: Path, tmp_path: Path) -> None:
    _, made = made_for_new
    other = save_tokenizer([*NEW[:2], "stale", *NEW[3:]], tmp_path / "other")
    with pytest.raises(
        EmbinitError, match=r"has the token 'stale' at 2, but the matrix has 'fresh'; make the matrix with"
    ):
        apply(made, model, tmp_path / "out", resize=True, tokenizer=other)
    shorter = save_tokenizer(NEW[:-1], tmp_path / "shorter")
    with pytest.raises(EmbinitError, match="has 5 tokens, but the matrix has 6"):
        apply(made, model, tmp_path / "out", resize=True, tokenizer=shorter)
    with pytest.raises(EmbinitError, match="goes with resize"):
        apply(made, model, tmp_path / "out", tokenizer=shorter)
    with pytest.raises(EmbinitError, match="there is no tokenizer folder"):
        apply(made, model, tmp_path / "out", resize=True, tokenizer=tmp_path / "none")
    assert not (tmp_path / "out").exists()


def test_any_source_is_aligned_with_the_tokenizer_of_a_resized_model(
    made_for_new: tuple[Path, Path], model: Path, glove: Path, tmp_path: Path
) -> None:
    folder, _ = made_for_new
    report = apply(glove, model, tmp_path / "out", resize=True, tokenizer=folder)
    new, old = rows_of(tmp_path / "out"), rows_of(model)
    assert report.coverage[0] == 0.5  # word3 and word7 of four words
    assert report.replaced == 4  # a word that neither the source nor the model has is filled
    assert new[NEW.index("[PAD]")].tobytes() == old[0].tobytes()
    assert np.abs(new[NEW.index("fresh")]).max() > 0


def test_a_resized_row_is_kept_where_the_old_padding_was(model: Path, tmp_path: Path) -> None:
    """The id of the old padding token belongs to an ordinary word of the new vocabulary."""
    tokens = ["word3", "dog", "[PAD]"]
    rows = np.random.default_rng(0).normal(0, 0.02, (3, DIM)).astype(np.float32)
    report = apply((rows, tokens), model, tmp_path / "out", resize=True, recipe="pretrained")
    new = rows_of(tmp_path / "out")
    assert report.ids.tolist() == [0, 1]
    assert new[:2].tobytes() == rows[:2].tobytes()


def test_the_command_line_takes_recipe_fill_and_projection(model: Path, glove: Path, tmp_path: Path) -> None:
    done = run("apply", glove, model, "-o", tmp_path / "out", "--recipe", "pretrained", "--fill", "mean", "--json")
    content = json.loads(done.stdout)
    assert (content["replaced"], content["recipe"]["name"], content["recipe"]["fill"]) == (60, "pretrained", "mean")
    assert content["warnings"]
    advised = json.loads(run("apply", glove, model, "-o", tmp_path / "advised", "--json").stdout)
    assert (advised["replaced"], advised["advised"], advised["others_kept"]) == (50, True, 10)
    wrong = run("apply", glove, model, "-o", tmp_path / "wrong", "--recipe", "pretraned")
    assert wrong.returncode == 2
    assert not (tmp_path / "wrong").exists()


def test_an_untied_output_layer_gets_the_rows_on_request(tmp_path: Path, glove: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=62, hidden_size=DIM, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        tie_word_embeddings=False, bos_token_id=1, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "llama")
    save_tokenizer(SPECIALS + WORDS, tmp_path / "llama")
    heads = {}
    for output_rows in (False, True):
        out = tmp_path / f"out-{output_rows}"
        report = apply(glove, tmp_path / "llama", out, output_rows=output_rows)
        loaded = transformers.LlamaForCausalLM.from_pretrained(out)
        heads[report.output] = loaded.lm_head.weight.detach().numpy()
        inputs = loaded.get_input_embeddings().weight.detach().numpy()
    old = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "llama").lm_head.weight.detach().numpy()
    assert heads["kept"].tobytes() == old.tobytes()
    assert heads["set"][report.ids].tobytes() == inputs[report.ids].tobytes()
    assert heads["set"][:2].tobytes() == old[:2].tobytes()
