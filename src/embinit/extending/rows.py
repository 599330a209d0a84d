"""Token layers with rows for new tokens, and their measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embinit.export.resize import TokenLayers
from embinit.extending.methods import NewTokens, RowMethod, match_lengths
from embinit.extending.verdict import NewRows, measure
from embinit.seeds import stream
from embinit.types import Matrix


@dataclass(frozen=True)
class Filler:
    """Makes token layers with rows for new tokens."""

    layers: TokenLayers
    #: the rows of the new tokens
    ids: Sequence[int]
    #: the number of rows of the result; rows beyond the tokens get the mean of the old rows
    total: int
    #: from new rows to the old rows that they keep; None: every old row keeps its place
    kept: Mapping[int, int] | None = None

    def fill(
        self, method: RowMethod, new: NewTokens, *, match_length: bool = False, seed: int = 0
    ) -> tuple[TokenLayers, float]:
        """Return token layers whose new rows are made by a method, and the mean factor of length matching.

        Parameters
        ----------
        method
            The method.
        new
            The new tokens.
        match_length
            Whether the input rows get the length of the old rows that they are made of.
        seed
            The seed of random rows.
        """
        factor = 1.0

        def filled(tensor: Any, name: str) -> Any:
            nonlocal factor
            values = tensor.detach().float().cpu().numpy()
            old = values[:, None] if values.ndim == 1 else values
            rows = method.rows(old, new, stream(seed, f"new {name}"))
            if match_length and name == "input rows":
                matched = match_lengths(rows, old, new.named or new.pieces)
                factor = float((np.linalg.norm(matched, axis=1) / np.linalg.norm(rows, axis=1)).mean())
                rows = matched
            return with_rows(self._grown(tensor), self.ids, rows.reshape(len(rows), *values.shape[1:]))

        inputs = filled(self.layers.inputs, "input rows")
        return TokenLayers(inputs, tuple(filled(tensor, "output rows") for tensor in self.layers.outputs)), factor

    def _grown(self, tensor: Any) -> Any:
        """Return a tensor of `total` rows: the old ones at their new places, and the mean of the old rows elsewhere."""
        grown = tensor.new_empty((self.total, *tensor.shape[1:]))
        grown[:] = tensor.float().mean(dim=0).to(tensor.dtype)
        if self.kept is None:
            grown[: len(tensor)] = tensor
        else:
            grown[list(self.kept)] = tensor[list(self.kept.values())]
        return grown


def with_rows(tensor: Any, ids: Sequence[int], rows: Matrix) -> Any:
    """Return a copy of a tensor with other rows at some ids."""
    import torch

    changed = tensor.clone()
    changed[list(ids)] = torch.from_numpy(np.ascontiguousarray(rows)).to(tensor.device, tensor.dtype)
    return changed


def measure_layers(layers: TokenLayers, ids: Sequence[int], names: Sequence[str | None], seed: int) -> NewRows:
    """Measure the new rows of token layers."""
    biases = [tensor for tensor in layers.outputs if tensor.dim() == 1]
    bias = biases[0].detach().float().cpu().numpy() if biases else None
    return measure(layers.inputs.detach().float().cpu().numpy(), ids, names, bias=bias, seed=seed)


def token_names(tokenizer: Any, rows: int) -> list[str | None]:
    """Return the token of each row, None for rows without one."""
    names: list[str | None] = [None] * rows
    for token, token_id in tokenizer.get_vocab().items():
        if token_id < rows:
            names[token_id] = token
    return names
