"""How members are trained, as one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from embinit.errors import EmbinitError, check_choices

#: Settings that members trained side by side need not share: each member has its own value.
PER_MEMBER = ("embedding_rate", "found_rate")


@dataclass(frozen=True)
class Training:
    """The paper's settings by default (Table 5, A.2), and the options that research needs."""

    epochs: int = 20
    batch: int = 64
    #: 2e-4 for translation, 1e-4 for classification
    rate: float = 2e-4
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-9
    #: steps over which the rate rises from zero
    warmup: int = 0
    schedule: Literal["constant", "linear", "inverse_sqrt", "cosine"] = "constant"
    #: the share of the rate that a cosine schedule ends at
    final_rate: float = 0.0
    #: AdamW's weight decay: a weight shrinks by this share of its rate in each step; norms and biases never do
    weight_decay: float = 0.0
    #: embeddings, learned positions included, decay like the other weights
    decay_embeddings: bool = True
    #: largest norm of a member's gradient; 0: none
    clip: float = 0.0
    smoothing: float = 0.0
    #: rate of the embeddings over that of the rest
    embedding_rate: float = 1.0
    #: rate of the rows that the source had over that of the other rows; 0 freezes them. Random rows have no source, so
    #: this does not change them
    found_rate: float = 1.0
    #: embeddings stay as they are for so many epochs; -1: always
    frozen_epochs: int = 0
    #: which rows of an embedding are never changed: those that the source had, or none
    frozen_rows: Literal["none", "found"] = "none"
    #: each epoch's order: shuffled throughout, or sentences of like length together
    order: Literal["shuffled", "bucketed"] = "shuffled"
    #: a member stops after so many epochs that are no better than its best; 0: never
    patience: int = 0
    #: BLEU of the validation split is measured after every so many epochs; 0: never
    bleu_every: int = 1
    #: of matrix products; bfloat16 keeps float32 weights
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    #: bfloat16 leaves the sum of embedding and position, its first projection and norm in float32
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
        for name in ("warmup", "clip", "patience", "bleu_every", "weight_decay", "stride", *PER_MEMBER):
            if not 0 <= getattr(self, name) < math.inf:
                raise EmbinitError(f"{name} is {getattr(self, name)}; a finite number of 0 or more is needed")
        if self.frozen_epochs < -1:
            raise EmbinitError(f"frozen_epochs is {self.frozen_epochs}; -1 (always) or a number of epochs")
        if not 0 <= self.smoothing < 1:
            raise EmbinitError(f"smoothing is {self.smoothing}; from 0 to below 1")
        if not 0 <= self.final_rate <= 1:
            raise EmbinitError(f"final_rate is {self.final_rate}; a share of the rate from 0 to 1 is needed")
        if not 0 < self.mask_rate < 1:
            raise EmbinitError(f"mask_rate is {self.mask_rate}; a share of the tokens above 0 and below 1 is needed")

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step (from 0 on) out of so many."""
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
