"""Attention over packed sentences as CUDA kernels with their gradients; `layers` has it in plain torch.

The kernels of `attention` take whole sentences, with a launch for each size. The kernels of `attention_tiles` take longer
sentences.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from embinit.models.dropout import Dropout
from embinit.models.kernels.operations import power
from embinit.models.packing import Layout

if TYPE_CHECKING:
    from types import ModuleType

#: The sizes of sentences that one program takes as a whole, its warps, and the number of programs on a multiprocessor,
#: which take sentences in turn. Longer sentences are taken in tiles.
SIZES = ((16, 1, 32), (32, 2, 16), (64, 4, 4), (128, 8, 2))
LONGEST = SIZES[-1][0]
#: The largest sentence (padded tokens × padded width of a head) that fits into shared memory with its intermediate
#: values, and the number of columns that are read at a time from larger ones.
_WHOLE, _PART = 8192, 32
#: The largest number of tokens of a tile, its numbers of one head (so that it fits into smaller cards), the number of
#: programs on a multiprocessor, and the widest head that tiles can take.
_TILE, _TILE_NUMBERS, _TILE_PROGRAMS, _WIDEST = 64, 4096, 2, 256
TILE_OPTIONS = {"num_warps": 4, "num_stages": 1}
#: The largest number of registers of a thread if heads are narrow. Other values wait in the cache, but more programs run
#: at once, and attention mostly waits for memory.
_REGISTERS, _NARROW = 168, 32


@cache
def _attention() -> ModuleType:
    from embinit.models.kernels import attention

    return attention


@cache
def _tiles() -> ModuleType:
    from embinit.models.kernels import attention_tiles

    return attention_tiles


def _precision() -> str:
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee"


class _Attend(torch.autograd.Function):
    """Attention of queries to concatenated keys and values. If `others` is None, all three are concatenated."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, others: Tensor | None, queries_bias: Tensor | None, others_bias: Tensor | None,
        place: Layout, there: Layout, heads: int, causal: bool, curve: Tensor | None, dropout: Dropout, name: str,
    ) -> Tensor:  # fmt: skip
        queries = queries.contiguous()
        others = others.contiguous() if others is not None else None
        dim = queries.shape[-1] // 3 if others is None else queries.shape[-1]
        drop = dropout.rate > 0
        own = dropout.for_kernels(name)
        out = queries.new_empty(*queries.shape[:2], dim)
        curve = curve.contiguous() if curve is not None else None
        tensors = (queries, others, queries_bias, others_bias, own, curve)
        ctx.settings = (place, there, heads, causal, drop, dim)
        # The backward pass of long sentences reads their outputs, and the log of each query's sum over keys.
        total = out.new_empty(*out.shape[:2], heads, dtype=torch.float32) if _longest(place, there) > LONGEST else None
        _attend(("forward", [out], [total]), ctx.settings, *tensors)
        ctx.save_for_backward(*tensors, *((None, None) if total is None else (out, total)))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, out, total = ctx.saved_tensors
        queries, others, queries_bias, others_bias, _, curve = tensors
        queries_grad = torch.empty_like(queries)
        others_grad = torch.empty_like(others) if others is not None else None
        learned, dim = ctx.needs_input_grad[8], ctx.settings[-1]
        # Bias gradients are summed where the gradients are computed. Gradients that are not needed are not written.
        biases = tuple(None if bias is None else torch.zeros_like(bias) for bias in (queries_bias, others_bias))
        sums = (queries_grad, queries_grad, queries_grad) if biases[0] is None else _three(biases[0], biases[1], dim)
        curve_grad = torch.zeros_like(curve) if learned else None
        grads = [
            *_three(queries_grad, others_grad, dim), *sums, queries_grad if curve_grad is None else curve_grad,
            grad.contiguous(),
        ]  # fmt: skip
        _attend(("backward", grads, [out, total]), ctx.settings, *tensors, LEARNED=learned)
        return queries_grad, others_grad, *biases, None, None, None, None, curve_grad, None, None


