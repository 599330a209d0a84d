"""The model and the loop of PyTorch's translation tutorial: nn.Transformer over padded batches."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import cases, clock
from benchmarks.cases import BEGIN, END, PADDING, Case, Timing, read_sentences


class Tutorial(nn.Module):
    """The tutorial's model."""

    def __init__(self, dim: int, heads: int, vocabularies: tuple[int, int]) -> None:
        super().__init__()
        self.dim = dim
        self.source, self.target = (nn.Embedding(rows, dim) for rows in vocabularies)
        self.transformer = nn.Transformer(
            dim, heads, cases.LAYERS, cases.LAYERS, cases.FEEDFORWARD, cases.DROPOUT, batch_first=True
        )
        self.generator = nn.Linear(dim, vocabularies[1])
        self.dropout = nn.Dropout(cases.DROPOUT)
        rate = torch.exp(-torch.arange(0, dim, 2) * math.log(10_000) / dim)
        angle = torch.arange(5_000)[:, None] * rate
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(table(ids) * math.sqrt(self.dim) + self.positions[: ids.shape[1]])

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        causal = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool, device=y.device).triu(1)
        padding = {"src_key_padding_mask": x == PADDING, "memory_key_padding_mask": x == PADDING}
        out = self.transformer(
            self.embed(self.source, x), self.embed(self.target, y), tgt_mask=causal,
            tgt_key_padding_mask=y == PADDING, **padding,
        )  # fmt: skip
        return self.generator(out)


def training(case: Case) -> Timing:
    """Return the time of a step. Sentences are tensors beforehand; a step only pads and moves them."""
    clock.prepare_device(case)
    torch.manual_seed(0)
    model = Tutorial(case.dim, case.heads, case.vocabularies).to(case.device)
    adam = torch.optim.Adam(model.parameters(), lr=cases.RATE, betas=cases.BETAS, eps=cases.EPSILON)
    loss = nn.CrossEntropyLoss(ignore_index=PADDING)
    sides = [
        [torch.tensor([BEGIN, *row, END]) for row in read_sentences(case.prepared, side)]
        for side in ("source", "target")
    ]
    order = np.random.default_rng(0).permutation(len(sides[0])).tolist()
    mixed = torch.autocast(torch.device(case.device).type, torch.bfloat16)
    precision = mixed if case.precision == "bfloat16" else nullcontext()

    def step(number: int) -> None:
        rows = [order[i % len(order)] for i in range(number * case.batch, (number + 1) * case.batch)]
        x, y = (
            nn.utils.rnn.pad_sequence([side[i] for i in rows], batch_first=True, padding_value=PADDING).to(case.device)
            for side in sides
        )
        with precision:
            value = loss(model(x, y[:, :-1]).flatten(0, 1), y[:, 1:].flatten())
        adam.zero_grad()
        value.backward()
        adam.step()

    seconds = clock.time_steps(step, case)
    return Timing(seconds, clock.peak_mb(case), sum(p.numel() for p in model.parameters()))
