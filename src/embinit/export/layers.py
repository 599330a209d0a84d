"""Putting rows into an embedding or an output layer in place, and checking the copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embinit.errors import EmbinitError, require
from embinit.export.row_rates import row_numbers
from embinit.types import Matrix, check_matrix

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
        The rows that are replaced, as row numbers or as a mask. All other rows are kept. By default all rows are replaced.
    freeze
        Whether the whole layer is excluded from training. To freeze single rows, see `row_rates`.

    Raises
    ------
    EmbinitError
        If the layer is no embedding, the shapes differ, or an id is no row of the layer or is given twice.

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
    trained = np.ones(len(chosen), dtype=bool) if layer.padding_idx is None else chosen != layer.padding_idx
    set_rows(weight, matrix[trained], chosen[trained])
    weight.requires_grad_(not freeze)


def set_rows(weight: Any, matrix: Matrix, ids: npt.NDArray[np.int64]) -> None:
    """Copy rows into a weight at these ids, and check that it holds them and that no other row changed."""
    import torch

    places = torch.from_numpy(ids).to(weight.device)
    expected = weight.detach().clone()
    expected[places] = torch.from_numpy(np.ascontiguousarray(matrix)).to(weight.device, weight.dtype)
    with torch.no_grad():
        weight.copy_(expected)
    # Compared as bits, so that NaN in a row that is kept is no difference.
    if not torch.equal(weight.detach().contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8)):
        raise EmbinitError("the layer does not hold the rows that were put into it")
