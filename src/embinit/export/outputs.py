"""Output layers of models: the embedding that shares their weight, and whether they can get the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from embinit.errors import EmbinitError
from embinit.export.resize import is_tied
from embinit.hub import is_base_model, is_embedding, is_linear

Output = Literal["tied", "tied to the decoder", "set", "kept", "none", "outside", "this layer"]

OUTPUTS: Mapping[Output, str] = {
    "tied": "tied to the embedding, so it has the new rows too",
    "tied to the decoder": "tied to the decoder's embedding, which is kept",
    "set": "has weights of its own, which got the same rows",
    "kept": "has weights of its own, which are kept",
    "none": "none",
    "outside": "not in this part of the model; if it is tied to this embedding, it has the new rows too",
    "this layer": "the layer itself got the rows",
}


def output_layer(model: Any) -> Any:
    """Return the output layer of a model, None if it has none."""
    if is_embedding(model) or is_linear(model):
        return None
    return getattr(model, "get_output_embeddings", lambda: None)()


def output_of(model: Any, layer: Any) -> Output:
    """Return how the output layer of a model is related to an embedding whose rows are new."""
    if is_linear(model):
        return "this layer"
    head = output_layer(model)
    if head is None:
        return "outside" if is_base_model(model) else "none"
    if is_tied(model):
        return "tied"
    decoder = decoder_embedding(model, layer)
    if decoder is not None and head.weight.data_ptr() == decoder.weight.data_ptr():
        return "tied to the decoder"
    return "kept"


def decoder_embedding(model: Any, layer: Any) -> Any:
    """Return the embedding of the decoder; None if the model has no decoder, or one that shares the model's embedding."""
    decoder = getattr(model, "get_decoder", lambda: None)()
    own = getattr(decoder, "get_input_embeddings", lambda: None)()
    return None if own is None or own.weight is layer.weight else own


def check_output_rows(model: Any, layer: Any) -> None:
    """Raise EmbinitError if the output layer of a model cannot get the rows of its embedding."""
    name, head = type(model).__name__, output_layer(model)
    if head is None:
        raise EmbinitError(f"output_rows: this {name} has no output layer; leave output_rows out")
    if decoder_embedding(model, layer) is not None:
        raise EmbinitError(
            f"output_rows: the output layer of this {name} belongs to the decoder, which has an embedding of its own; leave "
            f"output_rows out, and {_decoder_advice(model, layer)}"
        )
    if head.weight.shape != layer.weight.shape:
        shapes = f"{tuple(head.weight.shape)}, but the embedding has {tuple(layer.weight.shape)}"
        raise EmbinitError(f"output_rows: the output layer has the shape {shapes}; leave output_rows out")


def decoder_warnings(model: Any, layer: Any) -> list[str]:
    """Return a warning if the decoder of a model has an embedding of its own, which keeps its rows."""
    if decoder_embedding(model, layer) is None:
        return []
    return [f"the decoder has an embedding of its own, which keeps its rows; {_decoder_advice(model, layer)}"]


def _decoder_advice(model: Any, layer: Any) -> str:
    """Return the calls that set the rows of the decoder's side."""
    calls = "set its rows with embinit.initialize(model.get_decoder(), target_tokenizer, source)"
    if output_of(model, layer) != "kept":
        return calls
    return (
        f"{calls} and those of the output layer with embinit.initialize(model.get_output_embeddings(), target_tokenizer, "
        "source, host=model.get_decoder())"
    )
