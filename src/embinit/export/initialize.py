"""`initialize`: give the tokens of a model in memory good rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embinit.alignment import Projection
from embinit.errors import EmbinitError, require
from embinit.export.changes import report_changes
from embinit.export.layers import set_rows, written_rows
from embinit.export.outputs import check_output_rows, decoder_warnings, output_layer, output_of
from embinit.export.report import Initialization
from embinit.export.rows import MadeMatrix, make_rows, read_source
from embinit.format import plural
from embinit.hub import embedding_of, is_embedding, is_linear, uncompiled
from embinit.recipes.recipe import ADVISED, Recipe
from embinit.text.vocabulary import as_vocabulary
from embinit.types import Aligned, Flags, Matrix, Vocabulary

#: Rows without a token are a warning if they are more than this share, and more than a model has that rounds the number
#: of its rows up to a multiple of `_MULTIPLE`. In a small layer they are a warning if most rows have no token.
_UNNAMED, _MULTIPLE, _MOST = 0.03, 128, 0.5


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
        A model of transformers, or a layer: a `torch.nn.Embedding`, or an output layer (`torch.nn.Linear`).
    tokenizer
        The tokens of its rows: a tokenizer of transformers or tokenizers, a list of tokens, a token file, a tokenizer's
        folder, or a hub id.
    source
        Anything that `load` takes, or vectors that `align` has aligned with this tokenizer. A matrix that `embinit make`
        wrote goes in bit for bit, unless a recipe is named.
    recipe
        The recipe: a name, steps, or a `Recipe`. By default it is the one that `diagnose` advises.
    task
        `translation` (the default), `classification`, `language_model` or `masked_language_model`. The advice for a
        classifier differs only with sinusoidal positions.
    seed
        The seed of random steps and of a projection.
    output_rows
        Whether an output layer with weights of its own gets the same rows. A tied output layer always has them. If the
        decoder has an embedding of its own, initialize `model.get_decoder()` and `model.get_output_embeddings()` instead.
    project
        The projection to the model's dimension: `orthogonal`, `pad`, or, to fewer dimensions, `pca`.
    fill
        The fill of tokens that the source lacks, for example `target`. By default they keep the model's rows.
    host
        The model that the advice is for, if its type is unknown: anything that `host` takes. A bare layer is judged like
        a layer of `tutorial`, the default, and the report says so.

    Returns
    -------
    Initialization
        Coverage, the size of the rows before and after, the verdict, missing tokens, and the rows that are kept.

    Raises
    ------
    EmbinitError
        If the model has no embedding of float numbers, no token is found, the dimensions differ and `project` is not given,
        or a number is too large for the model's number format.

    Examples
    --------
    >>> report = embinit.initialize(model, tokenizer, "glove.840B.300d.txt", project="orthogonal")     # doctest: +SKIP
    >>> print(report)                                                                                    # doctest: +SKIP
    """
    require("torch", "train", "putting rows into a model")
    given, warnings = (source, ()) if isinstance(source, Aligned) else read_source(source)
    vocabulary = as_vocabulary(tokenizer)
    done = initialize_rows(
        uncompiled(model), vocabulary, given, owned=np.ones(len(vocabulary), dtype=bool), host=host, recipe=recipe,
        fill=fill, task=task, seed=seed, project=project, output_rows=output_rows,
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
    if output_rows:
        check_output_rows(model, layer)
    vocabulary, owned, warnings = _fitted(vocabulary, owned, model, layer)
    padding = _padding_row(vocabulary, layer)
    if padding is not None:
        vocabulary = replace(vocabulary, specials=vocabulary.specials | {vocabulary.tokens[padding]})
    warnings += decoder_warnings(model, layer)
    rows = make_rows(
        source, vocabulary, owned=owned, model=model if host is None else host, dim=int(layer.weight.shape[1]),
        recipe=recipe, fill=fill, task=task, seed=seed, project=project,
    )  # fmt: skip
    old, written, output = numbers_of(layer.weight), written_rows(layer.weight), output_of(model, layer)
    with_output = output_rows and output == "kept"
    weights = [layer.weight, *([output_layer(model).weight] if with_output else [])]
    set_rows(rows.matrix[rows.ids], rows.ids, *weights)
    if output_of(model, layer) != output:
        raise EmbinitError(f"{type(model).__name__}: the output layer lost its tie to the embedding")
    unused = 0
    if isinstance(source, MadeMatrix):
        unused = sum(token not in vocabulary.index for token in source.embeddings.tokens)
    done = report_changes(rows, old, numbers_of(layer.weight), owned, written=written, padding=padding)
    return replace(
        done,
        model=type(model).__name__,
        output="set" if with_output else output,
        host_assumed=host is None and layer is model,
        unused=unused,
        warnings=(*warnings, *done.warnings),
    )


def embedding_layer(model: Any) -> Any:
    """Return the embedding layer of a model, or the layer itself; one that cannot be filled is an error."""
    if is_embedding(model) or is_linear(model):
        layer = model
    elif hasattr(model, "get_input_embeddings"):
        layer = embedding_of(model)
    else:
        raise EmbinitError(
            "initialize(model, tokenizer, source) takes a model of transformers or a layer (torch.nn.Embedding, or "
            f"torch.nn.Linear for an output layer), not {type(model).__name__}; give its embedding layer, for example "
            "model.embedding"
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


def _fitted(vocabulary: Vocabulary, owned: Flags, model: Any, layer: Any) -> tuple[Vocabulary, Flags, list[str]]:
    """Return a vocabulary with at most one token for each row; and warnings on sizes."""
    rows, tokens = len(layer.weight), len(vocabulary)
    missing, unnamed = tokens - rows, rows - tokens
    sizes = f"the tokenizer has {plural(tokens, 'token')}, but the model has {plural(rows, 'row')}"
    warnings = []
    if missing > 0:
        last = "the last token has" if missing == 1 else f"the last {missing:,} tokens have"
        remedy = f"make a layer of {tokens} rows" if layer is model else f"call model.resize_token_embeddings({tokens})"
        warnings.append(f"{sizes}, so {last} no row; {remedy} first")
        counts = None if vocabulary.counts is None else vocabulary.counts[:rows]
        vocabulary, owned = replace(vocabulary, tokens=vocabulary.tokens[:rows], counts=counts), owned[:rows]
    elif unnamed > (_UNNAMED if unnamed >= _MULTIPLE else _MOST) * rows:
        last = "the last row keeps its numbers" if unnamed == 1 else f"the last {unnamed:,} rows keep their numbers"
        warnings.append(f"{sizes}, so {last}; check that the tokenizer belongs to this model")
    return vocabulary, owned, warnings


def _padding_row(vocabulary: Vocabulary, layer: Any) -> int | None:
    """Return the padding row of a layer if its token is not a special token; otherwise None."""
    padding: int | None = getattr(layer, "padding_idx", None)
    if padding is None or padding >= len(vocabulary) or vocabulary.tokens[padding] in vocabulary.specials:
        return None
    return padding
