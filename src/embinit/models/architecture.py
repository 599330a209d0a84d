"""What a model is made of, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embinit.errors import EmbinitError, check_choices

Positions = Literal["sinusoidal", "learned", "gained", "shuffled", "rotary", "alibi", "relative", "none"]
#: Positions that are added to the embedding; the others go through attention.
ADDED = ("sinusoidal", "learned", "gained", "shuffled")
#: Those of them that are a fixed table of sinusoids.
TABLED = ("sinusoidal", "gained", "shuffled")


@dataclass(frozen=True)
class Architecture:
    """A vanilla transformer as in PyTorch's tutorial (PAPER.md 1), and the options that research needs."""

    task: Literal["translation", "classification"]
    dim: int
    #: rows of the embeddings: source and target of a translation, text of a classification
    vocabularies: tuple[int, ...]
    heads: int = 8
    layers: int = 3
    feedforward: int = 512
    dropout: float = 0.1
    norm: Literal["post", "pre"] = "post"
    activation: Literal["relu", "gelu"] = "relu"
    #: the output layer is the target embedding
    tied: bool = False
    #: rows are multiplied by √D
    scaled: bool = True
    embedding_norm: bool = False
    positions: Positions = "sinusoidal"
    base: float = 10_000.0
    #: the last dimensions, an even number, that sinusoids are added to, and to no other; 0: to all
    position_dims: int = 0
    #: sinusoids are added so many times as large
    position_gain: float = 1.0
    #: longest sentence, `<bos>` and `<eos>` included
    length: int = 256
    pooling: Literal["mean", "first", "max"] = "mean"
    classes: int = 2

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("dim", "heads", "layers", "feedforward", "length", "classes"):
            if getattr(self, name) < 1:
                raise EmbinitError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if self.tied and self.task == "classification":
            raise EmbinitError("a classification has no target embedding to tie its output to")
        if self.dim % self.heads:
            raise EmbinitError(f"{self.heads} heads do not divide {self.dim} dimensions")
        if self.positions == "rotary" and self.dim // self.heads % 2:
            raise EmbinitError(f"rotary positions need an even head dimension, not {self.dim // self.heads}")
        if self.position_dims:
            self._check_position_dims()
        if self.position_gain != 1:
            self._check_tabled("position_gain")
            if not 0 < self.position_gain < float("inf"):
                raise EmbinitError(f"position_gain is {self.position_gain}; a number above 0 is needed")
        expected = 2 if self.task == "translation" else 1
        if len(self.vocabularies) != expected:
            raise EmbinitError(f"a {self.task} has {expected} vocabularies, not {len(self.vocabularies)}")
        if not 0 <= self.dropout < 1:
            raise EmbinitError(f"dropout {self.dropout}; from 0 to below 1")

    def _check_tabled(self, name: str) -> None:
        if self.positions not in TABLED:
            kinds = f"{', '.join(TABLED[:-1])} and {TABLED[-1]}"
            raise EmbinitError(f"{name} is for {kinds} positions, not for {self.positions}")

    def _check_position_dims(self) -> None:
        self._check_tabled("position_dims")
        if not 2 <= self.position_dims <= self.dim or self.position_dims % 2:
            raise EmbinitError(
                f"position_dims is {self.position_dims}; 0 or an even number from 2 to {self.dim} is needed"
            )

    @property
    def outputs(self) -> int:
        """Return how many numbers the model gives for a token or a sentence."""
        return self.vocabularies[1] if self.task == "translation" else self.classes

    @property
    def adds_positions(self) -> bool:
        """Return whether positions are added to the embedding."""
        return self.positions in ADDED
