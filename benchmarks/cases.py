"""What is measured in training: a case for each row of the table, and what the rows have in common.

Peers import this in environments of their own, so it needs numpy alone.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

#: The paper's model and optimizer, the same on all sides.
LAYERS, FEEDFORWARD, DROPOUT = 3, 512, 0.1
RATE, BETAS, EPSILON = 2e-4, (0.9, 0.98), 1e-9
UNKNOWN, PADDING, BEGIN, END = range(4)
#: The variable of the environment with the folder in which two groups that are measured at once meet.
BARRIER = "EMBINIT_BENCHMARK_BARRIER"
#: The language model is GPT-2's, without dropout; the feed-forward layer is so many times as wide as the model.
TEXT_WIDTH = 4
TEXT_RATE, TEXT_BETAS, TEXT_EPSILON, TEXT_DECAY, TEXT_CLIP = 6e-4, (0.9, 0.95), 1e-8, 0.1, 1.0


@dataclass(frozen=True)
class Case:
    """One row: who trains what, how and where."""

    what: str
    prepared: str
    #: rows of the source and of the target embedding; of a classification's one
    vocabularies: tuple[int, ...]
    device: str = "cpu"
    precision: str = "float32"
    members: int = 1
    dim: int = 300
    heads: int = 10
    batch: int = 64
    steps: int = 40
    threads: int = 2
    #: of the test split, for a decoding
    sentences: int = 1000
    layers: int = LAYERS
    #: tokens of a block of running text; 0: sentences
    length: int = 0
    #: in bfloat16, embinit computes the first layer in float32, unless `training.protected` is false
    protected: bool = True

    @property
    def warm(self) -> int:
        """Return how many steps are done before those that count."""
        return max(3, self.steps // 5)

    @property
    def cuda(self) -> bool:
        """Return whether it runs on a card."""
        return self.device.startswith("cuda")

    def written(self) -> str:
        """Return the case as JSON."""
        return json.dumps(asdict(self))


def read_case(text: str) -> Case:
    """Return the case that `written` wrote."""
    content = json.loads(text)
    return Case(**{**content, "vocabularies": tuple(content["vocabularies"])})


@dataclass(frozen=True)
class Timed:
    """What a case took: seconds a step (of a decoding, seconds in all) and peak memory in MB of a million bytes."""

    seconds: float
    memory: float
    parameters: int
    note: str = ""


@dataclass(frozen=True)
class Data:
    """The training split in numbers; places count <bos> and <eos> where a model reads them."""

    sentences: int
    #: mean places of a source sentence, which an encoder reads between <bos> and <eos>
    source: float
    #: mean places of a target sentence, which a decoder reads from <bos> on
    target: float

    @property
    def places(self) -> float:
        """Return mean places of both sides of a pair: the real tokens, without padding."""
        return self.source + self.target


def sentences(prepared: str, side: str, split: str = "train") -> list[list[int]]:
    """Return the token ids of each sentence of a prepared folder, with nothing around them."""
    ids, offsets = (np.load(Path(prepared, f"{split}.{side}.{part}.npy")) for part in ("ids", "offsets"))
    return [row.tolist() for row in np.split(ids, offsets[1:-1])]


def text(prepared: str, split: str = "train") -> np.ndarray:
    """Return the token ids of a prepared running text, an <eos> after each line."""
    ids, offsets = (np.load(Path(prepared, f"{split}.text.{part}.npy")) for part in ("ids", "offsets"))
    return np.insert(ids.astype(np.int64), offsets[1:], END)


def text_products(case: Case) -> float:
    """Return the floating-point operations of a step of one member: 6 a weight and token, and attention's over all pairs."""
    weights = case.layers * (4 + 2 * TEXT_WIDTH) * case.dim**2 + case.dim * case.vocabularies[0]
    # Causal attention needs half of the pairs; peers count all of them, and so does this.
    pairs = case.layers * 2 * case.length * case.dim
    return 6.0 * case.batch * case.length * (weights + pairs)


def data(prepared: str) -> Data:
    """Return the training split of a prepared folder in numbers."""
    lengths = [np.diff(np.load(Path(prepared, f"train.{side}.offsets.npy"))) for side in ("source", "target")]
    return Data(len(lengths[0]), float(lengths[0].mean()) + 2, float(lengths[1].mean()) + 1)


def products(case: Case, found: Data) -> float:
    """Return the floating-point operations that training on a pair of sentences needs: 6 a weight and real token.

    Each matrix is counted for the tokens that go through it: the encoder's and the decoder's keys and values of the
    source for source tokens, the rest of the decoder and the output layer for target tokens. Attention's own products,
    embeddings, norms, softmax, Adam and everything done on padding count nothing.
    """
    square, up_down = case.dim**2, 2 * case.dim * FEEDFORWARD
    source = LAYERS * (4 * square + up_down + 2 * square)
    target = LAYERS * (4 * square + 2 * square + up_down) + case.dim * case.vocabularies[1]
    return 6 * (source * found.source + target * found.target)


def steps_an_epoch(case: Case, found: Data) -> int:
    """Return how many steps an epoch has."""
    return math.ceil(found.sentences / case.batch)
