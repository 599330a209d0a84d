"""Distillation: from a model, its old and new tokenizer to fitted input rows, with what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.extending.distillation.contexts import gather
from embinit.extending.distillation.fit import Progress, fit
from embinit.extending.distillation.objective import Match
from embinit.extending.tokenizers import ExtendedTokenizer
from embinit.format import plural
from embinit.seeds import stream
from embinit.types import Matrix


@dataclass(frozen=True)
class Distillation:
    """Settings of `distill`.

    Parameters
    ----------
    match
        The output that must stay the same: `states` (the last hidden states), or the pooled vector `mean`, `cls` or `last`.
        None means `states`. For a sentence encoder, give the pooling that its users apply, usually `mean`.
    contexts
        The number of sentences for each new token.
    epochs
        The passes over the sentences.
    progress
        Called with the progress.
    checkpoint
        The file from which a stopped fit continues.
    """

    match: Match | None = None
    contexts: int = 8
    epochs: int = 2
    progress: Progress | None = None
    checkpoint: Path | None = None

    def __post_init__(self) -> None:
        for name in ("contexts", "epochs"):
            if getattr(self, name) < 1:
                raise EmbinitError(f"{name} is {getattr(self, name)}; give 1 or a larger number")


@dataclass(frozen=True)
class Distilled:
    """Fitted rows, and facts for the report."""

    rows: Matrix
    details: Mapping[str, Any]


#: With more new tokens than this has room for, each gets fewer sentences.
_SENTENCES = 20_000
_NAMES: dict[Match, str] = {
    "states": "the last hidden states",
    "mean": "the mean of the last hidden states",
    "cls": "the first token's state",
    "last": "the last token's state",
}


def distill(
    model: Any,
    old: Any,
    extended: ExtendedTokenizer,
    lines: Sequence[str] | None,
    settings: Distillation,
    *,
    old_rows: Any,
    seed: int,
) -> Distilled:
    """Return input rows of new tokens, fitted so that the frozen model reads them as it read their old pieces.

    Parameters
    ----------
    model
        The model with rows for the new tokens. It is not changed.
    old
        The old tokenizer.
    extended
        The new tokenizer.
    lines
        Lines of text in which the new tokens occur. None: sentences are made of words of the old vocabulary.
    settings
        The settings.
    old_rows
        The embedding's weight of the original model.
    seed
        The seed of contexts and of their order.

    Returns
    -------
    Distilled
        The rows in the order of the new tokens.
    """
    words = dict(zip(extended.ids, extended.words, strict=True))
    per_token = max(1, min(settings.contexts, _SENTENCES // len(words)))
    contexts = gather(
        old, extended.tokenizer, words, text=lines, per_token=per_token, rng=stream(seed, "contexts of new tokens"),
        longest=_longest(model),
    )  # fmt: skip
    match = settings.match or "states"
    fitted = fit(
        model, extended.ids, contexts, match=match, old_rows=old_rows, same_ids=extended.kept is None,
        epochs=settings.epochs, seed=seed, progress=settings.progress, checkpoint=settings.checkpoint,
    )  # fmt: skip
    details: dict[str, Any] = {
        "fitted on": f"{plural(contexts.from_text, 'sentence')} of the text (with {contexts.in_text:,} of {len(words):,} "
        f"new tokens) and {contexts.made:,} made of the vocabulary",
        "matched": _NAMES[match],
        "difference": " → ".join(f"{loss:.3g}" for loss in fitted.losses) + " (mean of each pass)",
    }
    if fitted.damaged:
        details["checkpoint"] = "of a stopped run, damaged: the fit began again"
    return Distilled(fitted.rows, details)


def _longest(model: Any) -> int:
    """Return the largest number of tokens of a context: small, and within the model's positions."""
    return min(96, int(getattr(model.config, "max_position_embeddings", None) or 96) - 2)
