"""What diagnosis measures: distributions, rounding, absorption, geometry."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from embinit.diagnosis.absorption import absorption, position_table
from embinit.diagnosis.distribution import distribution
from embinit.diagnosis.geometry import geometry
from embinit.diagnosis.rounding import FORMATS, position_loss, rounded
from embinit.hosts import host
from embinit.positions import sinusoidal


def cloud(std: float, rows: int = 1500, dim: int = 64, seed: int = 0) -> np.ndarray:
    return (std * np.random.default_rng(seed).standard_normal((rows, dim))).astype(np.float32)


def test_distribution_is_numpys() -> None:
    matrix = cloud(0.3) + np.float32(0.1)
    measured = distribution(matrix)
    exact = matrix.astype(np.float64)
    assert (measured.min, measured.max) == (matrix.min(), matrix.max())
    assert (measured.mean, measured.std) == pytest.approx((exact.mean(), exact.std()), rel=1e-12)
    assert measured.kurtosis == pytest.approx(((exact - exact.mean()) ** 4).mean() / exact.var() ** 2 - 3)
    lengths = np.linalg.norm(exact, axis=1)
    assert (measured.norm_mean, measured.norm_min, measured.norm_max) == pytest.approx(
        (lengths.mean(), lengths.min(), lengths.max())
    )


def test_scaling_a_distribution_is_scaling_the_matrix() -> None:
    matrix = cloud(0.3)
    assert distribution(matrix).scaled(4.0).std == pytest.approx(distribution(matrix * 4).std)
    assert distribution(matrix).scaled(4.0).kurtosis == pytest.approx(distribution(matrix * 4).kurtosis)


def test_nan_does_not_spoil_the_distribution() -> None:
    matrix = cloud(1.0)
    matrix[3, 3] = np.nan
    assert math.isfinite(distribution(matrix).std)


# ---------------------------------------------------------------- rounding


@given(hnp.arrays(np.float32, 20, elements=st.floats(width=32, allow_nan=False)))
def test_bfloat16_and_float16_round_as_torch_does(values: np.ndarray) -> None:
    tensor = torch.from_numpy(values.copy())
    for form, kind in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        expected = tensor.to(kind).float().numpy()
        assert np.array_equal(rounded(values, form), expected, equal_nan=True)  # type: ignore[arg-type]


def test_tf32_keeps_ten_bits() -> None:
    values = np.array([1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-12], dtype=np.float32)
    assert rounded(values, "tf32").tolist() == [1 + 2**-10, 1.0, 1 + 2**-9, 1.0]


def test_the_positions_of_raw_t5_rows_are_rounded_away() -> None:
    # σ 22.6 (Table 2) times √512: numbers near 512, where bfloat16 steps by 2 to 4 and TF32 by 0.25 to 0.5
    rows = cloud(22.6, dim=512)
    table = sinusoidal(20, 512)[np.arange(len(rows)) % 20]
    lost = {form: position_loss(rows, table, 512**0.5, form) for form in FORMATS}
    assert lost["float32"] < 1e-6
    assert 0.001 < lost["tf32"] < 0.05
    assert lost["bfloat16"] > 0.4
    xavier = {form: position_loss(rows * np.float32(0.016 / 22.6), table, 512**0.5, form) for form in FORMATS}
    assert max(xavier.values()) < 1e-4


def test_what_is_beyond_float16_is_lost() -> None:
    rows = np.full((10, 8), 70_000, dtype=np.float32)
    assert position_loss(rows, sinusoidal(10, 8), 1.0, "float16") == 1.0


# ---------------------------------------------------------------- absorption


def test_ratio_is_scaled_spread_over_position_rms() -> None:
    measured = absorption(cloud(0.37, dim=300, rows=3000), host())
    assert measured is not None
    assert measured.ratio == pytest.approx(0.37 * 300**0.5 / 0.5**0.5, rel=0.01)


def test_larger_rows_hide_positions_and_keep_neighbours() -> None:
    seen = [absorption(cloud(std), host()) for std in (0.005, 0.05, 0.5, 5.0, 50.0)]
    readouts = [one.position_readout for one in seen if one is not None]
    kept = [one.neighbours_kept for one in seen if one is not None]
    assert len(readouts) == 5
    assert readouts[0] > 0.95
    assert readouts[-1] < 0.12  # chance is 0.05
    assert readouts[:4] == sorted(readouts[:4], reverse=True)
    assert kept == sorted(kept)
    assert kept[0] < 0.2
    assert kept[-1] > 0.95


def test_models_that_do_not_add_positions_have_nothing_to_absorb() -> None:
    for name in ("llama", "t5", "gemma"):
        assert absorption(cloud(1.0), host(name)) is None


def test_few_rows_are_not_judged() -> None:
    measured = absorption(cloud(0.1, rows=12), host())
    assert measured is not None
    assert measured.position_readout is None
    assert measured.neighbours_kept is None


def test_position_tables_have_the_rms_of_their_model() -> None:
    for name, rms in (("tutorial", 0.5**0.5), ("bert", 0.02), ("gpt2", 0.02)):
        table = position_table(host(name), 300).astype(np.float64)
        assert np.sqrt((table**2).mean()) == pytest.approx(rms, rel=0.05)
    louder = replace(host("tutorial"), position_rms=2.0)
    assert np.sqrt((position_table(louder, 64).astype(float) ** 2).mean()) == pytest.approx(2.0)


# ---------------------------------------------------------------- geometry


def test_a_round_cloud_has_nothing_odd() -> None:
    measured = geometry(cloud(1.0))
    assert abs(measured.mean_cosine) < 0.02
    assert measured.effective_dim > 60
    assert measured.top_share < 0.03
    assert measured.outlier_dimensions == ()
    assert (measured.zero_rows, measured.duplicate_rows, measured.bad_rows) == (0, 0, 0)


def test_cones_outliers_and_odd_rows_are_seen() -> None:
    cone = cloud(1.0) + 3
    assert geometry(cone).mean_cosine > 0.8
    odd = cloud(1.0)
    odd[:, 7] *= 20
    odd[5] = 0
    odd[6] = odd[8] = odd[9]
    odd[11, 3] = np.nan
    odd[12] = np.inf
    measured = geometry(odd)
    assert measured.outlier_dimensions == (7,)
    assert measured.top_share > 0.5
    assert (measured.zero_rows, measured.duplicate_rows, measured.bad_rows) == (1, 2, 2)


@pytest.mark.parametrize(
    "matrix", [np.zeros((1, 4), np.float32), np.ones((2, 3), np.float32), np.zeros((0, 3), np.float32)]
)
def test_tiny_matrices_do_not_break_it(matrix: np.ndarray) -> None:
    assert geometry(matrix).zero_rows == (1 if len(matrix) == 1 else 0)
