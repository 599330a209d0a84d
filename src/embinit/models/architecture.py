"""The settings of a model as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from embinit.errors import EmbinitError, check_choices
from embinit.types import TEXT_TASKS, TaskKind

Positions = Literal["sinusoidal", "learned", "gained", "shuffled", "rotary", "alibi", "relative", "none"]
#: Positions that are added to the embedding; the others go through attention.
ADDED = ("sinusoidal", "learned", "gained", "shuffled")
#: Added positions that are a fixed table of sinusoids.
TABLED = ("sinusoidal", "gained", "shuffled")
#: Settings that may differ between members, because they change no shape.
PER_MEMBER = ("dropout",)


def default_heads(dim: int) -> int:
    """Return the default number of heads: 8, or 10 if 8 does not divide the dimension, or its largest divisor below 8.

    >>> default_heads(512), default_heads(300), default_heads(100), default_heads(50), default_heads(63)
    (8, 10, 10, 10, 7)
    """
    for heads in (8, 10, 7, 6, 5, 4, 3, 2):
        if dim % heads == 0:
            return heads
    return 1


def fitting_heads(dim: int, even: bool = False, most: int = 32) -> list[int]:
    """Return the numbers of heads, up to `most`, that divide a dimension. With `even`, dim / heads must be even.

    >>> fitting_heads(300, even=True)
    [1, 2, 3, 5, 6, 10, 15, 25, 30]
    """
    return [heads for heads in range(1, min(dim, most) + 1) if dim % heads == 0 and not (even and dim // heads % 2)]


@dataclass(frozen=True)
class Architecture:
    """A vanilla transformer as in PyTorch's tutorial (PAPER.md 1), and the options that research needs."""

    task: TaskKind
    #: dimension of the model; by default the source's
    dim: int
    #: rows of the embeddings: source and target of a translation, text of the other tasks
    vocabularies: tuple[int, ...]
    #: attention heads; by default 8, or 10 if 8 does not divide the dimension, or its largest divisor below 8
    heads: int = 8
    #: layers of each stack
    layers: int = 3
    #: width of the feed-forward blocks
    feedforward: int = 512
    #: share of the activations that dropout sets to zero in training
    dropout: float = 0.1
    #: whether norms come after the residual sum or before each block
    norm: Literal["post", "pre"] = "post"
    #: activation of the feed-forward blocks; `gelu_tanh` is GPT-2's approximation, `swiglu` has a third matrix, the gate
    #: (Llama)
    activation: Literal["relu", "gelu", "gelu_tanh", "swiglu"] = "relu"
    #: the output layer is the target embedding, or a language model's only one
    tied: bool = False
    #: rows are multiplied by √D
    scaled: bool = True
    #: the sum of embedding and position is normalized
    embedding_norm: bool = False
    #: position encoding
    positions: Positions = "sinusoidal"
    #: base of the wavelengths of sinusoidal and rotary positions
    base: float = 10_000.0
    #: even number of dimensions, the last ones, that sinusoids are added to; 0: all
    position_dims: int = 0
    #: factor of the sinusoids
    position_gain: float = 1.0
    #: longest sentence in tokens, `<bos>` and `<eos>` included; of a language model the tokens of each block
    length: int = 256
    #: how a classification makes one vector of a text
    pooling: Literal["mean", "first", "max"] = "mean"
    classes: int = 2
    #: `rms` divides by the root mean square, and has no bias (Llama)
    norm_kind: Literal["layer", "rms"] = "layer"
    #: added to the variance before its root is taken
    norm_epsilon: float = 1e-5
    #: the stack's output is normalized; BERT's is not
    final_norm: bool = True
    #: linear layers have biases
    biases: bool = True
    #: the output layer has a bias
    output_bias: bool = True
    #: the output layer reads a linear layer, the activation and a norm (BERT's head)
    output_block: bool = False
    #: dropout also acts on the feed-forward block's inner activations; in transformers' models it does not
    hidden_dropout: bool = True
    #: the first values of the weights beside the embeddings: Xavier's, N(0, 0.02), or N(0, 0.02) with the projections into
    #: the residual sum divided by the root of their number (GPT-2)
    initial: Literal["xavier", "normal", "residual"] = "xavier"

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("dim", "heads", "layers", "feedforward", "length", "classes"):
            if getattr(self, name) < 1:
                raise EmbinitError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if self.tied and self.task == "classification":
            raise EmbinitError("a classification has no target embedding to tie its output to")
        if self.dim % self.heads:
            fitting = ", ".join(map(str, fitting_heads(self.dim)))
            raise EmbinitError(f"{self.heads} heads do not divide {self.dim} dimensions; set heads to one of {fitting}")
        if self.positions == "rotary" and self.dim // self.heads % 2:
            fitting = ", ".join(map(str, fitting_heads(self.dim, even=True)))
            advice = f"set heads to one of {fitting}" if fitting else f"{self.dim} dimensions have none"
            message = f"rotary positions need an even head dimension, not {self.dim // self.heads}; {advice}"
            raise EmbinitError(message)
        if self.norm_epsilon <= 0:
            raise EmbinitError(f"norm_epsilon is {self.norm_epsilon}; a number above 0 is needed")
        if self.output_block and (not self.is_language_model or self.activation == "swiglu"):
            raise EmbinitError("output_block is for language models whose activation is not swiglu")
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
        """Return the number of outputs for a token or a sentence."""
        return self.classes if self.task == "classification" else self.vocabularies[-1]

    @property
    def is_language_model(self) -> bool:
        """Return whether the model predicts tokens of the text that it reads."""
        return self.task in TEXT_TASKS

    @property
    def sides(self) -> tuple[str, ...]:
        """Return the names of the embeddings."""
        return ("source", "target") if self.task == "translation" else ("text",)

    @property
    def stacks(self) -> tuple[str, ...]:
        """Return the names of the stacks of layers: a causal language model has a decoder that reads no source."""
        if self.task == "translation":
            return "encoder", "decoder"
        return ("decoder",) if self.task == "language_model" else ("encoder",)

    @property
    def adds_positions(self) -> bool:
        """Return whether positions are added to the embedding."""
        return self.positions in ADDED
