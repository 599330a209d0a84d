"""The model's operations as single CUDA kernels with their gradients; `layers` has each in plain torch.

Attention is in `packed_attention`.
"""

from __future__ import annotations

import importlib.util
import math
import os
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from embinit.models.dropout import Dropout
from embinit.models.packing import Layout

if TYPE_CHECKING:
    from types import ModuleType

#: The number of rows that one program adds up in the backward pass of a norm.
_ROWS = 16


def usable(values: Tensor) -> bool:
    """Return whether the kernels can be used: on CUDA with Triton, unless EMBINIT_PLAIN is set."""
    return values.is_cuda and _installed() and not os.environ.get("EMBINIT_PLAIN")


@cache
def _installed() -> bool:
    return importlib.util.find_spec("triton") is not None


@cache
def _kernels() -> ModuleType:
    from embinit.models.kernels import elementwise

    return elementwise


def power(count: int) -> int:
    """Return the smallest power of two that is not below a number."""
    return 1 << (count - 1).bit_length()


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, table: Tensor, ids: Tensor, place: Layout, added: Tensor | None, scale: float, dropout: Dropout,
        name: str,
    ) -> Tensor:  # fmt: skip
        members, rows, dim = table.shape
        own, drop = dropout.for_kernels(name), dropout.rate > 0
        out = table.new_empty(members, ids.shape[1], dim)
        _kernels().embed_forward[(ids.numel(),)](
            out, table, ids, place.position, added if added is not None else table, own, ids.shape[1], rows, scale,
            D=dim, BLOCK=power(dim), ADDED=added is not None, DROP=drop,
        )  # fmt: skip
        ctx.save_for_backward(ids, place.real, own)
        ctx.settings = (table.shape, scale, drop)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        ids, real, own = ctx.saved_tensors
        (members, rows, dim), scale, drop = ctx.settings
        result = torch.zeros(members, rows, dim, device=grad.device)
        _kernels().embed_backward[(ids.numel(),)](
            result, grad.contiguous(), ids, real, own, ids.shape[1], rows, scale, D=dim, BLOCK=power(dim), DROP=drop,
        )  # fmt: skip
        return result, None, None, None, None, None, None


