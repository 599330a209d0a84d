"""Give a pre-trained model new tokens: the tokenizer, the rows, and a report on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from embinit.errors import EmbinitError, closest, require
from embinit.export.resize import TokenLayers, is_tied, set_token_layers, token_layers
from embinit.extending.methods import METHODS, NewTokens, Pieces, RowMethod, match_lengths, row_method
from embinit.extending.report import Extension
from embinit.extending.tokenizers import ExtendedTokenizer, add_words, piece_ids
from embinit.extending.verdict import NewRows, measure
from embinit.seeds import stream
from embinit.types import Matrix

#: The measures of transformers' default are reported for comparison under this name.
DEFAULT = "transformers' default"


def extend(
    model: Any,
    tokenizer: Any,
    tokens: Sequence[str],
    *,
    method: str = "advised",
    like: Mapping[str, str] | None = None,
    skip_known: bool = False,
    match_length: bool = False,
    pad_to_multiple_of: int | None = None,
    seed: int = 0,
) -> Extension:
    """Give a pre-trained model new tokens with good rows.

    The model is changed in place, as by `resize_token_embeddings`: its embedding, its output layer (tied or not) and
    `vocab_size` get the new tokens. The tokenizer is not changed; the result has a new one.

    Parameters
    ----------
    model
        A model of transformers.
    tokenizer
        Its fast tokenizer.
    tokens
        The new tokens: single words that the tokenizer splits.
    method
        The method that makes the rows; see `embinit extend --help`.
    like
        For the methods `like` and `description`: from each new token to an existing token or to a phrase.
    skip_known
        Whether tokens that exist already are skipped; otherwise they are an error.
    match_length
        Whether new rows get the length of the old rows that they are made of.
    pad_to_multiple_of
        The number of rows is rounded up to a multiple of this.
    seed
        The seed of random rows.

    Returns
    -------
    Extension
        The new tokenizer, the ids, and measures of the new rows.

    Raises
    ------
    EmbinitError
        If a token is empty, has spaces, exists already or cannot be added, or the tokenizer does not belong to the model.

    Examples
    --------
    >>> extension = embinit.extend(model, tokenizer, ["graphene", "perovskite"])     # doctest: +SKIP
    >>> tokenizer = extension.tokenizer                                               # doctest: +SKIP
    """
    require("transformers", "train", "extending a model")
    check_model(model)
    chosen = "pieces" if method == "advised" else method
    row_method(chosen)
    layers = token_layers(model)
    rows = len(layers.inputs)
    extended = add_words(tokenizer, tokens, rows=rows, skip_known=skip_known)
    named = _named(extended, chosen, like, tokenizer)
    new = NewTokens(extended.words, extended.pieces, named)
    total = _rounded(max(rows, extended.ids[-1] + 1), pad_to_multiple_of)
    filled, factor = fill_layers(
        layers, extended.ids, total, METHODS[chosen], new, match_length=match_length, seed=seed
    )
    default, _ = fill_layers(layers, extended.ids, total, METHODS["mean"], new, seed=seed)
    set_token_layers(model, filled)
    names = token_names(extended.tokenizer, total)
    stages = {} if chosen == "mean" else {DEFAULT: measure_layers(default, extended.ids, names, seed)}
    return Extension(
        tokenizer=extended.tokenizer,
        words=extended.words,
        tokens=extended.stored,
        ids=extended.ids,
        method=chosen,
        rows_before=rows,
        rows=total,
        output="none" if model.get_output_embeddings() is None else "tied" if is_tied(model) else "own",
        stages={**stages, chosen: measure_layers(filled, extended.ids, names, seed)},
        length_factor=factor,
        known=extended.known,
        checked=extended.checked,
        changed=extended.changed,
    )


def check_model(model: Any) -> None:
    """Raise EmbinitError if the model is not one of transformers with float weights in its embedding."""
    if not hasattr(model, "get_input_embeddings") or not hasattr(model, "config"):
        raise EmbinitError(
            f"extend(model, tokenizer, tokens) takes a model of transformers, not {type(model).__name__}"
        )
    if getattr(model, "is_quantized", False) or getattr(model, "quantization_method", None):
        raise EmbinitError("the model is quantized; extend the original model and quantize the result")
    layer = model.get_input_embeddings()
    if layer is None or getattr(layer, "weight", None) is None or layer.weight.dim() != 2:
        raise EmbinitError(f"{type(model).__name__} has no embedding with one row for each token")
    if not layer.weight.is_floating_point():
        raise EmbinitError("the model is quantized; extend the original model and quantize the result")


def fill_layers(
    layers: TokenLayers,
    ids: Sequence[int],
    total: int,
    method: RowMethod,
    new: NewTokens,
    *,
    match_length: bool = False,
    seed: int = 0,
) -> tuple[TokenLayers, float]:
    """Return token layers with `total` rows whose new rows are made by a method, and the mean factor of length matching.

    Parameters
    ----------
    layers
        The model's token layers.
    ids
        The rows of the new tokens.
    total
        The number of rows of the result. Rows beyond the tokens get the mean of the old rows.
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
        return _with_rows(tensor, ids, total, rows.reshape(len(rows), *values.shape[1:]))

    inputs = filled(layers.inputs, "input rows")
    return TokenLayers(inputs, tuple(filled(tensor, "output rows") for tensor in layers.outputs)), factor


def _with_rows(tensor: Any, ids: Sequence[int], total: int, rows: Matrix) -> Any:
    """Return a tensor of `total` rows: the old ones, the new ones at their ids, and the mean of the old rows elsewhere."""
    import torch

    made = tensor.new_empty((total, *tensor.shape[1:]))
    made[: len(tensor)] = tensor
    made[len(tensor) :] = tensor.float().mean(dim=0).to(tensor.dtype)
    made[list(ids)] = torch.from_numpy(np.ascontiguousarray(rows)).to(tensor.device, tensor.dtype)
    return made


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


def _rounded(rows: int, multiple: int | None) -> int:
    if multiple is None:
        return rows
    if multiple < 1:
        raise EmbinitError(f"pad_to_multiple_of is {multiple}; give 1 or a larger number")
    return -(-rows // multiple) * multiple


def _named(extended: ExtendedTokenizer, method: str, like: Mapping[str, str] | None, tokenizer: Any) -> Pieces | None:
    """Return the ids of the tokens or phrases that `like` gives for the new tokens."""
    needs = METHODS[method].needs
    if not needs:
        if like is not None:
            raise EmbinitError(f"the method {method} takes no mapping; choose the method like or description")
        return None
    if like is None:
        raise EmbinitError(f"the method {method} needs a mapping from each new token to {_TARGETS[needs]}")
    missing = [word for word in extended.words if word not in like]
    if missing:
        raise EmbinitError(f"the mapping has no entry for {missing[0]!r}{closest(missing[0], like)}")
    ids = piece_ids(tokenizer, [like[word] for word in extended.words])
    for word, found in zip(extended.words, ids, strict=True):
        if not found or (needs == "like" and len(found) > 1):
            raise EmbinitError(f"{like[word]!r}, which stands for {word!r}, is not {_TARGETS[needs]} of the model")
    return ids


_TARGETS = {"like": "an existing token", "description": "a phrase"}
