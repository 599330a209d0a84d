"""Members in lockstep beside PyTorch's translation tutorial on one card: `python3 -m benchmarks.gpu PREPARED`.

PREPARED is a folder that `embinit prepare multi30k` wrote. A step is everything that training does for it: choosing and
moving the batch, forward, backward, Adam. Validation and checkpoints are not in it. Prints one JSON line a row.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from embinit.models.architecture import Architecture
from embinit.models.model import Member, Stack
from embinit.prepared.reading import Prepared, open_prepared
from embinit.training.batches import PADDING, Batches
from embinit.training.options import Training
from embinit.training.step import Trainer


class Tutorial(nn.Module):
    """The tutorial's model: nn.Transformer over padded batches."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.dim = a.dim
        self.source, self.target = (nn.Embedding(rows, a.dim) for rows in a.vocabularies)
        self.transformer = nn.Transformer(
            a.dim, a.heads, a.layers, a.layers, a.feedforward, a.dropout, batch_first=True
        )
        self.generator = nn.Linear(a.dim, a.outputs)
        self.dropout = nn.Dropout(a.dropout)
        rate = torch.exp(-torch.arange(0, a.dim, 2) * math.log(10_000) / a.dim)
        angle = torch.arange(5_000)[:, None] * rate
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(table(ids) * math.sqrt(self.dim) + self.positions[: ids.shape[1]])

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        causal = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool, device=y.device).triu(1)
        absent = {"src_key_padding_mask": x == PADDING, "memory_key_padding_mask": x == PADDING}
        out = self.transformer(
            self.embed(self.source, x), self.embed(self.target, y), tgt_mask=causal,
            tgt_key_padding_mask=y == PADDING, **absent,
        )  # fmt: skip
        return self.generator(out)


def timed(step: Callable[[int], object], steps: int, device: str) -> float:
    """Return seconds a step, after a fifth as many to warm up."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    for number in range(max(3, steps // 5)):
        step(number)
    wait()
    start = time.perf_counter()
    for number in range(steps):
        step(number)
    wait()
    return (time.perf_counter() - start) / steps


def ours(
    prepared: Prepared, a: Architecture, members: int, batch: int, steps: int, device: str, precision: str
) -> float:
    training = Training(batch=batch, precision=precision)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    matrices = tuple((0.02 * rng.standard_normal((rows, a.dim))).astype(np.float32) for rows in a.vocabularies)
    # As in an experiment: four initializations of each seed.
    stack = Stack(a, [Member(i // 4, matrices) for i in range(members)], device)
    trainer = Trainer(stack, training, 1000)
    batches = Batches(prepared, "train", batch, device)
    stream = batches.shuffled([i // 4 for i in range(members)], 0)
    return timed(lambda number: trainer.step(next(stream), number, 0), steps, device)


def tutorial(prepared: Prepared, a: Architecture, batch: int, steps: int, device: str) -> float:
    model = Tutorial(a).to(device)
    adam = torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.9, 0.98), eps=1e-9)
    loss = nn.CrossEntropyLoss(ignore_index=PADDING)
    sides = [prepared.packed("train", side) for side in ("source", "target")]
    order = np.random.default_rng(0).permutation(len(sides[0]))

    def step(number: int) -> None:
        rows = order[number * batch : (number + 1) * batch]
        x, y = (
            nn.utils.rnn.pad_sequence(
                [torch.tensor([2, *side[int(i)].tolist(), 3]) for i in rows], batch_first=True, padding_value=PADDING
            ).to(device)
            for side in sides
        )
        value = loss(model(x, y[:, :-1]).flatten(0, 1), y[:, 1:].flatten())
        adam.zero_grad()
        value.backward()
        adam.step()

    return timed(step, steps, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--members", type=int, nargs="+", default=[1, 4, 16, 32])
    for name, default in (("dim", 300), ("heads", 10), ("batch", 64), ("steps", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="tf32")
    args = parser.parse_args()
    prepared = open_prepared(args.prepared)
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    a = Architecture("translation", args.dim, sizes, heads=args.heads)
    sentences = len(prepared.packed("train", "source"))

    def report(name: str, members: int, seconds: float) -> None:
        epoch = seconds * math.ceil(sentences / args.batch) / members
        row = {
            "what": name, "members": members, "device": args.device, "precision": args.precision, "dim": args.dim,
            "batch": args.batch, "ms_per_step": round(1e3 * seconds, 2), "s_per_model_epoch": round(epoch, 3),
            "sentences_per_s_per_model": round(args.batch * members / seconds, 1),
        }  # fmt: skip
        if args.device.startswith("cuda"):
            row["peak_gb"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
            torch.cuda.reset_peak_memory_stats()
        print(json.dumps(row), flush=True)

    report("pytorch tutorial", 1, tutorial(prepared, a, args.batch, args.steps, args.device))
    for members in args.members:
        seconds = ours(prepared, a, members, args.batch, args.steps, args.device, args.precision)
        report("embinit", members, seconds)


if __name__ == "__main__":
    main()