def _three(queries: Tensor, others: Tensor | None, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values as views."""
    if others is None:
        return queries[..., :dim], queries[..., dim : 2 * dim], queries[..., 2 * dim :]
    return queries, others[..., :dim], others[..., dim:]


def _attend(
    way: tuple[str, list[Tensor], list[Tensor | None]], settings: tuple[Any, ...], queries: Tensor,
    others: Tensor | None, queries_bias: Tensor | None, others_bias: Tensor | None, own: Tensor, curve: Tensor | None,
    **more: Any,
) -> None:  # fmt: skip
    """Run the forward or backward kernels with their first arguments, and the additional arguments of tiles."""
    name, first, besides = way
    place, there, heads, causal, drop, dim = settings
    q, k, v = _three(queries, others, dim)
    biases = (q, k, v) if queries_bias is None else _three(queries_bias, others_bias, dim)
    head = dim // heads
    width = max(16, power(head))
    longest = _longest(place, there)
    listed, counts = _work(place, there)
    # A curve that all members share has a stride of zero.
    curved = (curve, curve.stride(0) if len(curve) > 1 else 0) if curve is not None else (own, 0)
    lines = (*place.for_kernels, *there.for_kernels, *biases)
    numbers = (place.room, there.room, place.batch, heads, head**-0.5)
    constants = {
        "Q_STRIDE": q.stride(1), "K_STRIDE": k.stride(1), "DIM": dim, "BIAS": queries_bias is not None, "HEAD": head,
        "WIDTH": width, "CAUSAL": causal, "DROP": drop, "CURVE": 0 if curve is None else curve.shape[-1] // 2,
        "PRECISION": _precision(), **more,
    }  # fmt: skip

    def grid(programs: int) -> tuple[int]:
        return (min(place.lengths.numel() * heads, programs * _processors(queries.device)),)

    limits = {"maxnreg": _REGISTERS} if width <= _NARROW else {}
    whole = getattr(_attention(), f"attend_{name}")
    for number, (size, warps, programs) in enumerate(SIZES):
        whole[grid(programs)](
            *first, q, k, v, own, *curved, listed[number], counts[number:], *lines, *numbers, PART=part(size, width),
            BLOCK=size, num_warps=warps, **limits, **constants,
        )  # fmt: skip
        if size >= longest:
            return
    getattr(_tiles(), f"tiles_{name}")[grid(_TILE_PROGRAMS)](
        *first, *besides, q, k, v, own, *curved, listed[-1], counts[-1:], *lines, *numbers, TILE=tile(width),
        **TILE_OPTIONS, **constants,
    )  # fmt: skip


def _longest(place: Layout, there: Layout) -> int:
    return max(place.longest, there.longest)


def _work(place: Layout, there: Layout) -> tuple[Tensor, Tensor]:
    """Return the sentences of each size, (sizes, sentences), and their number. Both are made once for two layouts."""
    known = place.worked.get(id(there))
    if known is None:
        lengths, others = place.for_kernels[1], there.for_kernels[1]
        sizes = len(SIZES) + 1
        listed, counts = lengths.new_empty(sizes, len(lengths)), lengths.new_empty(sizes)
        _attention().sort_work[(1,)](
            listed, counts, lengths, others, len(lengths), SMALLEST=SIZES[0][0], SIZES=sizes, BLOCK=2048, num_warps=8
        )  # fmt: skip
        known = place.worked[id(there)] = (listed, counts)
    return known


@cache
def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def part(size: int, width: int) -> int:
    """Return the number of a head's columns that are read at a time, given the number of tokens of a sentence."""
    return width if size * width <= _WHOLE else min(width, _PART)


def tile(width: int) -> int:
    """Return the number of tokens of a tile, given the padded width of a head."""
    return max(16, min(_TILE, _TILE_NUMBERS // width))


def span(place: Layout) -> int:
    """Return the longest distance of a curve. There are few values, because kernels are compiled for each."""
    return -(-max(LONGEST, place.longest) // LONGEST) * LONGEST - 1


def serves(place: Layout, there: Layout, head: int) -> bool:
    """Return whether the attention kernels can take these sentences and heads of this width."""
    return _longest(place, there) <= LONGEST or power(head) <= _WIDEST


def attend(
    queries: Tensor, others: Tensor | None, queries_bias: Tensor | None, others_bias: Tensor | None, place: Layout,
    there: Layout, heads: int, causal: bool, curve: Tensor | None, dropout: Dropout, name: str,
) -> Tensor:  # fmt: skip
    """Return attention over packed sentences, (members, room, dim).

    `others` holds keys and values; if it is None, `queries` holds all three. The biases of the projections are added here,
    unless they are None. `curve` holds the bias of each distance from -`span` to `span`: (members, heads, distances), or
    (1, heads, distances) for all members.
    """
    out: Tensor = _Attend.apply(  # type: ignore[no-untyped-call]
        queries, others, queries_bias, others_bias, place, there, heads, causal, curve, dropout, name
    )
    return out
