"""Check that a model fits a task."""

from __future__ import annotations

from embinit.errors import EmbinitError
from embinit.models.architecture import Architecture
from embinit.prepared.folder import MASK, Prepared
from embinit.training.options import Training
from embinit.types import TEXT_TASKS


def check_fit(prepared: Prepared, architecture: Architecture, training: Training) -> None:
    """Raise EmbinitError if a model does not fit a task: with a wrong size, members would read each other's rows."""
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    if prepared.task != architecture.task or sizes != architecture.vocabularies:
        raise EmbinitError(
            f"{prepared.path} is a {prepared.task} with vocabularies of {sizes}, the model is made for a "
            f"{architecture.task} with {architecture.vocabularies}"
        )
    labels = len(prepared.manifest["labels"])
    if prepared.task == "classification" and labels != architecture.classes:
        raise EmbinitError(f"{prepared.path} has {labels} labels, the model {architecture.classes} classes")
    check_trainable(prepared)
    if architecture.is_language_model:
        _check_text(prepared, architecture.task, training)
    check_length(prepared, architecture.length)


def check_trainable(prepared: Prepared) -> None:
    """Raise EmbinitError if a task has no validation rows, or a classification has a single label."""
    if "valid" not in prepared.splits:
        raise EmbinitError(
            f"{prepared.path.name} has no validation rows, which training needs to choose an epoch; give a file of them "
            "beside the training rows, or more training rows to take them from"
        )
    if prepared.task == "classification" and len(prepared.manifest["labels"]) == 1:
        raise EmbinitError(f"{prepared.path.name}: {one_label(prepared.manifest['labels'][0])}")


def one_label(label: str) -> str:
    """Return the message about training rows with a single label."""
    return f"all training rows have the label {label!r}; a classification needs two labels or more"


def _check_text(prepared: Prepared, task: str, training: Training) -> None:
    if training.order != "shuffled":
        raise EmbinitError(
            f"training.order is {training.order!r}, but blocks of running text have one length; leave it out"
        )
    tokens = prepared.vocabularies["text"].tokens
    if task == "masked_language_model" and tokens[4:5] != (MASK,):
        raise EmbinitError(
            f"{prepared.path} has no {MASK} token; prepare the text again with embinit prepare --task masked_language_model"
        )


def check_length(prepared: Prepared, length: int) -> None:
    """Raise EmbinitError if the model's `length` does not fit.

    A sentence of the task, with `<bos>` and `<eos>`, may not be longer, and a running text may not be shorter.
    """
    if prepared.task in TEXT_TASKS:
        train = prepared.manifest["splits"]["train"]
        tokens = train["sides"]["text"]["tokens"] + train["rows"]
        if tokens < length:
            raise EmbinitError(
                f"{prepared.path.name}: a block has model.length = {length:,} tokens, and the training text has {tokens:,}; "
                f"set model.length to {tokens:,} or less, or give more text"
            )
        return
    longest = max(side["longest"] for split in prepared.manifest["splits"].values() for side in split["sides"].values())
    if longest + 2 > length:
        raise EmbinitError(
            f"{prepared.path.name} has a sentence of {longest} tokens, and model.length is {length}; "
            f"set it to {longest + 2}, or cut sentences by the task's longest"
        )
