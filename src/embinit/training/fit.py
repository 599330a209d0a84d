"""Whether a model is made for a task."""

from __future__ import annotations

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.prepared.folder import Prepared


def check_fit(prepared: Prepared, architecture: Architecture) -> None:
    """Raise where a model is not made for a task: a wrong size would read another member's rows."""
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    if prepared.task != architecture.task or sizes != architecture.vocabularies:
        raise EmbinitError(
            f"{prepared.path} is a {prepared.task} with vocabularies of {sizes}, the model is made for a "
            f"{architecture.task} with {architecture.vocabularies}"
        )
    labels = len(prepared.manifest["labels"])
    if prepared.task == "classification" and labels != architecture.classes:
        raise EmbinitError(f"{prepared.path} has {labels} labels, the model {architecture.classes} classes")
    longest = max(side["longest"] for split in prepared.manifest["splits"].values() for side in split["sides"].values())
    if longest + 2 > architecture.length:
        raise EmbinitError(
            f"{prepared.path} has a sentence of {longest} tokens, with <bos> and <eos> {longest + 2}; "
            f"the model's length is {architecture.length}"
        )
