"""What is wrong with a recipe, before there are rows; and rows that have fewer axes than dimensions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.recipes.recipe import recipe
from embinit.recipes.steps import Context, free
from embinit.seeds import stream
from embinit.types import Aligned, Matrix
from tests.refusal import refused


def test_counts_of_dimensions_are_checked_without_rows() -> None:
    for steps, fits, wrong in (
        ("free dims=23", 24, "free dims=23: expected 0 to 22 of the 23 dimensions"),
        ("pca keep=24", 24, "pca keep=24: expected 1 to 23 of the 23 dimensions"),
        ("all_but_the_top top=23", 24, "all_but_the_top top=23: expected 0 to 22 of the 23 dimensions"),
    ):
        parsed = recipe(f"pretrained | {steps}")
        parsed.check(None)
        parsed.check(fits)
        with refused(wrong):
            parsed.check(fits - 1)
    recipe("pretrained | all_but_the_top").check(1)
    for dim, most in ((None, "0 or more"), (24, "0 to 23 of the 24 dimensions")):
        with refused(f"free dims=-2: expected {most}"):
            recipe("xavier | free dims=-2").check(dim)


@pytest.mark.parametrize("steps", ["free dims=2", "whiten", "pca keep=4", "center"])
def test_rows_that_are_not_finite_are_an_error_whatever_follows(steps: str, aligned: Aligned) -> None:
    vectors = aligned.vectors.copy()
    vectors[np.flatnonzero(aligned.found)[3], 5] = np.nan
    with refused("NaN", "the step pretrained"):
        recipe(f"pretrained | {steps}")(replace(aligned, vectors=vectors), stream(0, "matrix"))


def few(rows: int, dim: int = 24, shift: float = 2.0) -> Matrix:
    return (np.random.default_rng(rows).standard_normal((rows, dim)) + shift).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 2, 10, 23])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_with_fewer_rows_than_dimensions_free_drops_nothing_of_them(rows: int, shift: float) -> None:
    """Fewer axes than dimensions are wide; one more holds what the rows share, and the others are empty."""
    given = few(rows, shift=shift).astype(np.float64)
    for dims in (0, 24 - rows):
        turned = free(given.astype(np.float32), None, dims=dims).astype(np.float64)  # type: ignore[arg-type]
        assert turned @ turned.T == pytest.approx(given @ given.T, abs=1e-4)
        assert not turned[:, rows:].any()
        assert np.ptp(turned[:, rows - 1]) < 1e-5  # what they share
        assert turned[:, rows - 1].all()


def test_with_fewer_rows_than_dimensions_free_does_not_depend_on_which_axes_lapack_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, plain = few(10), np.linalg.eigh
    expected = free(given, None, dims=4)  # type: ignore[arg-type]

    def turned(square: Matrix) -> tuple[Matrix, Matrix]:
        widths, axes = plain(square)
        other = np.linalg.qr(np.random.default_rng(0).standard_normal((15, 15)))[0]
        return widths, np.concatenate((axes[:, :15] @ other, -axes[:, 15:]), axis=1)

    monkeypatch.setattr(np.linalg, "eigh", turned)
    assert free(given, None, dims=4) == pytest.approx(expected, abs=1e-5)  # type: ignore[arg-type]


def test_free_serves_rows_that_are_all_the_same_or_zero(aligned: Aligned) -> None:
    context = Context(aligned, None, stream(0, "matrix"))  # type: ignore[arg-type]
    turned = free(np.tile(few(1), (20, 1)), context, dims=8)
    assert turned[:, 0] == pytest.approx(np.full(20, np.linalg.norm(few(1))), rel=1e-5)
    assert not turned[:, 1:].any()
    assert not free(np.zeros((20, 24), dtype=np.float32), context, dims=8).any()


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("uniform bound=-1", "uniform bound=-1: expected 0 to 1e+30"),
        ("uniform bound=1e39", "uniform bound=1e+39: expected 0 to 1e+30"),
        ("normal std=-0.02", "normal std=-0.02: expected 0 to 1e+30"),
        ("pretrained | row_norm norm=-1", "row_norm norm=-1"),
        ("pretrained | whiten epsilon=-1", "whiten epsilon=-1"),
    ],
)
def test_sizes_out_of_range_are_errors(steps: str, message: str, aligned: Aligned) -> None:
    with refused(message):
        recipe(steps)(aligned, stream(0, "matrix"))


@pytest.mark.parametrize("fill", ["target", "mean", "normal", "subword", "zeros", "xavier"])
@pytest.mark.parametrize(
    "name", ["pretrained", "pretrained_xavier", "pretrained | center mean=dimension", "pretrained | whiten"]
)
def test_rows_at_the_end_of_float32_never_become_infinite(name: str, fill: str, aligned: Aligned) -> None:
    largest = np.finfo(np.float32).max
    signs = np.where(np.random.default_rng(0).random(aligned.vectors.shape) < 0.5, -1, 1).astype(np.float32)
    extreme = replace(aligned, vectors=signs * largest * aligned.found[:, None])
    try:
        made = recipe(name, fill)(extreme, stream(0, "matrix"))
    except EmbinitError as error:
        assert "3.4e38" in str(error)
    else:
        assert np.isfinite(made).all()
