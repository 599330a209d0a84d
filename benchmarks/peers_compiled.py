"""One GPT-2 in a plain PyTorch loop with `torch.compile`, the usual way to train a small language model."""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import cases, clock
from benchmarks.cases import Case, Timing, read_text


class Block(nn.Module):
    """Pre-norm causal attention and a feed-forward layer."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, cases.TEXT_WIDTH * dim), nn.Linear(cases.TEXT_WIDTH * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (batch, heads, length, head)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class GPT(nn.Module):
    """GPT-2: learned positions, pre-LN, tied output layer."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(case.vocabularies[0], case.dim), nn.Embedding(case.length, case.dim)
        self.blocks = nn.ModuleList(Block(case.dim, case.heads) for _ in range(case.layers))
        self.norm = nn.LayerNorm(case.dim)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * case.layers) if residual else 0.02)

    def forward(self, ids: Tensor, following: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(F.linear(self.norm(x), self.tokens.weight).flatten(0, 1), following.flatten())


def training(case: Case) -> Timing:
    """Return the time of a step: random blocks, compiled forward and backward passes, clipping, fused AdamW."""
    clock.prepare_device(case)
    torch.manual_seed(0)
    model = GPT(case).to(case.device)
    decayed, others = ([p for p in model.parameters() if (p.dim() > 1) == matrix] for matrix in (True, False))
    adam = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": cases.TEXT_DECAY}, {"params": others, "weight_decay": 0.0}],
        lr=cases.TEXT_RATE, betas=cases.TEXT_BETAS, eps=cases.TEXT_EPSILON, fused=True,
    )  # fmt: skip
    compiled = torch.compile(model)
    ids, rng = torch.from_numpy(read_text(case.prepared)), np.random.default_rng(0)
    kind = torch.device(case.device).type
    precision = torch.autocast(kind, torch.bfloat16) if case.precision == "bfloat16" else nullcontext()

    def step(_: int) -> None:
        starts = rng.integers(0, len(ids) - case.length - 1, case.batch).tolist()
        blocks = torch.stack([ids[start : start + case.length + 1] for start in starts])
        blocks = blocks.pin_memory().to(case.device, non_blocking=True) if case.cuda else blocks
        with precision:
            loss = compiled(blocks[:, :-1], blocks[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), cases.TEXT_CLIP)
        adam.step()
        adam.zero_grad(set_to_none=True)

    seconds = clock.time_steps(step, case)
    return Timing(seconds, clock.peak_mb(case), sum(p.numel() for p in model.parameters()))
