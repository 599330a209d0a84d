"""Putting a matrix into a model's folder; the copy is loaded again, and its rows are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embinit.alignment import Projection
from embinit.errors import EmbinitError, require
from embinit.export.initialize import initialize_rows
from embinit.export.report import Initialization
from embinit.export.resize import (
    TOKENIZER_FILES,
    TokenLayers,
    load_model,
    renumber,
    save_verified,
    set_token_layers,
    token_layers,
)
from embinit.export.rows import MadeMatrix, read_source
from embinit.recipes.recipe import ADVISED, Recipe
from embinit.sources.load import load
from embinit.text.token_files import FOLDER_FILES, TokenTable, token_table
from embinit.text.vocabulary import from_table, from_tokens
from embinit.types import Embeddings, Vocabulary

#: Said before a model is resized without a tokenizer.
NO_TOKENIZER = (
    "the folder gets no tokenizer, because the tokens of the resized model are not those of its old one; give the tokenizer "
    "of these tokens with --tokenizer FOLDER"
)


def apply(
    source: Any,
    model: str | Path,
    out: str | Path,
    *,
    resize: bool = False,
    tokenizer: str | Path | None = None,
    recipe: Recipe | str | Path = ADVISED,
    task: str | None = None,
    seed: int = 0,
    output_rows: bool = False,
    project: Projection | None = None,
    fill: str | None = None,
    host: Any = None,
) -> Initialization:
    """Write a copy of a model's folder with new rows, load the copy and compare its rows bit for bit.

    Parameters
    ----------
    source
        A matrix that `embinit make` wrote goes in bit for bit, row by token. Any other source that `load` takes is aligned
        with the model's tokens and gets the advised recipe. Special tokens and tokens that the source lacks keep the
        model's rows. A model without a tokenizer takes vectors of its own number of rows, row by row.
    model
        The model's folder.
    out
        The folder to write; it must not exist.
    resize
        Whether the model gets exactly the tokens of the source, or of `tokenizer`, in their order. An output layer that is
        not tied keeps the rows of the tokens that it had, and new tokens get the mean of its rows.
    tokenizer
        With `resize`: the folder of the tokenizer whose tokens these are. Its files are copied.
    recipe
        The recipe; by default the advised one. `pretrained` keeps the vectors as they are.
    task
        `translation` (the default) or `classification`.
    seed
        The seed of random steps and of a projection.
    output_rows
        Whether an output layer with weights of its own gets the same rows.
    project
        The projection to the model's dimension: `pca`, `orthogonal` or `pad`.
    fill
        The fill of tokens that the source lacks. By default they keep the model's rows.
    host
        The model that the advice is for, if its type is unknown.

    Returns
    -------
    Initialization
        The numbers of rows that were replaced and kept, their sizes, and the verdict.

    Raises
    ------
    EmbinitError
        If the model cannot be loaded, the dimensions differ, or no token matches.
    """
    require("transformers", "train", "putting a matrix into a model")
    require("torch", "train", "putting a matrix into a model")
    given, warnings = read_source(source)
    model, out = Path(model), Path(out)
    if not (model / "config.json").is_file():
        raise EmbinitError(f"{model} is no model folder: it has no config.json")
    if out.resolve() == model.resolve():
        raise EmbinitError(f"{out} is the model itself; give another folder")
    if tokenizer is not None and not resize:
        raise EmbinitError(
            "a tokenizer goes with resize (--resize); without it the model keeps its tokens and its tokenizer"
        )
    own_tokenizer = None if tokenizer is None else read_tokenizer(Path(tokenizer))
    loaded, missing = load_model(model)
    rows = len(loaded.get_input_embeddings().weight)
    old = _tokens(model, rows, given, resize)
    vocabulary, owned = old, np.ones(len(old), dtype=bool)
    if resize:
        given, vocabulary = _wanted(given, old, own_tokenizer)
        owned = np.array([token in old.index for token in vocabulary.tokens], dtype=bool)
        _resize(loaded, old, vocabulary)
    done = initialize_rows(
        loaded, vocabulary, given, owned=owned, host=host, recipe=recipe, fill=fill, task=task, seed=seed, project=project,
        output_rows=output_rows,
    )  # fmt: skip

    def write_tokens(folder: Path) -> None:
        if tokenizer is not None:
            _copy_tokenizer(Path(tokenizer), folder)
        elif resize:
            (folder / "tokens.json").write_text(json.dumps({"tokens": list(vocabulary.tokens)}), encoding="utf-8")

    save_verified(loaded, token_layers(loaded), out, source=model, keep_tokenizer=not resize, finish=write_tokens)
    if resize and tokenizer is None:
        warnings = (NO_TOKENIZER, *warnings)
    return replace(
        done,
        model=str(model),
        warnings=(*warnings, *done.warnings),
        resized=resize,
        tokenizer_saved=tokenizer is not None,
        missing_tensors=missing,
    )


def read_tokenizer(folder: Path) -> Vocabulary:
    """Return the vocabulary of a tokenizer's folder."""
    if not folder.is_dir():
        raise EmbinitError(f"there is no tokenizer folder {folder}")
    return from_table(_table(folder), str(folder))


