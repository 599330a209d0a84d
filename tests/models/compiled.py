"""How much shared memory attention's kernels take on a Hopper card: compiled here, no card needed.

`python -m tests.models.compiled` prints a JSON list of kernel, room for tokens, width of a head and bytes.
"""

from __future__ import annotations

import json
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from embinit.models.kernels import attention, attention_tiles
from embinit.models.kernels.packed_attention import LONGEST, SIZES, TILE_OPTIONS, part, tile

_SINGLE = ("scale", "keep")
_NUMBERS = ("first_ptr", "length_ptr", "own_ptr", "list_ptr", "count_ptr")
#: of Multi30k with GloVe, MiniLM, T5, BERT, and twice that
HEADS = (30, 48, 64, 96, 192)


def shared(kernel: Any, size: int, head: int, **options: int) -> int:
    width = max(16, triton.next_power_of_2(head))
    dim = 8 * head
    fixed = {
        "Q_STRIDE": 3 * dim, "K_STRIDE": 3 * dim, "DIM": dim, "BIAS": True, "HEAD": head, "WIDTH": width,
        "PART": part(size, width), "BLOCK": size, "TILE": tile(width), "CAUSAL": True, "DROP": True,
        "CURVE": LONGEST - 1, "LEARNED": True, "PRECISION": "tf32",
    }  # fmt: skip
    fixed = {name: value for name, value in fixed.items() if name in kernel.arg_names}
    kinds = {name: "constexpr" if name in fixed else _kind(name) for name in kernel.arg_names}
    source = ASTSource(kernel, kinds, {(kernel.arg_names.index(name),): value for name, value in fixed.items()})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    return int(made.metadata.shared)


def _kind(name: str) -> str:
    if name.endswith("_ptr"):
        return "*i32" if name.endswith(_NUMBERS) else "*fp32"
    return "fp32" if name in _SINGLE else "i32"


if __name__ == "__main__":
    whole, in_tiles = (
        (attention.attend_forward, attention.attend_backward),
        (attention_tiles.tiles_forward, attention_tiles.tiles_backward),
    )
    found = [
        (kernel.__name__, size, head, shared(kernel, size, head, num_warps=warps))
        for kernel in whole
        for size, warps, _ in SIZES
        for head in HEADS
    ]
    found += [
        (kernel.__name__, 0, head, shared(kernel, 0, head, **TILE_OPTIONS))
        for kernel in in_tiles
        for head in (*HEADS, 256)
    ]
    print(json.dumps(found))
