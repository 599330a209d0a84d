"""The settings of training as one frozen value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from embinit.errors import EmbinitError, check_choices

#: Settings that may differ between members and change the update of their weights.
OF_UPDATES = (
    "rate", "warmup", "schedule", "final_rate", "weight_decay", "decay_embeddings", "clip", "frozen_epochs",
)  # fmt: skip
#: Settings that members trained side by side need not share, because they change no shape.
PER_MEMBER = (*OF_UPDATES, "embedding_rate", "found_rate", "frozen_rows", "smoothing", "patience")


@dataclass(frozen=True)
class Training:
    """The paper's settings by default (Table 5, A.2), and the options that research needs."""

    #: passes over the training rows
    epochs: int = 20
    #: training rows of a step
    batch: int = 64
    #: learning rate; by default 2e-4 for translation, 1e-4 for classification
    rate: float = 2e-4
    #: Adam's decay rates of the two moments
    betas: tuple[float, float] = (0.9, 0.98)
    #: Adam's epsilon
    epsilon: float = 1e-9
    #: steps over which the rate rises from zero
    warmup: int = 0
    #: the learning rate after the warm-up
    schedule: Literal["constant", "linear", "inverse_sqrt", "cosine"] = "constant"
    #: the share of the rate that a cosine schedule ends at
    final_rate: float = 0.0
    #: AdamW's weight decay: a weight shrinks by this share of its rate in each step; norms and biases never do
    weight_decay: float = 0.0
    #: embeddings, learned positions included, decay like the other weights
    decay_embeddings: bool = True
    #: largest norm of a member's gradient; 0: none
    clip: float = 0.0
    #: label smoothing
    smoothing: float = 0.0
    #: the embeddings' learning rate, as a multiple of the other weights' rate
    embedding_rate: float = 1.0
    #: the learning rate of rows from the source, as a multiple of the other rows' rate; 0 freezes them. Random rows have no
    #: source, so this does not change them
    found_rate: float = 1.0
    #: number of epochs at the start in which embeddings are not trained; -1: all epochs
    frozen_epochs: int = 0
    #: the rows of an embedding that are never trained: the rows from the source, or none
    frozen_rows: Literal["none", "found"] = "none"
    #: order of each epoch: shuffled, or sentences of similar length together
    order: Literal["shuffled", "bucketed"] = "shuffled"
    #: number of epochs without improvement after which a run stops; 0: never
    patience: int = 0
    #: number of epochs between measurements of the validation split's BLEU; 0: never
    bleu_every: int = 1
    #: precision of matrix products; bfloat16 keeps float32 weights
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    #: with bfloat16, the sum of embedding and position, its first projection and norm stay in float32
    protected: bool = True
    #: a language model is scored on blocks that begin this number of tokens after each other; 0: the length of a block
    stride: int = 0
    #: the share of the tokens that a masked language model has to predict
    mask_rate: float = 0.15

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise EmbinitError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if not self.rate > 0:
            raise EmbinitError(f"rate is {self.rate}; a positive number is needed")
        counts = ("warmup", "patience", "bleu_every", "stride")
        for name in (*counts, "clip", "weight_decay", "embedding_rate", "found_rate"):
            if not 0 <= getattr(self, name) < math.inf:
                raise EmbinitError(f"{name} is {getattr(self, name)}; a finite number of 0 or more is needed")
        if self.frozen_epochs < -1:
            raise EmbinitError(f"frozen_epochs is {self.frozen_epochs}; give -1 (always) or a number of epochs")
        if not 0 <= self.smoothing < 1:
            raise EmbinitError(f"smoothing is {self.smoothing}; a value from 0 to below 1 is needed")
        if not 0 <= self.final_rate <= 1:
            raise EmbinitError(f"final_rate is {self.final_rate}; a share of the rate from 0 to 1 is needed")
        if not 0 < self.mask_rate < 1:
            raise EmbinitError(f"mask_rate is {self.mask_rate}; a share of the tokens above 0 and below 1 is needed")

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, out of `steps`."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        if self.schedule == "linear":
            return self.rate * (steps - step) / max(1, steps - self.warmup)
        if self.schedule == "inverse_sqrt":
            return self.rate * math.sqrt(max(1, self.warmup) / (step + 1))
        if self.schedule == "cosine":
            done = (step - self.warmup) / max(1, steps - self.warmup)
            return self.rate * (self.final_rate + (1 - self.final_rate) * (1 + math.cos(math.pi * min(1.0, done))) / 2)
        return self.rate

    def frozen_in(self, epoch: int) -> bool:
        """Return whether embeddings are not trained in an epoch, from 0 on."""
        return self.frozen_epochs < 0 or epoch < self.frozen_epochs

    def values_of(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the values of these settings."""
        return {name: getattr(self, name) for name in names}


def settings_of_each(training: Training | Sequence[Training], members: int) -> tuple[Training, ...]:
    """Return the settings of each member.

    Raises
    ------
    ValueError
        If members differ in a setting that is not one of PER_MEMBER.
    """
    each = (training,) * members if isinstance(training, Training) else tuple(training)
    shared = [name for name in asdict(each[0]) if name not in PER_MEMBER]
    if len(each) != members or any(own.values_of(shared) != each[0].values_of(shared) for own in each):
        raise ValueError(f"{members} members need as many settings, which may differ only in {', '.join(PER_MEMBER)}")
    return each
