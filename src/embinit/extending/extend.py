"""Give a pre-trained model new tokens: the tokenizer, the rows, and a report on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from embinit.errors import EmbinitError, require
from embinit.export.outputs import decoder_embedding
from embinit.export.resize import TokenLayers, is_tied, output_tensors, set_token_layers, token_layers
from embinit.extending.advice import advise
from embinit.extending.auxiliary import auxiliary_of
from embinit.extending.distillation.contexts import Text, text_lines
from embinit.extending.distillation.distill import Distillation, distill
from embinit.extending.methods import METHODS, NewTokens, Pieces, row_method
from embinit.extending.report import Extension
from embinit.extending.restoration import restored_after_errors
from embinit.extending.rows import Filler, measure_layers, token_names, with_rows
from embinit.extending.swap import renumber_settings, replace_tokenizer
from embinit.extending.tokenizers import ExtendedTokenizer, add_words, backend, largest_id, normalized, piece_ids
from embinit.hub import embedding_of, is_model

#: The measures of transformers' default are reported for comparison under this name.
DEFAULT = "transformers' default"
#: Models whose rows are padded to a multiple have a smaller share of rows without a token.
_SPARE = 0.05


def extend(
    model: Any,
    tokenizer: Any,
    tokens: Sequence[str] | None = None,
    *,
    new_tokenizer: Any = None,
    method: str = "advised",
    text: Text | Iterable[Text] | None = None,
    vectors: Any = None,
    like: Mapping[str, str] | None = None,
    distillation: Distillation | None = None,
    skip_known: bool = False,
    match_length: bool = False,
    pad_to_multiple_of: int | None = None,
    seed: int = 0,
) -> Extension:
    """Give a pre-trained model new tokens, or a whole new tokenizer, with good rows.

    The model is changed in place, as by `resize_token_embeddings`: its embedding, its output layer (tied or not) and
    `vocab_size` get the new tokens. The tokenizer is not changed; the result has a new one. After an error the model is as
    it was.

    Parameters
    ----------
    model
        A model of transformers.
    tokenizer
        Its fast tokenizer.
    tokens
        The new tokens: single words that the tokenizer splits.
    new_tokenizer
        Instead of tokens: another fast tokenizer. Tokens that both have keep their rows.
    method
        The method that makes the rows; see `embinit extend --help`. `advised` chooses the best one for the given inputs.
    text
        Text in which the new tokens occur, for the methods `distill`, `focus` and `omp`: lines (strings), or files of lines
        (`Path("corpus.txt")`, because a string is always a line).
    vectors
        Vectors that hold new and old tokens, for the methods `focus` and `omp`: anything that `load` takes. Without them,
        vectors are trained on the text.
    like
        For the methods `like` and `description`: from each new token to an existing token or to a phrase.
    distillation
        Settings of the method `distill`.
    skip_known
        Whether tokens that exist already are skipped; otherwise they are an error.
    match_length
        Whether new rows get the length of the old rows that they are made of.
    pad_to_multiple_of
        The number of rows is rounded up to a multiple of this.
    seed
        The seed of everything random.

    Returns
    -------
    Extension
        The new tokenizer, the ids, and measures of the new rows.

    Raises
    ------
    EmbinitError
        If a token is empty, has spaces, exists already or cannot be added, the tokenizer does not belong to the model, or
        the method lacks what it needs.

    Examples
    --------
    >>> extension = embinit.extend(model, tokenizer, ["graphene", "perovskite"])     # doctest: +SKIP
    >>> tokenizer = extension.tokenizer                                               # doctest: +SKIP
    """
    require("transformers", "train", "extending a model")
    check_model(model)
    if tokens is None and new_tokenizer is None:
        raise EmbinitError("there is nothing to add; give new tokens (tokens=[…]) or a new tokenizer (new_tokenizer=…)")
    if tokens is not None and new_tokenizer is not None:
        raise EmbinitError("tokens and new_tokenizer are both given; give only one of them")
    layers = token_layers(model)
    lines = None if text is None else _checked(text_lines(text))
    details: dict[str, Any] = {}
    if method == "advised":
        method, details["advice"] = advise(model, tokenizer, lines, vectors, like)
    else:
        _check_inputs(method, lines, vectors)
    if new_tokenizer is not None:
        extended = replace_tokenizer(model, tokenizer, new_tokenizer)
    else:
        extended = add_words(tokenizer, tokens or (), rows=len(layers.inputs), skip_known=skip_known)
    spare = len(layers.inputs) - 1 - largest_id(tokenizer, len(layers.inputs))
    if spare > _SPARE * len(layers.inputs):
        details["rows without a token"] = (
            f"{spare:,} of {len(layers.inputs):,} before; check that the tokenizer belongs to the model"
        )
    new = NewTokens(extended.words, extended.pieces, _named(extended, method, like, tokenizer))
    if METHODS[method].needs == "vectors":
        auxiliary, details["auxiliary vectors"] = auxiliary_of(extended, vectors, lines, seed=seed)
        new = replace(new, auxiliary=auxiliary)
    largest = max(backend(extended.tokenizer).get_vocab(with_added_tokens=True).values())
    rows = largest + 1 if new_tokenizer is not None else max(len(layers.inputs), largest + 1)
    filler = Filler(layers, extended.ids, _rounded(rows, pad_to_multiple_of), extended.kept)
    filled, factor = filler.fill(METHODS[method], new, match_length=match_length, seed=seed)
    default, _ = filler.fill(METHODS["mean"], new, seed=seed)
    stages = {} if method == "mean" else {DEFAULT: default}
    if METHODS[method].fitted:
        stages["pieces"] = filled
    with restored_after_errors(model):
        if METHODS[method].fitted:
            set_token_layers(model, filled)
            settings = distillation or Distillation()
            fitted = distill(model, tokenizer, extended, lines, settings, old_rows=layers.inputs, seed=seed)
            filled = TokenLayers(with_rows(filled.inputs, extended.ids, fitted.rows), filled.outputs)
            details.update(fitted.details)
        set_token_layers(model, filled)
        if extended.kept is not None:
            renumber_settings(model, tokenizer, extended)
        stages[method] = filled
        names = token_names(extended.tokenizer, filler.total)
        return Extension(
            tokenizer=extended.tokenizer,
            words=extended.words,
            tokens=extended.stored,
            ids=extended.ids,
            method=method,
            rows_before=len(layers.inputs),
            rows=filler.total,
            output=_output(model),
            stages={name: measure_layers(stage, extended.ids, names, seed) for name, stage in stages.items()},
            length_factor=factor,
            known=extended.known,
            checked=extended.checked,
            changed=extended.changed,
            details={**details, **extended.details},
        )


def _output(model: Any) -> Literal["tied", "own", "none"]:
    return "none" if model.get_output_embeddings() is None else "tied" if is_tied(model) else "own"


def check_model(model: Any) -> None:
    """Raise EmbinitError if the model is not one of transformers with float weights in its embedding."""
    if not hasattr(model, "get_input_embeddings") or not hasattr(model, "config"):
        raise EmbinitError(
            f"extend(model, tokenizer, tokens) takes a model of transformers, not {type(model).__name__}"
        )
    if getattr(model, "is_quantized", False) or getattr(model, "quantization_method", None):
        raise EmbinitError("the model is quantized; extend the original model and quantize the result")
    layer = embedding_of(model)
    if layer.weight.dim() != 2:
        raise EmbinitError(f"{type(model).__name__} has no embedding with one row for each token")
    if not layer.weight.is_floating_point():
        raise EmbinitError("the model is quantized; extend the original model and quantize the result")
    if any(tensor.is_meta for tensor in (layer.weight, *output_tensors(model))):
        raise EmbinitError(f"this {type(model).__name__} has no weights yet (device meta); load it first")
    if decoder_embedding(model, layer) is not None:
        parts = (
            "extend each of them: extend(model.encoder, …) and extend(model.decoder, …)"
            if is_model(getattr(model, "encoder", None))
            else "extend takes models whose encoder and decoder share one embedding"
        )
        raise EmbinitError(
            f"the encoder and the decoder of this {type(model).__name__} have an embedding each; {parts}"
        )


def _rounded(rows: int, multiple: int | None) -> int:
    if multiple is None:
        return rows
    if multiple < 1:
        raise EmbinitError(f"pad_to_multiple_of is {multiple}; give 1 or a larger number")
    return -(-rows // multiple) * multiple


def _check_inputs(method: str, lines: Sequence[str] | None, vectors: Any) -> None:
    """Raise EmbinitError if something was given that the method does not use."""
    needs, fitted = row_method(method).needs, METHODS[method].fitted
    if vectors is not None and needs != "vectors":
        raise EmbinitError(f"the method {method} takes no vectors; choose the method focus or omp")
    if lines is not None and not (fitted or (needs == "vectors" and vectors is None)):
        raise EmbinitError(f"the method {method} takes no text; choose the method distill, focus or omp")


def _checked(lines: Iterable[str]) -> list[str]:
    listed = [line for line in lines if line.strip()]
    if not listed:
        raise EmbinitError("the text has no lines; give text in which the new tokens occur, or no text")
    return listed


def _named(extended: ExtendedTokenizer, method: str, like: Mapping[str, str] | None, tokenizer: Any) -> Pieces | None:
    """Return the ids of the tokens or phrases that `like` gives for the new tokens."""
    needs = METHODS[method].needs
    if needs not in _TARGETS:
        if like is not None:
            raise EmbinitError(f"the method {method} takes no mapping; choose the method like or description")
        return None
    if like is None:
        raise EmbinitError(f"the method {method} needs a mapping from each new token to {_TARGETS[needs]}")
    like = {normalized(tokenizer, word): text for word, text in like.items()}
    missing = [word for word in extended.words if word not in like]
    if missing:
        raise EmbinitError(
            f"the mapping has no entry for the new token {missing[0]!r}; give it {_TARGETS[needs]}, or leave the token out"
        )
    ids = piece_ids(tokenizer, [like[word] for word in extended.words])
    for word, named in zip(extended.words, ids, strict=True):
        if not named or (needs == "like" and len(named) > 1):
            raise EmbinitError(f"{like[word]!r}, which stands for {word!r}, is not {_TARGETS[needs]} of the model")
    return ids


_TARGETS = {"like": "an existing token", "description": "a phrase"}
