"""Cross-entropy of logits in bfloat16 on a CPU.

It takes a few rows at a time, which stay in the cache, and needs no float32 copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

#: The number of logits that are taken at a time: 512 KB in float32.
_LOGITS = 1 << 17


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, asked: Tensor, smoothing: float) -> Tensor:
        losses = torch.empty_like(asked, dtype=torch.float32)
        for rows in _parts(logits):
            logs = F.log_softmax(logits[rows].float(), dim=1)
            losses[rows] = (smoothing - 1) * logs.gather(1, asked[rows, None])[:, 0]
            if smoothing:
                losses[rows] -= smoothing * logs.mean(dim=1)
        ctx.save_for_backward(logits, asked)
        ctx.smoothing = smoothing
        return losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, asked = ctx.saved_tensors
        # The logits are not needed any more, so the gradient takes their memory.
        result, smoothing = logits.detach(), ctx.smoothing
        for rows in _parts(result):
            part = F.softmax(result[rows].float(), dim=1)
            part.scatter_add_(1, asked[rows, None], torch.full_like(part[:, :1], smoothing - 1))
            if smoothing:
                part -= smoothing / part.shape[1]
            result[rows] = part.mul_(grad[rows, None])
        return result, None, None


def _parts(logits: Tensor) -> Iterator[slice]:
    size = max(1, _LOGITS // logits.shape[1])
    return (slice(start, start + size) for start in range(0, len(logits), size))


def cross_entropy(logits: Tensor, asked: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the loss of each row of logits (rows, outputs) in float32; the gradient is written over the logits."""
    out: Tensor = _CrossEntropy.apply(logits, asked, smoothing)  # type: ignore[no-untyped-call]
    return out