def embed(
    table: Tensor, ids: Tensor, place: Layout, added: Tensor | None, scale: float, dropout: Dropout, name: str
) -> Tensor:
    """Return rows of the table (members, rows, dim), scaled, with the `added` positions and dropout."""
    out: Tensor = _Embed.apply(table, ids, place, added, scale, dropout, name)  # type: ignore[no-untyped-call]
    return out


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, values: Tensor, change: Tensor | None, change_bias: Tensor | None, weight: Tensor, bias: Tensor,
        dropout: Dropout, name: str, dtype: torch.dtype, epsilon: float, rms: bool,
    ) -> Tensor:  # fmt: skip
        members, room, dim = values.shape
        values = values.contiguous()
        change = change.contiguous() if change is not None else None
        drop = change is not None and dropout.rate > 0
        own = dropout.for_kernels(name) if drop else weight
        out = torch.empty_like(values, dtype=dtype)
        mean, rstd = torch.empty(2, members * room, device=values.device)
        _kernels().norm_forward[(members * room,)](
            out, mean, rstd, values, _or(change, values), _or(change_bias, bias), weight, bias, own, room,
            epsilon, D=dim, BLOCK=power(dim), CHANGE=change is not None, DROP=drop, RMS=rms,
        )  # fmt: skip
        ctx.save_for_backward(values, change, change_bias, weight, own, mean, rstd)
        ctx.settings = (drop, rms)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values, change, change_bias, weight, own, mean, rstd = ctx.saved_tensors
        drop, rms = ctx.settings
        members, room, dim = values.shape
        sums = torch.zeros(3, members, dim, device=grad.device)
        values_grad = torch.empty_like(values)
        change_grad = torch.empty_like(change) if change is not None else None
        _kernels().norm_backward[(members, -(-room // _ROWS))](
            values_grad, _or(change_grad, values_grad), sums[0], sums[1], sums[2], grad.contiguous(), values,
            _or(change, values), _or(change_bias, weight), weight, mean, rstd, own, room, D=dim, BLOCK=power(dim),
            ROWS=_ROWS, CHANGE=change is not None, DROP=drop, RMS=rms,
        )  # fmt: skip
        own_grads = (sums[2] if change is not None else None, sums[0], sums[1])
        return values_grad, change_grad, *own_grads, *[None] * 5


def _or(tensor: Tensor | None, other: Tensor) -> Tensor:
    """Return a tensor, or another one as a placeholder that the kernel does not read."""
    return other if tensor is None else tensor


def norm(
    values: Tensor, change: Tensor | None, change_bias: Tensor | None, weight: Tensor, bias: Tensor,
    dropout: Dropout, name: str, dtype: torch.dtype, epsilon: float = 1e-5, rms: bool = False,
) -> Tensor:  # fmt: skip
    """Return normalized values, scaled and shifted by each member's parameters.

    A change and its bias, after dropout, are added to the values first. With `rms`, values are divided by their root mean
    square; otherwise the mean is subtracted before.
    """
    out: Tensor = _Norm.apply(  # type: ignore[no-untyped-call]
        values, change, change_bias, weight, bias, dropout, name, dtype, epsilon, rms
    )
    return out


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, bias: Tensor, dropout: Dropout, name: str) -> Tensor:
        members, room, dim = values.shape
        values = values.contiguous()
        out, own = torch.empty_like(values), dropout.for_kernels(name)
        _kernels().relu_forward[(members * room,)](
            out, values, bias, own, room, D=dim, BLOCK=power(dim), DROP=dropout.rate > 0
        )
        ctx.save_for_backward(out, own)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        out, own = ctx.saved_tensors
        members, room, dim = out.shape
        result, bias_grad = torch.empty_like(out), torch.zeros(members, dim, device=grad.device)
        _kernels().relu_backward[(members, -(-room // _ROWS))](
            result, bias_grad, grad.contiguous(), out, own, room, D=dim, BLOCK=power(dim), ROWS=_ROWS
        )
        return result, bias_grad, None, None


def relu(values: Tensor, bias: Tensor, dropout: Dropout, name: str) -> Tensor:
    """Return the positive part of values plus their bias, with dropout."""
    out: Tensor = _Relu.apply(values, bias, dropout, name)  # type: ignore[no-untyped-call]
    return out


class _Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, bias: Tensor, cos: Tensor, sin: Tensor, place: Layout) -> Tensor:
        values = values.contiguous()
        out = torch.empty_like(values)
        ctx.save_for_backward(cos, sin)
        ctx.place = place
        _turn(out, bias, values, bias, cos, sin, place, back=False)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        grad = grad.contiguous()
        result, bias_grad = torch.empty_like(grad), torch.zeros(grad.shape[0], grad.shape[2], device=grad.device)
        _turn(result, bias_grad, grad, bias_grad, cos, sin, ctx.place, back=True)
        return result, bias_grad, None, None, None


def _turn(
    out: Tensor, bias_grad: Tensor, values: Tensor, bias: Tensor, cos: Tensor, sin: Tensor, place: Layout, back: bool
) -> None:
    members, room, width = values.shape
    _kernels().turn[(members, -(-room // _ROWS))](
        out, bias_grad, values, bias, cos, sin, place.position, room, D=width // 3, HEAD=2 * cos.shape[1],
        BLOCK=power(width), ROWS=_ROWS, BACK=back,
    )  # fmt: skip


def turn(values: Tensor, bias: Tensor, cos: Tensor, sin: Tensor, place: Layout) -> Tensor:
    """Return concatenated queries, keys and values plus their bias, with queries and keys rotated by their position.

    `cos` and `sin` hold the angles of a head's pairs at each position, (length, head / 2).
    """
    out: Tensor = _Turn.apply(values, bias, cos, sin, place)  # type: ignore[no-untyped-call]
    return out


class _Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, bias: Tensor, asked: Tensor, there: Tensor, smoothing: Tensor) -> Tensor:
        logits, asked, there = logits.contiguous(), asked.contiguous(), there.contiguous()
        losses, totals = torch.empty_like(asked, dtype=torch.float32), torch.empty_like(asked, dtype=torch.float32)
        ctx.save_for_backward(logits, bias, totals, asked, there, smoothing)
        block = min(8192, power(bias.shape[1]))
        _kernels().entropy_forward[(asked.numel(),)](
            losses, totals, logits, bias, asked, there, smoothing, asked.shape[1], logits.shape[-1], V=bias.shape[1],
            BLOCK=block, num_warps=max(1, block // 512),
        )  # fmt: skip
        return losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, bias, totals, asked, there, smoothing = ctx.saved_tensors
        # The logits are not needed any more, so the gradient takes their memory.
        result, block = logits.detach(), min(8192, power(bias.shape[1]))
        _kernels().entropy_backward[(asked.numel(),)](
            result, bias, totals, asked, there, grad.contiguous(), smoothing, asked.shape[1], logits.shape[-1],
            V=bias.shape[1], BLOCK=block, num_warps=max(1, block // 512),
        )  # fmt: skip
        asks_bias = ctx.needs_input_grad[1]
        bias_grad = result.sum(dim=1, dtype=torch.float32)[:, : bias.shape[1]] if asks_bias else None
        return result, bias_grad, None, None, None


def entropy(logits: Tensor, bias: Tensor, asked: Tensor, there: Tensor, smoothing: Tensor) -> Tensor:
    """Return the loss of each place, 0 without a prediction. The gradient is written over the logits.

    The logits come without their bias. They may be wider than the bias; further columns are padding. `smoothing`
    (members,) is float32.
    """
    out: Tensor = _Entropy.apply(logits, bias, asked, there, smoothing)  # type: ignore[no-untyped-call]
    return out


def adam(
    weight: Tensor, grad: Tensor, first: Tensor, second: Tensor, step: Tensor, rate: Tensor,
    betas: tuple[float, float], epsilon: float,
) -> None:  # fmt: skip
    """Update a weight and both of Adam's moments by one step, in place. `step` is its number, from 1, on the device.

    `rate` and `step` are one number for the whole weight, or contiguous tensors with one number for each of its first
    dimensions: a rate for each member (members,) or for each row (members, rows, 1), a step for each member.
    """
    block, logs = 2048, map(math.log, betas)
    # A tensor without dimensions is one number. Any other tensor has several, even if it has a single element.
    width = weight.numel() // rate.numel() if rate.dim() else 0
    share = weight.numel() // step.numel() if step.dim() else 0
    _kernels().adam[(-(-weight.numel() // block),)](
        weight.detach(), grad, first, second, step, rate, weight.numel(), *betas, *logs, epsilon, WIDTH=width,
        SHARE=share, BLOCK=block,
    )  # fmt: skip
