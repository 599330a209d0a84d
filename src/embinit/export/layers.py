"""Putting rows into an embedding or an output layer in place, and checking the copy."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError, require
from embinit.export.row_rates import row_numbers
from embinit.types import Flags, Matrix, check_matrix, finite_rows

if TYPE_CHECKING:
    import torch


def set_embedding(layer: torch.nn.Embedding, matrix: Matrix, *, ids: Any = None, freeze: bool = False) -> None:
    """Copy rows into an embedding layer, in place, and check the copy.

    Parameters
    ----------
    layer
        The embedding layer. Its padding row (`padding_idx`) is kept; it is zero unless it was changed.
    matrix
        One row for each token, or for each of `ids`: an array or a tensor.
    ids
        The rows that are replaced, as row numbers or as a mask, without the padding row. All other rows are kept. By default
        all rows are replaced.
    freeze
        Whether the whole layer is excluded from training. To freeze single rows, see `row_rates`.

    Raises
    ------
    EmbinitError
        If the layer is no embedding, the shapes differ, a number is NaN, infinite or too large for the layer's number
        format, or an id is no row of the layer, is its padding row or is given twice.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Embedding(2, 3)
    >>> set_embedding(layer, np.ones((2, 3)))
    >>> layer.weight.sum().item()
    6.0
    >>> set_embedding(layer, np.zeros((1, 3)), ids=[1])
    >>> layer.weight.sum().item()
    3.0
    """
    torch = require("torch", "train", "putting a matrix into a layer")
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor) or not hasattr(layer, "padding_idx"):
        raise EmbinitError(f"set_embedding(layer, matrix) fills a torch.nn.Embedding, not {type(layer).__name__}")
    matrix = matrix if isinstance(matrix, np.ndarray) else check_matrix(matrix)
    expected = tuple(weight.shape)
    if ids is None and expected != matrix.shape:
        raise EmbinitError(f"the layer has the shape {expected}, but the matrix has {matrix.shape}")
    chosen = np.arange(len(weight)) if ids is None else row_numbers(ids, len(weight))
    if (len(chosen), *expected[1:]) != matrix.shape:
        raise EmbinitError(
            f"{len(chosen)} ids name rows of {expected[1]} dimensions, but the matrix has the shape {matrix.shape}"
        )
    if len(np.unique(chosen)) < len(chosen):
        raise EmbinitError("ids names a row twice; name every row once")
    padding = layer.padding_idx
    if ids is not None and padding is not None and padding in chosen:
        raise EmbinitError(
            f"ids names row {padding}, the padding row of the layer (padding_idx), which is always kept; leave it out of "
            "ids, or set it yourself"
        )
    finite = finite_rows(matrix)
    if not finite.all():
        raise EmbinitError(f"row {int(np.argmin(finite))} of the matrix has NaN or infinite numbers; no row was set")
    trained = np.ones(len(chosen), dtype=bool) if padding is None else chosen != padding
    set_rows(matrix[trained], chosen[trained], weight)
    weight.requires_grad_(not freeze)


def set_rows(matrix: Matrix, ids: npt.NDArray[np.int64], *weights: Any) -> None:
    """Copy rows into each weight at these ids, and check that it holds them and that no other row changed.

    A number that does not fit the number format of a weight is an error, and then no weight changes.
    """
    import torch

    for weight, expected in [(weight, _with_rows(weight, matrix, ids)) for weight in weights]:
        written = written_rows(weight)
        with torch.no_grad():
            weight.copy_(expected)
        # Compared as bits, so that NaN in a row that is kept is no difference.
        if not torch.equal(weight.detach().contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8)):
            raise EmbinitError("the layer does not hold the rows that were put into it")
        written[ids] = True
        _written()[weight] = (written, _checksum(weight, written))


def written_rows(weight: Any) -> Flags:
    """Return a flag for each row: whether `set_rows` wrote it and nothing has changed these rows since."""
    flags, checksum = _written().get(weight, (None, None))
    if flags is None or len(flags) != len(weight) or checksum != _checksum(weight, flags):
        return np.zeros(len(weight), dtype=bool)
    return np.array(flags)


def _checksum(weight: Any, flags: Flags) -> int:
    """Return a hash of the bytes of these rows.

    The `_version` of a tensor is no substitute: fused optimizers and changes of `weight.data` do not raise it.
    """
    import torch

    return hash(weight.detach().contiguous().view(torch.uint8).cpu().numpy()[flags].tobytes())


@cache
def _written() -> Any:
    """Return a dictionary from each weight that `set_rows` filled to flags of its rows and their checksum."""
    from torch.utils.weak import WeakTensorKeyDictionary

    return WeakTensorKeyDictionary()


def _with_rows(weight: Any, matrix: Matrix, ids: npt.NDArray[np.int64]) -> Any:
    """Return a copy of a weight that has these rows; a number that its format does not hold is an error."""
    import torch

    rows = torch.from_numpy(np.ascontiguousarray(matrix)).to(weight.device, weight.dtype)
    if not rows.isfinite().all():
        name, limit = str(weight.dtype).removeprefix("torch."), torch.finfo(weight.dtype).max
        raise EmbinitError(
            f"the new rows have numbers up to {np.abs(matrix).max():,.6g}, but the layer's number format {name} holds "
            f"numbers up to {limit:,.6g}; use a recipe that scales the rows, or convert the model first: model.float()"
        )
    expected = weight.detach().clone()
    expected[torch.from_numpy(ids).to(weight.device)] = rows
    return expected
