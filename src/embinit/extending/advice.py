"""The method that `advised` chooses: the best one for the given text and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embinit.extending.distillation.contexts import can_make

#: A model with more parameters takes hours to fit on a CPU.
_LARGE = 500_000_000


def advise(
    model: Any, tokenizer: Any, lines: Sequence[str] | None, vectors: Any, like: Mapping[str, str] | None
) -> tuple[str, str]:
    """Return the name of a method, and the reason.

    Parameters
    ----------
    model
        The model.
    tokenizer
        Its tokenizer.
    lines
        The text that was given.
    vectors
        The auxiliary vectors that were given.
    like
        The mapping that was given.
    """
    if like is not None:
        return "description", "description, because a mapping was given"
    if vectors is not None and lines is None:
        return "focus", "focus, because vectors were given"
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters > _LARGE and model.device.type == "cpu":
        return "pieces", (
            f"pieces, because distill, which is better, takes hours on a CPU with {parameters / 1e6:,.0f} million parameters"
        )
    if lines is not None:
        return "distill", "distill, on the text" + ("" if vectors is None else "; the vectors are not used")
    if can_make(tokenizer):
        return "distill", "distill, on sentences made of the vocabulary"
    return "pieces", "pieces, because the vocabulary has too few words to make sentences; with text, distill is better"
