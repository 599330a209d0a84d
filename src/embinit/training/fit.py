"""Check that a model is made for a task."""

from __future__ import annotations

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.prepared.folder import Prepared


def check_fit(prepared: Prepared, architecture: Architecture) -> None:
    """Raise EmbinitError if a model is not made for a task: with a wrong size, members would read each other's rows."""
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    if prepared.task != architecture.task or sizes != architecture.vocabularies:
        raise EmbinitError(
            f"{prepared.path} is a {prepared.task} with vocabularies of {sizes}, the model is made for a "
            f"{architecture.task} with {architecture.vocabularies}"
        )
    labels = len(prepared.manifest["labels"])
    if prepared.task == "classification" and labels != architecture.classes:
        raise EmbinitError(f"{prepared.path} has {labels} labels, the model {architecture.classes} classes")
    check_length(prepared, architecture.length)


def check_length(prepared: Prepared, length: int) -> None:
    """Raise EmbinitError if a sentence of the task, with `<bos>` and `<eos>`, is longer than the model's `length`."""
    longest = max(side["longest"] for split in prepared.manifest["splits"].values() for side in split["sides"].values())
    if longest + 2 > length:
        raise EmbinitError(
            f"{prepared.path.name} has a sentence of {longest} tokens, and model.length is {length}; "
            f"set it to {longest + 2}, or cut sentences by the task's longest"
        )
