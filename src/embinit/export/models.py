"""Putting a matrix into a model: a Hugging Face folder, or any nn.Embedding; the rows are read back and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embinit.errors import EmbinitError, require
from embinit.export.resize import (
    TokenLayers,
    is_tied,
    load_model,
    renumber,
    save_verified,
    set_token_layers,
    token_layers,
)
from embinit.sources.load import load
from embinit.text.markers import looks_special
from embinit.text.token_files import FOLDER_FILES, TokenTable, token_table
from embinit.types import Embeddings, Matrix, check_matrix

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Applied:
    """The result of `apply`: numbers of rows that were replaced and kept."""

    rows: int
    dim: int
    replaced: int
    #: special tokens of the model, whose rows are kept
    specials_kept: int
    #: other rows of the model, for which the matrix has no token
    others_kept: int
    #: tokens of the matrix that the model's tokenizer lacks
    unused: int
    tied: bool
    resized: bool
    #: tensors that the model's folder lacks; transformers initialized them at random
    missing: int = 0


def set_embedding(layer: torch.nn.Embedding, matrix: Matrix, *, freeze: bool = False) -> None:
    """Copy a matrix into an embedding layer of the same shape, in place, and check the copy.

    Parameters
    ----------
    layer
        The embedding layer. Its padding row (`padding_idx`) is kept; it is zero unless it was changed.
    matrix
        One row for each token: an array or a tensor.
    freeze
        Whether the rows are excluded from training.

    Raises
    ------
    EmbinitError
        If the layer is no embedding, or the shapes differ.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Embedding(2, 3)
    >>> set_embedding(layer, np.ones((2, 3)))
    >>> layer.weight.sum().item()
    6.0
    """
    torch = require("torch", "train", "putting a matrix into a layer")
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor) or not hasattr(layer, "padding_idx"):
        raise EmbinitError(f"set_embedding(layer, matrix) fills a torch.nn.Embedding, not {type(layer).__name__}")
    matrix = matrix if isinstance(matrix, np.ndarray) else check_matrix(matrix)
    if tuple(weight.shape) != matrix.shape:
        raise EmbinitError(f"the layer has the shape {tuple(weight.shape)}, but the matrix has {matrix.shape}")
    values = torch.from_numpy(np.ascontiguousarray(matrix)).to(weight.device, weight.dtype)
    if layer.padding_idx is not None:
        values = values.clone()
        values[layer.padding_idx] = weight.data[layer.padding_idx]
    with torch.no_grad():
        weight.copy_(values)
    if not torch.equal(weight.data, values):
        raise EmbinitError("the layer does not hold the rows that were put into it")
    weight.requires_grad_(not freeze)


def apply(embeddings: Embeddings | str | Path, model: str | Path, out: str | Path, *, resize: bool = False) -> Applied:
    """Write a copy of a model's folder with these embedding rows, load the copy and compare its rows bit for bit.

    Parameters
    ----------
    embeddings
        Embeddings, or anything that `load` takes. Rows are matched by token: a token that the model's tokenizer has gets the
        new row. Special tokens and all other rows are kept. A model without a tokenizer takes a matrix of its own shape, row
        by row.
    model
        The model's folder.
    out
        The folder to write; it must not exist.
    resize
        Whether the model gets exactly these tokens, in their order. An output layer that is not tied keeps the rows of the
        tokens that it had, and new tokens get the mean of its rows.

    Returns
    -------
    Applied
        The numbers of rows that were replaced and kept.

    Raises
    ------
    EmbinitError
        If the model cannot be loaded, the dimensions differ, or no token matches.
    """
    require("transformers", "train", "putting a matrix into a model")
    require("torch", "train", "putting a matrix into a model")
    embeddings, model, out = load(embeddings), Path(model), Path(out)
    if not (model / "config.json").is_file():
        raise EmbinitError(f"{model} is no model folder: it has no config.json")
    if out.resolve() == model.resolve():
        raise EmbinitError(f"{out} is the model itself; give another folder")
    loaded, missing = load_model(model)
    layer = loaded.get_input_embeddings()
    if int(layer.weight.shape[1]) != embeddings.dim:
        raise EmbinitError(
            f"{model} has {int(layer.weight.shape[1])} dimensions, but the matrix has {embeddings.dim}; "
            "make the matrix with --dim and --project"
        )
    table = _tokens(model, len(layer.weight), embeddings, resize)
    plan = _plan(embeddings, table, len(layer.weight), resize)
    if not plan.into:
        raise EmbinitError(
            f"no token of the matrix is in {model}, so no row would change (special tokens keep their rows); see --resize"
        )
    if resize:
        renumber(loaded, _new_ids(table.tokens, embeddings))
    expected = _fill(loaded, plan, embeddings, resize)
    rows = len(expected.inputs)

    def write_tokens(folder: Path) -> None:
        if resize:
            (folder / "tokens.json").write_text(json.dumps({"tokens": list(embeddings.tokens)}), encoding="utf-8")

    save_verified(loaded, expected, out, source=model, keep_tokenizer=not resize, finish=write_tokens)
    return Applied(
        rows=rows,
        dim=embeddings.dim,
        replaced=len(plan.into),
        specials_kept=plan.specials_kept,
        others_kept=0 if resize else rows - len(plan.into) - plan.specials_kept,
        unused=plan.unused,
        tied=is_tied(loaded),
        resized=resize,
        missing=missing,
    )


@dataclass(frozen=True)
class _Plan:
    """Rows to copy: from the matrix, and from the old layer, into the new layer."""

    #: row of the matrix -> row of the new layer
    source: list[int]
    into: list[int]
    #: row of the old layer -> row of the new layer, for tokens whose row or output row is kept
    kept_from: list[int]
    kept_into: list[int]
    specials_kept: int
    unused: int


def _plan(embeddings: Embeddings, table: TokenTable, rows: int, resize: bool) -> _Plan:
    known = {token: i for i, token in reversed(list(enumerate(table.tokens[:rows]))) if token is not None}
    marked = table.specials | embeddings.specials
    special = {token for token in known if token in marked or looks_special(token)}
    shared = [(i, known[token]) for i, token in enumerate(embeddings.tokens) if token in known]
    if resize:
        source = [i for i, token in enumerate(embeddings.tokens) if token not in special]
        return _Plan(source, source, [j for _, j in shared], [i for i, _ in shared], len(embeddings) - len(source), 0)
    plain = [(i, j) for i, j in shared if embeddings.tokens[i] not in special]
    return _Plan([i for i, _ in plain], [j for _, j in plain], [], [], len(special), len(embeddings) - len(shared))


def _fill(loaded: Any, plan: _Plan, embeddings: Embeddings, resize: bool) -> TokenLayers:
    """Put the rows into the model and return the contents that its token layers should have."""
    import torch

    values = torch.from_numpy(np.ascontiguousarray(embeddings.vectors))
    old = token_layers(loaded)
    inputs, outputs = old.inputs, old.outputs
    if resize:
        inputs = old.inputs.new_zeros((len(embeddings), embeddings.dim))
        inputs[plan.kept_into] = old.inputs[plan.kept_from]
        # An output row that belongs to no old token gets the mean of the old rows.
        means = [tensor.float().mean(dim=0, keepdim=True).to(tensor.dtype) for tensor in old.outputs]
        outputs = tuple(mean.repeat(len(embeddings), *[1] * (mean.dim() - 1)) for mean in means)
        for new, tensor in zip(outputs, old.outputs, strict=True):
            new[plan.kept_into] = tensor[plan.kept_from]
    inputs[plan.into] = values[plan.source].to(inputs.device, inputs.dtype)
    layers = TokenLayers(inputs, outputs)
    set_token_layers(loaded, layers)
    return layers


def _new_ids(old_tokens: Sequence[str | None], embeddings: Embeddings) -> Callable[[int], int | None]:
    """Return a function from a token's old id to its new one, None for a token that is gone."""

    def new_id(old: int) -> int | None:
        token = old_tokens[old] if 0 <= old < len(old_tokens) else None
        return None if token is None else embeddings.index.get(token)

    return new_id


def _tokens(model: Path, rows: int, embeddings: Embeddings, resize: bool) -> TokenTable:
    """Return the model's tokens by row; a model without a tokenizer has the matrix's tokens, if the sizes agree."""
    if any((model / name).is_file() for name in FOLDER_FILES):
        return token_table(lambda name: model / name if (model / name).is_file() else None, str(model))
    if rows == len(embeddings):
        return TokenTable(list(embeddings.tokens), embeddings.specials)
    if resize:
        return TokenTable([None] * rows, frozenset())
    raise EmbinitError(
        f"{model} has no tokenizer and {rows} rows, but the matrix has {len(embeddings)}; "
        f"give a matrix of {rows} rows, or --resize"
    )
