"""The paper's recipes by their equations, how recipes are written, and what a wrong one is told."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embinit.hosts import host
from embinit.recipes.fills import FILLS
from embinit.recipes.names import named_recipes
from embinit.recipes.recipe import Recipe, Step, recipe
from embinit.seeds import stream
from embinit.types import Aligned, Matrix
from tests.refusal import refused


def made(spec: str, aligned: Aligned, seed: int = 0, fill: str | None = None, model: str = "tutorial") -> Matrix:
    return recipe(spec, fill)(aligned, stream(seed, "matrix"), host(model))


def test_xavier_has_its_bound_and_spread(aligned: Aligned) -> None:
    matrix = made("xavier", aligned)
    count, dim = matrix.shape
    assert np.abs(matrix).max() <= math.sqrt(6 / (count + dim))
    assert np.abs(matrix).max() > 0.99 * math.sqrt(6 / (count + dim))
    assert matrix.std() == pytest.approx(math.sqrt(2 / (count + dim)), rel=0.02)


def test_pretrained_keeps_every_bit(aligned: Aligned) -> None:
    matrix = made("pretrained", aligned)
    assert (matrix[aligned.found] == aligned.rows).all()


def test_pretrained_xavier_is_equation_1_over_found_rows(aligned: Aligned) -> None:
    matrix = made("pretrained_xavier", aligned)
    rows = aligned.rows.astype(np.float64)
    sigma = math.sqrt(2 / (len(aligned) + aligned.dim))  # N counts missing rows, σ_p does not
    assert matrix[aligned.found] == pytest.approx((rows - rows.mean()) * sigma / rows.std(), abs=1e-7)
    assert matrix.std() == pytest.approx(sigma, rel=0.01)


def test_shuffled_keeps_the_numbers_and_loses_the_rows(aligned: Aligned) -> None:
    matrix = made("pretrained_shuffled", aligned)[aligned.found]
    assert np.array_equal(np.sort(matrix, axis=None), np.sort(aligned.rows, axis=None))
    assert not any((matrix == row).all(axis=1).any() for row in aligned.rows[:20])
    # a permutation of rows and columns keeps lengths
    assert np.sort(np.linalg.norm(matrix, axis=1)) == pytest.approx(np.sort(np.linalg.norm(aligned.rows, axis=1)))


@pytest.mark.parametrize("axes", ["rows", "columns", "rows+columns", "elements"])
def test_what_each_shuffle_keeps(axes: str, aligned: Aligned) -> None:
    matrix = made(f"pretrained | shuffle axes={axes}", aligned)[aligned.found]
    rows = aligned.rows
    assert (matrix != rows).any()
    same_rows = {row.tobytes() for row in matrix} == {row.tobytes() for row in rows}
    same_columns = {column.tobytes() for column in matrix.T.copy()} == {column.tobytes() for column in rows.T.copy()}
    assert same_rows == (axes == "rows")
    assert same_columns == (axes == "columns")


def test_xavier_pretrained_is_equation_4(aligned: Aligned) -> None:
    matrix = made("xavier_pretrained", aligned)
    assert matrix.mean() == pytest.approx(float(aligned.rows.mean()), abs=1e-5)
    assert matrix.std() == pytest.approx(float(aligned.rows.std()), rel=1e-5)
    flat = (matrix - matrix.mean()) / matrix.std()
    assert np.abs(flat).max() < math.sqrt(3) * 1.03  # still uniform


def test_scale_to_a_ratio_of_the_positions(aligned: Aligned) -> None:
    matrix = made("pretrained | center | scale ratio=0.4", aligned)[aligned.found]
    assert matrix.std() * math.sqrt(24) / math.sqrt(0.5) == pytest.approx(0.4, rel=1e-4)
    learned = made("pretrained | scale ratio=0.5", aligned, model="bert")[aligned.found]
    assert learned.std() == pytest.approx(0.5 * 0.02, rel=1e-4)
    with refused("llama", "rotary", "std= or to="):
        made("pretrained | scale ratio=0.4", aligned, model="llama")


@pytest.mark.parametrize("step", ["scale to=host", "scale ratio=0.4"])
def test_a_scale_that_depends_on_the_model_needs_one(step: str, aligned: Aligned) -> None:
    own = recipe(f"pretrained | {step}")
    with refused(step, "host="):
        own(aligned, stream(0, "matrix"))
    assert (own(aligned, stream(0, "matrix"), "gpt2") == made(str(own), aligned, model="gpt2")).all()


def test_other_scales(aligned: Aligned) -> None:
    assert made("pretrained | scale to=inverse_sqrt_d", aligned)[aligned.found].std() == pytest.approx(24**-0.5)
    assert made("pretrained | scale std=0.5", aligned)[aligned.found].std() == pytest.approx(0.5)
    assert made("pretrained | scale to=host", aligned, model="gpt2")[aligned.found].std() == pytest.approx(0.02)
    lengths = np.linalg.norm(made("pretrained | row_norm norm=2", aligned)[aligned.found], axis=1)
    assert lengths == pytest.approx(2)


def test_whitening_leaves_no_correlation(aligned: Aligned) -> None:
    rows = made("pretrained | whiten", aligned)[aligned.found].astype(np.float64)
    assert np.cov(rows.T) == pytest.approx(np.eye(24), abs=1e-3)


def test_all_but_the_top_and_pca_take_directions_away(aligned: Aligned) -> None:
    for spec, left in (("pretrained | all_but_the_top top=3", 21), ("pretrained | pca keep=5", 5)):
        rows = made(spec, aligned)[aligned.found].astype(np.float64)
        widths = np.linalg.eigvalsh(np.cov(rows.T))
        assert (widths > 1e-6).sum() == left


def test_free_turns_rows_into_their_axes_and_drops_the_narrowest(aligned: Aligned) -> None:
    rows = aligned.rows.astype(np.float64)
    turned = made("pretrained | free dims=0", aligned)[aligned.found].astype(np.float64)
    assert turned @ turned.T == pytest.approx(rows @ rows.T, abs=1e-4)  # all angles and lengths are kept
    widths = np.cov(turned.T)
    assert np.abs(widths - np.diag(np.diag(widths))).max() < 1e-5
    assert (np.diff(np.diag(widths)) <= 1e-6).all()  # widest first
    left = made("pretrained | free dims=8", aligned)[aligned.found]
    assert left[:, :16] == pytest.approx(turned[:, :16], abs=1e-6)
    assert not left[:, 16:].any()
    # the same differences between rows as pca leaves; only a part of the mean, shared by all, went too
    kept = made("pretrained | pca keep=16", aligned)[aligned.found].astype(np.float64)
    centered = [one - one.mean(axis=0) for one in (left.astype(np.float64), kept)]
    assert centered[0] @ centered[0].T == pytest.approx(centered[1] @ centered[1].T, abs=1e-4)


def test_the_axes_of_free_depend_on_found_rows_alone_and_have_their_signs_decided(aligned: Aligned) -> None:
    turned = made("pretrained | free dims=8", aligned)[aligned.found]
    missing = replace(aligned, vectors=np.where(aligned.found[:, None], aligned.vectors, 9).astype(np.float32))
    assert (made("pretrained | free dims=8", missing)[aligned.found] == turned).all()
    for seed in range(5):  # the same axes from another order of columns, which changes the signs that LAPACK gives
        order = np.random.default_rng(seed).permutation(aligned.dim)
        other = replace(aligned, vectors=np.ascontiguousarray(aligned.vectors[:, order]))
        assert made("pretrained | free dims=8", other)[aligned.found] == pytest.approx(turned, abs=1e-4)


@pytest.mark.parametrize("fill", FILLS)
def test_filled_rows_leave_the_freed_columns_too(fill: str, aligned: Aligned) -> None:
    matrix = made("pretrained | center | free dims=8 | scale to=xavier", aligned, fill=fill)
    assert not matrix[:, 16:].any()
    assert (~aligned.found).any()
    assert matrix[~aligned.found, :16].any() == (fill != "zeros")


def test_free_keeps_the_length_of_rows_at_one_scale(aligned: Aligned) -> None:
    """σ counts the zeros, for found rows, filled rows and random ones."""
    sigma = math.sqrt(2 / (len(aligned) + aligned.dim))
    for spec in (
        "pretrained | center mean=dimension | free dims=8 | scale to=xavier",
        "xavier | free dims=8 | scale to=xavier",
    ):
        matrix = made(spec, aligned).astype(np.float64)
        assert not matrix[:, 16:].any()
        assert matrix[aligned.found].std() == pytest.approx(sigma, rel=0.01)
        assert matrix[~aligned.found].std() == pytest.approx(sigma, rel=0.06)
        assert matrix[:, :16].std() == pytest.approx(sigma * math.sqrt(24 / 16), rel=0.02)


def test_free_needs_dimensions_that_are_there(aligned: Aligned) -> None:
    for dims in (-1, 24):
        with refused(f"free dims={dims}", "0 to 23"):
            made(f"pretrained | free dims={dims}", aligned)


def test_match_by_dimension(aligned: Aligned) -> None:
    matrix = made("xavier | match moments=dimension", aligned)
    assert matrix.mean(axis=0) == pytest.approx(aligned.rows.mean(axis=0), abs=1e-5)
    assert matrix.std(axis=0) == pytest.approx(aligned.rows.std(axis=0), rel=1e-4)


def test_noise_is_relative(aligned: Aligned) -> None:
    added = made("pretrained | noise ratio=0.5", aligned)[aligned.found] - aligned.rows
    assert added.std() == pytest.approx(0.5 * aligned.rows.std(), rel=0.03)


# ---------------------------------------------------------------- fills


def test_target_fill_has_the_target_distribution(aligned: Aligned) -> None:
    filled = made("pretrained_xavier", aligned)[~aligned.found]
    bound = math.sqrt(6 / (len(aligned) + aligned.dim))
    assert np.abs(filled).max() <= bound * 1.01
    assert filled.std() == pytest.approx(bound / math.sqrt(3), rel=0.06)


def test_other_fills(aligned: Aligned) -> None:
    assert not made("pretrained", aligned, fill="zeros")[~aligned.found].any()
    mean = made("pretrained", aligned, fill="mean")[~aligned.found]
    assert mean == pytest.approx(np.tile(aligned.rows.mean(axis=0), (len(mean), 1)), abs=1e-6)
    assert np.abs(made("pretrained", aligned, fill="xavier")[~aligned.found]).max() <= math.sqrt(6 / (404 + 24))
    drawn = made("pretrained", aligned, fill="normal")[~aligned.found]
    assert drawn.std() == pytest.approx(aligned.rows.std(), rel=0.1)


def test_subword_fill_looks_like_its_relatives() -> None:
    from embinit.alignment import align
    from embinit.types import Embeddings, Origin

    words = ["snowboard", "snowboarder", "kitchen", "kitchens", "table"]
    rows = np.array([[9, 0, 0], [8, 1, 0], [0, 9, 1], [0, 8, 0], [0, 0, 9]], dtype=np.float32)
    aligned = align(Embeddings(words, rows, Origin("made", "made")), [*words, "snowboarders", "xyz", "<pad>"])
    matrix = recipe("pretrained", "subword")(aligned, stream(0, "matrix"))
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    assert (unit[5] @ unit[:5].T).argmax() in (0, 1)
    assert np.linalg.norm(matrix[5]) == pytest.approx(np.median(np.linalg.norm(rows, axis=1)), rel=1e-5)


# ---------------------------------------------------------------- how recipes are written


def test_text_toml_and_python_give_the_same_recipe(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[gentle]\nsteps = ["pretrained", {center = {mean = "dimension"}}, "scale ratio=0.4"]\nfill = "mean"\n'
        '[plain]\nsteps = "pretrained | center"\n'
        '[listed]\nsteps = ["pretrained | center mean=dimension | scale ratio=0.4"]\n'
    )
    by_toml = recipe(f"{file}::gentle")
    by_text = recipe("pretrained | center mean=dimension | scale ratio=0.4", "mean")
    steps = (Step("pretrained"), Step("center", (("mean", "dimension"),)), Step("scale", (("ratio", 0.4),)))
    by_hand = Recipe("by hand", steps, "mean")
    assert by_toml.steps == by_text.steps == by_hand.steps
    assert by_toml.fill == by_text.fill == by_hand.fill
    assert recipe(f"{file}::plain").fill == "target"
    assert recipe(f"{file}::listed").steps == by_text.steps


@pytest.mark.parametrize("step", ["scale ratio=-1", "scale ratio=0", "scale std=-0.5"])
def test_a_size_to_scale_to_is_positive_and_the_error_names_the_parameter(step: str, aligned: Aligned) -> None:
    with refused(step, "positive"):
        recipe(f"pretrained | {step}")(aligned, stream(0, "matrix"))


@pytest.mark.parametrize("name", named_recipes())
def test_a_recipe_written_out_is_the_same_recipe(name: str) -> None:
    assert recipe(str(recipe(name))).steps == recipe(name).steps


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("pretraind", "unknown recipe 'pretraind'; did you mean 'pretrained'"),
        ("pretrained | scael ratio=1", "unknown step 'scael'; did you mean 'scale'"),
        ("pretrained | scale ration=1", "scale: unknown parameter 'ration'; did you mean 'ratio'"),
        ("pretrained | scale ratio=big", "scale ratio=big: expected a number"),
        ("pretrained | scale ratio=nan", "scale ratio=nan: expected a number"),
        ("pretrained | scale to=xaver", "scale to=xaver: unknown value; did you mean 'xavier'"),
        ("pretrained | pca", "pca needs keep="),
        ("pretrained | pca keep=2.5", "expected a whole number"),
        ("center | pretrained", "center cannot come first; begin with one of pretrained"),
        ("pretrained | xavier", "xavier must come first"),
        ("pretrained | | center", "has an empty step"),
        ("pretrained | center x", "'x' is not a parameter; write NAME=VALUE"),
        ("", "the recipe is empty; choose one of bert, inverse_sqrt_d, normal, pretrained, "),
        ("noisy", "unknown recipe 'noisy'; choose one of bert, "),
        ("nowhere.toml::x", "cannot read nowhere.toml"),
    ],
)
def test_errors_of_recipes_name_what_would_be_accepted(spec: str, sentence: str) -> None:
    with refused(sentence):
        recipe(spec)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[a]\nstep = 'x'", "a: unknown key 'step'; did you mean 'steps'"),
        ("[a]\nsteps = 3", "steps must be a text or a list"),
        ("[a]\nsteps = [3]", "a step is a name or"),
        ("[a]\nsteps = ['pretrained']\nfill = 'maen'", "unknown fill 'maen'; did you mean 'mean'"),
        ("[b]\nsteps = ['pretrained']\n[c]\nsteps = ['xavier']", "has no recipe 'a'"),
        ("[a", "is not TOML"),
    ],
)
def test_errors_of_toml_recipes_name_what_would_be_accepted(content: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    with refused(sentence):
        recipe(f"{file}::a")


def test_scale_needs_one_target(aligned: Aligned) -> None:
    for spec in ("pretrained | scale", "pretrained | scale std=1 ratio=1"):
        with refused("to=, std= and ratio="):
            made(spec, aligned)
    with refused("std=0", "positive"):
        made("pretrained | scale std=0", aligned)


def test_nothing_found_is_an_error_for_recipes_that_need_rows(aligned: Aligned) -> None:
    nothing = replace(aligned, found=np.zeros(len(aligned), dtype=bool))
    for spec in ("pretrained", "pretrained_xavier", "xavier_pretrained"):
        with refused(aligned.origin.source):
            made(spec, nothing)
    assert made("xavier", nothing).shape == (404, 24)