def _table(folder: Path) -> TokenTable:
    return token_table(lambda name: folder / name if (folder / name).is_file() else None, str(folder))


def _tokens(model: Path, rows: int, source: Any, resize: bool) -> Vocabulary:
    """Return the model's tokens by row; a model without a tokenizer has those of the vectors, if the sizes agree."""
    if any((model / name).is_file() for name in FOLDER_FILES):
        table = _table(model)
        first = {token: row for row, token in reversed(list(enumerate(table.tokens)))}
        # A token that a list repeats stands for its first row.
        unique = [token if first[token] == row else None for row, token in enumerate(table.tokens)]
        # Without a row, a token is new to a model that is resized; otherwise it is a reason for a warning.
        return from_table(replace(table, tokens=unique[:rows] if resize else unique), str(model))
    if resize:
        return from_table(TokenTable([None] * rows, frozenset()), str(model))
    embeddings = _embeddings(source)
    if rows == len(embeddings):
        return from_tokens(embeddings.tokens, embeddings.specials, str(model))
    raise EmbinitError(
        f"{model} has no tokenizer and {rows:,} rows, but the matrix has {len(embeddings):,}; "
        f"give a matrix of {rows:,} rows, or --resize"
    )


def _embeddings(source: Any) -> Embeddings:
    return source.embeddings if isinstance(source, MadeMatrix) else load(source)


def _wanted(source: Any, old: Vocabulary, tokenizer: Vocabulary | None) -> tuple[Any, Vocabulary]:
    """Return the source and the tokens that a resized model gets: those of the tokenizer, or of the source."""
    if tokenizer is not None and not isinstance(source, MadeMatrix):
        return source, tokenizer
    embeddings = _embeddings(source)
    if tokenizer is not None:
        _check_tokens(embeddings, tokenizer)
        return source, tokenizer
    specials = embeddings.specials | {token for token in embeddings.tokens if token in old.specials}
    vocabulary = from_tokens(embeddings.tokens, specials, embeddings.origin.source)
    return (source if isinstance(source, MadeMatrix) else embeddings), vocabulary


def _check_tokens(embeddings: Embeddings, tokenizer: Vocabulary) -> None:
    ours, theirs = tuple(embeddings.tokens), tokenizer.tokens
    if ours == theirs:
        return
    remedy = f"make the matrix with --vocab {tokenizer.origin}"
    if len(ours) != len(theirs):
        raise EmbinitError(f"{tokenizer.origin} has {len(theirs):,} tokens, but the matrix has {len(ours):,}; {remedy}")
    row = next(row for row, (token, other) in enumerate(zip(ours, theirs, strict=True)) if token != other)
    raise EmbinitError(
        f"{tokenizer.origin} has the token {theirs[row]!r} at {row}, but the matrix has {ours[row]!r}; {remedy}"
    )


def _copy_tokenizer(source: Path, folder: Path) -> None:
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            (folder / name).write_bytes((source / name).read_bytes())


def _resize(loaded: Any, old: Vocabulary, new: Vocabulary) -> None:
    """Give a model the tokens of a new vocabulary; a token that it had keeps its row, and a new one has zeros for now."""
    pairs = [(old.index[token], row) for row, token in enumerate(new.tokens) if token in old.index]
    taken, into = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    layers = token_layers(loaded)
    inputs = layers.inputs.new_zeros((len(new), layers.inputs.shape[1]))
    inputs[into] = layers.inputs[taken]
    outputs = []
    for tensor in layers.outputs:  # an output row of a new token is the mean of the old rows
        mean = tensor.float().mean(dim=0, keepdim=True).to(tensor.dtype)
        output = mean.repeat(len(new), *[1] * (mean.dim() - 1))
        output[into] = tensor[taken]
        outputs.append(output)

    def new_id(token_id: int) -> int | None:
        return new.index.get(old.tokens[token_id]) if 0 <= token_id < len(old) else None

    renumber(loaded, new_id)
    set_token_layers(loaded, TokenLayers(inputs, tuple(outputs)))
    layer = loaded.get_input_embeddings()
    if getattr(layer, "padding_idx", None) is not None:
        layer.padding_idx = new_id(layer.padding_idx)
