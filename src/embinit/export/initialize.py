"""`initialize`: give the tokens of a model in memory good rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embinit.alignment import Projection
from embinit.errors import EmbinitError, require
from embinit.export.changes import report_changes
from embinit.export.layers import set_rows
from embinit.export.report import Initialization, Output
from embinit.export.resize import is_tied
from embinit.export.rows import MadeMatrix, make_rows, read_source
from embinit.hub import embedding_of, is_embedding
from embinit.recipes.recipe import ADVISED, Recipe
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Flags, Matrix, Vocabulary

#: Rows without a token are a warning if they are more than this share. Many models round the number of rows up.
_UNNAMED = 0.05


def initialize(
    model: Any,
    tokenizer: Any,
    source: Any,
    *,
    recipe: Recipe | str | Path = ADVISED,
    task: str | None = None,
    seed: int = 0,
    output_rows: bool = False,
    project: Projection | None = None,
    fill: str | None = None,
    host: Any = None,
) -> Initialization:
    """Give a model in memory the rows of pre-trained vectors: align, diagnose, apply the advised recipe, set, and verify.

    The embedding is changed in place, so optimizers and tied output layers keep their weight. Special tokens, the padding
    row and tokens that the source lacks keep their rows.

    Parameters
    ----------
    model
        A model of transformers, or a `torch.nn.Embedding`.
    tokenizer
        The tokens of its rows: a tokenizer of transformers or tokenizers, a list of tokens, a token file, a tokenizer's
        folder, or a hub id.
    source
        Anything that `load` takes. A matrix that `embinit make` wrote goes in bit for bit, unless a recipe is named.
    recipe
        The recipe: a name, steps, or a `Recipe`. By default it is the one that `diagnose` advises.
    task
        `translation` (the default), `classification`, `language_model` or `masked_language_model`. The advice for a
        classifier differs only with sinusoidal positions.
    seed
        The seed of random steps and of a projection.
    output_rows
        Whether an output layer with weights of its own gets the same rows. A tied output layer always has them.
    project
        The projection to the model's dimension: `orthogonal`, `pad`, or, to fewer dimensions, `pca`.
    fill
        The fill of tokens that the source lacks, for example `target`. By default they keep the model's rows.
    host
        The model that the advice is for, if its type is unknown: anything that `host` takes. A bare layer is judged like
        `tutorial`, the default.

    Returns
    -------
    Initialization
        Coverage, the size of the rows before and after, the verdict, missing tokens, and the rows that are kept.

    Raises
    ------
    EmbinitError
        If the model has no embedding of float numbers, no token is found, or the dimensions differ and `project` is not
        given.

    Examples
    --------
    >>> report = embinit.initialize(model, tokenizer, "glove.840B.300d.txt", project="orthogonal")     # doctest: +SKIP
    >>> print(report)                                                                                    # doctest: +SKIP
    """
    require("torch", "train", "putting rows into a model")
    given, warnings = read_source(source)
    vocabulary = as_vocabulary(tokenizer)
    done = initialize_rows(
        model, vocabulary, given, owned=np.ones(len(vocabulary), dtype=bool), host=host, recipe=recipe, fill=fill,
        task=task, seed=seed, project=project, output_rows=output_rows,
    )  # fmt: skip
    return replace(done, warnings=(*warnings, *done.warnings))


def initialize_rows(
    model: Any,
    vocabulary: Vocabulary,
    source: Any,
    *,
    owned: Flags,
    host: Any = None,
    recipe: Recipe | str | Path = ADVISED,
    fill: str | None = None,
    task: str | None = None,
    seed: int = 0,
    project: Projection | None = None,
    output_rows: bool = False,
) -> Initialization:
    """Give a model rows for the tokens of a vocabulary, in place; `owned` flags the tokens that it had a row of before.

    The other parameters are those of `initialize`.
    """
    layer = embedding_layer(model)
    head = _output_layer(model)
    if output_rows:
        _check_output(model, layer, head)
    vocabulary, owned, warnings = _fitted(vocabulary, owned, layer)
    warnings += _decoder_warnings(model, layer)
    rows = make_rows(
        source, vocabulary, owned=owned, model=model if host is None else host, dim=int(layer.weight.shape[1]),
        recipe=recipe, fill=fill, task=task, seed=seed, project=project,
    )  # fmt: skip
    old, tied = numbers_of(layer.weight), head is not None and is_tied(model)
    set_rows(layer.weight, rows.matrix[rows.ids], rows.ids)
    if head is not None and tied != is_tied(model):
        raise EmbinitError(f"{type(model).__name__}: the output layer lost its tie to the embedding")
    if output_rows and not tied:
        set_rows(head.weight, rows.matrix[rows.ids], rows.ids)
    output: Output = "none" if head is None else "tied" if tied else "set" if output_rows else "kept"
    unused = 0
    if isinstance(source, MadeMatrix):
        unused = sum(token not in vocabulary.index for token in source.embeddings.tokens)
    done = report_changes(rows, old, numbers_of(layer.weight), owned)
    return replace(done, model=type(model).__name__, output=output, unused=unused, warnings=(*warnings, *done.warnings))


def embedding_layer(model: Any) -> Any:
    """Return the embedding layer of a model, or the layer itself; one that cannot be filled is an error."""
    if is_embedding(model):
        layer = model
    elif hasattr(model, "get_input_embeddings"):
        layer = embedding_of(model)
    else:
        raise EmbinitError(
            f"initialize(model, tokenizer, source) takes a model of transformers or a torch.nn.Embedding, not "
            f"{type(model).__name__}; give its embedding layer, for example model.embedding"
        )
    weight = layer.weight
    if weight.dim() != 2 or not weight.is_floating_point():
        raise EmbinitError(
            f"the embedding of this {type(model).__name__} holds no float numbers, so it is quantized; initialize the "
            "original model and quantize the result"
        )
    if weight.is_meta:
        raise EmbinitError(f"this {type(model).__name__} has no weights yet (device meta); load it first")
    return layer


def numbers_of(weight: Any) -> Matrix:
    """Return a float32 copy of a weight."""
    return np.array(weight.detach().cpu().float().numpy())


def _output_layer(model: Any) -> Any:
    """Return the output layer of a model, None if it has none."""
    return None if is_embedding(model) else getattr(model, "get_output_embeddings", lambda: None)()


def _check_output(model: Any, layer: Any, head: Any) -> None:
    if head is None:
        raise EmbinitError(f"output_rows: this {type(model).__name__} has no output layer; leave output_rows out")
    if head.weight.shape != layer.weight.shape:
        shapes = f"{tuple(head.weight.shape)}, but the embedding has {tuple(layer.weight.shape)}"
        raise EmbinitError(f"output_rows: the output layer has the shape {shapes}; leave output_rows out")


def _decoder_warnings(model: Any, layer: Any) -> list[str]:
    """Return a warning if the decoder of a model has an embedding of its own, which keeps its rows."""
    decoder = getattr(model, "get_decoder", lambda: None)()
    own = getattr(decoder, "get_input_embeddings", lambda: None)()
    if own is None or own.weight is layer.weight:
        return []
    return [
        "the decoder has an embedding of its own, which keeps its rows; set them with "
        "embinit.initialize(model.get_decoder(), tokenizer, source)"
    ]


def _fitted(vocabulary: Vocabulary, owned: Flags, layer: Any) -> tuple[Vocabulary, Flags, list[str]]:
    """Return a vocabulary with at most one token for each row, its padding token special; and warnings on sizes."""
    rows, tokens = len(layer.weight), len(vocabulary)
    warnings = []
    if tokens > rows:
        warnings.append(
            f"the tokenizer has {tokens:,} tokens, but the model has {rows:,} rows, so the last {tokens - rows:,} tokens "
            f"have no row; call model.resize_token_embeddings({tokens}) first"
        )
        counts = None if vocabulary.counts is None else vocabulary.counts[:rows]
        vocabulary, owned = replace(vocabulary, tokens=vocabulary.tokens[:rows], counts=counts), owned[:rows]
    elif rows - tokens > _UNNAMED * rows:
        warnings.append(
            f"the model has {rows:,} rows, but there are {tokens:,} tokens, so the last {rows - tokens:,} rows are kept; "
            "check that the tokenizer belongs to this model"
        )
    padding = getattr(layer, "padding_idx", None)
    if padding is not None and padding < len(vocabulary):
        vocabulary = replace(vocabulary, specials=vocabulary.specials | {vocabulary.tokens[padding]})
    return vocabulary, owned, warnings
