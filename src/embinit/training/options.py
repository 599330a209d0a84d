"""How members are trained, as one frozen value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from embinit.errors import EmbinitError, check_choices


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
    schedule: Literal["constant", "linear", "inverse_sqrt"] = "constant"
    #: largest norm of a member's gradient; 0: none
    clip: float = 0.0
    smoothing: float = 0.0
    #: rate of the embeddings over that of the rest
    embedding_rate: float = 1.0
    #: embeddings stay as they are for so many epochs; -1: always
    frozen_epochs: int = 0
    precision: Literal["float32", "tf32"] = "float32"

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise EmbinitError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if not self.rate > 0:
            raise EmbinitError(f"rate is {self.rate}; a positive number is needed")
        for name in ("warmup", "clip"):
            if getattr(self, name) < 0:
                raise EmbinitError(f"{name} is {getattr(self, name)}; it cannot be negative")
        if not 0 <= self.smoothing < 1:
            raise EmbinitError(f"smoothing is {self.smoothing}; from 0 to below 1")

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step (from 0 on) out of so many."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        if self.schedule == "linear":
            return self.rate * (steps - step) / max(1, steps - self.warmup)
        if self.schedule == "inverse_sqrt":
            return self.rate * math.sqrt(max(1, self.warmup) / (step + 1))
        return self.rate
