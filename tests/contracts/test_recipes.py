"""Every check on every registered step, recipe and fill."""

from __future__ import annotations

import numpy as np
import pytest

from embinit.hosts import host, host_names
from embinit.recipes.fills import FILLS
from embinit.recipes.names import named_recipes
from embinit.recipes.recipe import recipe
from embinit.recipes.steps import STEPS
from embinit.seeds import stream
from embinit.types import Aligned, Matrix
from tests.refusal import refused

#: Parameters for steps that need some.
_ARGUMENTS = {
    "scale": ["to=xavier", "std=0.1", "ratio=0.4", "to=inverse_sqrt_d", "to=host"],
    "pca": ["keep=7"],
    "free": ["dims=7"],
}

PIPELINES = [
    *(name for name, kind in STEPS.items() if kind.first),
    *(
        f"pretrained | {name} {argument}".strip()
        for name, kind in STEPS.items()
        if not kind.first
        for argument in _ARGUMENTS.get(name, [""])
    ),
    *named_recipes(),
]
EVERY = pytest.mark.parametrize("spec", sorted(set(PIPELINES)))


def made(spec: str, aligned: Aligned, seed: int = 1) -> Matrix:
    return recipe(spec)(aligned, stream(seed, "matrix"), "tutorial")


def test_there_is_something_to_check() -> None:
    assert len(STEPS) >= 16
    assert len(FILLS) == 6
    assert {
        "xavier",
        "pretrained",
        "pretrained_xavier",
        "pretrained_shuffled",
        "xavier_pretrained",
    } <= named_recipes().keys()


@EVERY
def test_a_finite_float32_row_for_every_token(spec: str, aligned: Aligned) -> None:
    matrix = made(spec, aligned)
    assert matrix.shape == (len(aligned), aligned.dim)
    assert matrix.dtype == np.float32
    assert np.isfinite(matrix).all()


@EVERY
def test_the_same_seed_gives_the_same_bits_whatever_else_was_drawn(spec: str, aligned: Aligned) -> None:
    first = made(spec, aligned)
    np.random.seed(5)  # noqa: NPY002 (the global generator is disturbed on purpose)
    np.random.random(17)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert (made(spec, aligned) == first).all()
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@EVERY
def test_nothing_that_was_given_is_changed(spec: str, aligned: Aligned) -> None:
    vectors, found = aligned.vectors.copy(), aligned.found.copy()
    matrix = made(spec, aligned)
    matrix += 1
    assert (aligned.vectors == vectors).all()
    assert (aligned.found == found).all()


@EVERY
def test_another_seed_changes_what_is_random_and_nothing_else(spec: str, aligned: Aligned) -> None:
    one, two = (made(spec, aligned, seed) for seed in (1, 2))
    random = not recipe(spec).uses_source or any(name in spec for name in ("shuffle", "noise"))
    assert (one[aligned.found] != two[aligned.found]).any() == random
    assert (one[~aligned.found] != two[~aligned.found]).any()  # missing rows are always drawn


@pytest.mark.parametrize("fill", FILLS)
def test_a_fill_never_changes_found_rows(fill: str, aligned: Aligned) -> None:
    matrix = recipe("pretrained_xavier", fill)(aligned, stream(1, "matrix"))
    usual = recipe("pretrained_xavier")(aligned, stream(1, "matrix"))
    assert (matrix[aligned.found] == usual[aligned.found]).all()
    assert np.isfinite(matrix).all()
    assert (matrix == recipe("pretrained_xavier", fill)(aligned, stream(1, "matrix"))).all()


@pytest.mark.parametrize("name", [name for name, kind in STEPS.items() if not kind.first])
def test_what_may_follow_free_leaves_its_columns_free(name: str, aligned: Aligned) -> None:
    for argument in _ARGUMENTS.get(name, [""]):
        spec = f"pretrained | center | free dims=8 | {name} {argument}"
        if STEPS[name].keeps_zeros:
            assert not made(spec, aligned)[:, -8:].any()
        else:
            with refused(f"{name} must come before free", "scale and row_norm"):
                recipe(spec)


@EVERY
def test_every_step_says_in_a_line_what_it_does(spec: str) -> None:
    for step in recipe(spec).steps:
        assert 10 < len(STEPS[step.name].about) < 140


@pytest.mark.parametrize("name", host_names())
def test_every_known_model_is_complete(name: str, aligned: Aligned) -> None:
    model = host(name)
    assert model.about
    assert model.adds_positions == (model.positions in ("sinusoidal", "learned"))
    assert model.multiplier(64) in (1, 8)
    assert 0 < model.initial_std(1000, 64) <= 1
    recipe("pretrained | center | scale to=host")(aligned, stream(0, "matrix"), model)
