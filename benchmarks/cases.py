"""Cases of the training benchmarks: one for each row of a table, and the settings that all rows share.

Peers import this module in environments of their own, so it needs only numpy.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

#: The paper's model and optimizer, the same for all programs.
LAYERS, FEEDFORWARD, DROPOUT = 3, 512, 0.1
RATE, BETAS, EPSILON = 2e-4, (0.9, 0.98), 1e-9
UNKNOWN, PADDING, BEGIN, END = range(4)
#: Environment variable with the folder through which two concurrent processes wait for each other.
BARRIER = "EMBINIT_BENCHMARK_BARRIER"
#: The language model is GPT-2 without dropout; this is the width of its feed-forward layer over that of the model.
TEXT_WIDTH = 4
TEXT_RATE, TEXT_BETAS, TEXT_EPSILON, TEXT_DECAY, TEXT_CLIP = 6e-4, (0.9, 0.95), 1e-8, 0.1, 1.0


@dataclass(frozen=True)
class Case:
    """One row of a table: the program, the task, the settings and the device."""

    #: the program that is measured, a key of `row.MEASURES`
    what: str
    #: the folder of the prepared task
    prepared: str
    #: rows of each embedding: source and target, or the only one of a classification
    vocabularies: tuple[int, ...]
    device: str = "cpu"
    precision: str = "float32"
    members: int = 1
    dim: int = 300
    heads: int = 10
    batch: int = 64
    steps: int = 40
    threads: int = 2
    #: number of test sentences that are decoded
    sentences: int = 1000
    layers: int = LAYERS
    #: tokens in a block of running text; 0 if the task has sentences
    length: int = 0
    #: `training.protected`: in bfloat16, embinit computes the first layer in float32
    protected: bool = True

    @property
    def warmup_steps(self) -> int:
        """Return the number of untimed steps before the timed ones."""
        return max(3, self.steps // 5)

    @property
    def cuda(self) -> bool:
        """Return whether the case runs on a card."""
        return self.device.startswith("cuda")

    def to_json(self) -> str:
        """Return the case as JSON."""
        return json.dumps(asdict(self))


def read_case(text: str) -> Case:
    """Return the case that `Case.to_json` wrote."""
    content = json.loads(text)
    return Case(**{**content, "vocabularies": tuple(content["vocabularies"])})


@dataclass(frozen=True)
class Timing:
    """The time and memory of a case: seconds per step (of a decoding, in total) and peak MB (a million bytes each)."""

    seconds: float
    memory: float
    parameters: int
    note: str = ""


@dataclass(frozen=True)
class SplitStatistics:
    """The size of a training split. Lengths include <bos> and <eos> if the model reads them."""

    sentences: int
    #: mean length of a source sentence, which the encoder reads between <bos> and <eos>
    source_length: float
    #: mean length of a target sentence, which the decoder reads after <bos>
    target_length: float

    @property
    def pair_length(self) -> float:
        """Return the mean length of both sides of a pair: real tokens without padding."""
        return self.source_length + self.target_length


def read_sentences(prepared: str, side: str, split: str = "train") -> list[list[int]]:
    """Return the token ids of each sentence of a prepared folder, without <bos> and <eos>."""
    ids, offsets = (np.load(Path(prepared, f"{split}.{side}.{part}.npy")) for part in ("ids", "offsets"))
    return [row.tolist() for row in np.split(ids, offsets[1:-1])]


def read_text(prepared: str, split: str = "train") -> np.ndarray:
    """Return the token ids of a prepared running text, with an <eos> after each line."""
    ids, offsets = (np.load(Path(prepared, f"{split}.text.{part}.npy")) for part in ("ids", "offsets"))
    return np.insert(ids.astype(np.int64), offsets[1:], END)


def text_step_flops(case: Case) -> float:
    """Return one member's floating-point operations in a step: 6 per weight and token, and those of attention."""
    weights = case.layers * (4 + 2 * TEXT_WIDTH) * case.dim**2 + case.dim * case.vocabularies[0]
    # Causal attention needs only half of the pairs of tokens, but the usual count includes all of them.
    pairs = case.layers * 2 * case.length * case.dim
    return 6.0 * case.batch * case.length * (weights + pairs)


def read_split(prepared: str) -> SplitStatistics:
    """Return the size of the training split of a prepared translation."""
    lengths = [np.diff(np.load(Path(prepared, f"train.{side}.offsets.npy"))) for side in ("source", "target")]
    return SplitStatistics(len(lengths[0]), float(lengths[0].mean()) + 2, float(lengths[1].mean()) + 1)


def pair_flops(case: Case, split: SplitStatistics) -> float:
    """Return the floating-point operations of training on a pair of sentences: 6 per weight and real token.

    A matrix counts for the tokens that pass through it. Source tokens pass through the encoder and through the keys and
    values of the decoder's cross-attention. Target tokens pass through the rest of the decoder and the output layer.
    Attention scores, embeddings, norms, softmax, Adam and padding do not count.
    """
    square, up_down = case.dim**2, 2 * case.dim * FEEDFORWARD
    source = LAYERS * (4 * square + up_down + 2 * square)
    target = LAYERS * (4 * square + 2 * square + up_down) + case.dim * case.vocabularies[1]
    return 6 * (source * split.source_length + target * split.target_length)


def steps_per_epoch(case: Case, split: SplitStatistics) -> int:
    """Return the number of steps in an epoch."""
    return math.ceil(split.sentences / case.batch)
