"""How much shared memory attention's kernels take on a Hopper card: compiled here, no card needed.

`python -m tests.models.compiled` prints a JSON list of kernel, room for tokens, width of a head and bytes.
"""

from __future__ import annotations

import json
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from embinit.models import attention
from embinit.models.fused import SIZES, SPAN, part

_SINGLE = ("scale", "keep")
_NUMBERS = ("first_ptr", "length_ptr", "own_ptr", "list_ptr", "count_ptr")
#: of Multi30k with GloVe, MiniLM, T5, BERT, and twice that
HEADS = (30, 48, 64, 96, 192)


def shared(kernel: Any, size: int, warps: int, head: int) -> int:
    width = max(16, triton.next_power_of_2(head))
    fixed = {
        "BIAS": True, "HEAD": head, "WIDTH": width, "PART": part(size, width), "BLOCK": size, "CAUSAL": True,
        "DROP": True, "CURVE": SPAN, "LEARNED": True, "PRECISION": "tf32",
    }  # fmt: skip
    fixed = {name: value for name, value in fixed.items() if name in kernel.arg_names}
    kinds = {name: "constexpr" if name in fixed else _kind(name) for name in kernel.arg_names}
    source = ASTSource(kernel, kinds, {(kernel.arg_names.index(name),): value for name, value in fixed.items()})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    return int(made.metadata.shared)


def _kind(name: str) -> str:
    if name.endswith("_ptr"):
        return "*i32" if name.endswith(_NUMBERS) else "*fp32"
    return "fp32" if name in _SINGLE else "i32"


if __name__ == "__main__":
    found = [
        (kernel.__name__, size, head, shared(kernel, size, warps, head))
        for kernel in (attention.attend_forward, attention.attend_backward)
        for size, warps, _ in SIZES
        for head in HEADS
    ]
    print(json.dumps(found))
