"""A matrix in an nn.Embedding: bit for bit, except the padding row."""

from __future__ import annotations

import numpy as np
import pytest

from embinit import set_embedding
from embinit.errors import EmbinitError

torch = pytest.importorskip("torch")

MATRIX = np.random.default_rng(0).normal(0, 0.3, (7, 5)).astype(np.float32)


def test_rows_are_there_bit_for_bit() -> None:
    layer = torch.nn.Embedding(7, 5)
    set_embedding(layer, MATRIX)
    assert layer.weight.detach().numpy().tobytes() == MATRIX.tobytes()
    assert layer(torch.tensor([3])).detach().numpy().tobytes() == MATRIX[3].tobytes()


def test_the_parameter_stays_the_same_object() -> None:
    layer = torch.nn.Embedding(7, 5)
    weight = layer.weight
    tied = torch.nn.Linear(5, 7, bias=False)
    tied.weight = weight
    set_embedding(layer, MATRIX)
    assert layer.weight is weight
    assert tied.weight.detach().numpy().tobytes() == MATRIX.tobytes()


def test_the_layer_does_not_share_memory_with_the_matrix() -> None:
    layer, matrix = torch.nn.Embedding(7, 5), MATRIX.copy()
    set_embedding(layer, matrix)
    matrix[:] = 9
    assert layer.weight.detach().numpy().tobytes() == MATRIX.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_in_memory_does_not_matter(order: str) -> None:
    layer = torch.nn.Embedding(7, 5)
    set_embedding(layer, np.array(MATRIX, order=order))  # type: ignore[call-overload]
    assert np.array_equal(layer.weight.detach().numpy(), MATRIX)


@pytest.mark.parametrize("shape", [(7, 4), (8, 5), (5, 7)])
def test_another_shape_is_an_error_that_names_both(shape: tuple[int, int]) -> None:
    layer = torch.nn.Embedding(*shape)
    before = layer.weight.detach().clone()
    with pytest.raises(EmbinitError, match=rf"has the shape \({shape[0]}, {shape[1]}\), but the matrix has \(7, 5\)"):
        set_embedding(layer, MATRIX)
    assert torch.equal(layer.weight, before)


@pytest.mark.parametrize("padding", [0, 2, -1])
def test_the_padding_row_stays(padding: int) -> None:
    layer = torch.nn.Embedding(7, 5, padding_idx=padding)
    set_embedding(layer, MATRIX)
    weight = layer.weight.detach().numpy()
    assert not weight[padding].any()
    others = np.delete(np.arange(7), padding)
    assert np.array_equal(weight[others], MATRIX[others])


def test_a_changed_padding_row_stays_as_it_is() -> None:
    layer = torch.nn.Embedding(7, 5, padding_idx=1)
    with torch.no_grad():
        layer.weight[1] = 4
    set_embedding(layer, MATRIX)
    assert (layer.weight[1] == 4).all()


@pytest.mark.parametrize("freeze", [False, True])
def test_freeze_decides_whether_it_trains(freeze: bool) -> None:
    layer = torch.nn.Embedding(7, 5)
    set_embedding(layer, MATRIX, freeze=freeze)
    assert layer.weight.requires_grad is not freeze


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64"])
def test_a_layer_of_another_precision_holds_the_rounded_rows(kind: str) -> None:
    dtype = getattr(torch, kind)
    layer = torch.nn.Embedding(7, 5, dtype=dtype)
    set_embedding(layer, MATRIX)
    assert layer.weight.dtype == dtype
    assert torch.equal(layer.weight, torch.from_numpy(MATRIX).to(dtype))


def test_rows_that_do_not_arrive_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = torch.nn.Embedding(7, 5)
    monkeypatch.setattr(torch.nn.Parameter, "copy_", lambda self, values: self, raising=False)
    with pytest.raises(EmbinitError, match="does not hold the rows that were put into it"):
        set_embedding(layer, MATRIX)


@pytest.mark.parametrize("form", ["list", "mask", "tensor", "set", "range"])
def test_ids_name_the_rows_that_are_replaced(form: str) -> None:
    layer = torch.nn.Embedding(7, 5, padding_idx=1)
    before = layer.weight.detach().clone()
    mask = np.zeros(7, dtype=bool)
    mask[2:5] = True
    ids = {"list": [2, 3, 4], "mask": mask, "tensor": torch.tensor([2, 3, 4]), "set": {4, 3, 2}, "range": range(2, 5)}
    set_embedding(layer, MATRIX[:3], ids=ids[form])
    assert layer.weight[2:5].detach().numpy().tobytes() == MATRIX[:3].tobytes()
    others = [0, 1, 5, 6]
    assert torch.equal(layer.weight[others], before[others])


@pytest.mark.parametrize("ids", [[0], np.eye(7, dtype=bool)[0]], ids=["number", "mask"])
def test_an_id_of_the_padding_row_is_an_error(ids: object) -> None:
    layer = torch.nn.Embedding(7, 5, padding_idx=0)
    with pytest.raises(EmbinitError, match=r"ids names row 0, the padding row of the layer \(padding_idx\)"):
        set_embedding(layer, MATRIX[:1], ids=ids)
    assert not layer.weight[0].any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(wrong: float) -> None:
    layer, matrix = torch.nn.Embedding(7, 5), MATRIX.copy()
    before = layer.weight.detach().clone()
    matrix[4, 2] = wrong
    with pytest.raises(EmbinitError, match="row 4 of the matrix has NaN or infinite numbers; no row was set"):
        set_embedding(layer, matrix)
    assert torch.equal(layer.weight, before)


def test_numbers_that_overflow_the_format_of_the_layer_are_refused() -> None:
    layer = torch.nn.Embedding(7, 5, dtype=torch.float16)
    before = layer.weight.detach().clone()
    with pytest.raises(EmbinitError, match="numbers up to 100,000, but the layer's number format float16 holds"):
        set_embedding(layer, np.full((7, 5), 1e5, dtype=np.float32))
    assert torch.equal(layer.weight, before)


def test_ids_may_be_in_any_order() -> None:
    layer = torch.nn.Embedding(7, 5)
    set_embedding(layer, MATRIX[:2], ids=[6, 0])
    assert layer.weight[[6, 0]].detach().numpy().tobytes() == MATRIX[:2].tobytes()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 1, 7], "ids has 7, but the layer has the rows 0 to 6"),
        ([0, 1, 1], "ids names a row twice"),
        ([0, 1], r"2 ids name rows of 5 dimensions, but the matrix has the shape \(3, 5\)"),
        (["cat"], "no list of row numbers"),
    ],
)
def test_wrong_ids_change_nothing(ids: list[int], message: str) -> None:
    layer = torch.nn.Embedding(7, 5)
    before = layer.weight.detach().clone()
    with pytest.raises(EmbinitError, match=message):
        set_embedding(layer, MATRIX[:3], ids=ids)
    assert torch.equal(layer.weight, before)
