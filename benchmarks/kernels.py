"""Profile a training step: `python3 -m benchmarks.kernels PREPARED [--members 32] [--precision tf32] [--steps 20]`.

PREPARED is a folder that `embinit prepare` wrote (multi30k, mnli). On a card, the list shows kernels; on a CPU, torch's
operations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    # Import the checkout if embinit is not installed.
    if find_spec("embinit") is None:
        sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    import torch

    from benchmarks.cases import Case
    from benchmarks.lockstep import kernel_times, training
    from embinit.prepared.folder import open_prepared

    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.kernels", description=__doc__)
    parser.add_argument("prepared", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--members", type=int, default=32)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--heads", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--most", type=int, default=30, help="print at most this many lines, the slowest first")
    options = parser.parse_args(arguments)
    prepared = open_prepared(options.prepared)
    sizes = tuple(len(prepared.vocabularies[side]) for side in prepared.sides)
    case = Case(
        "embinit", str(options.prepared), sizes, options.device, options.precision, options.members, options.dim,
        options.heads, options.batch, options.steps,
    )  # fmt: skip
    clock, by_kernel = training(case).seconds, kernel_times(case)
    print(
        f"{1000 * clock:.2f} ms a step by the clock, {sum(time for time, _ in by_kernel.values()) / 1000:.2f} in these:"
    )
    for name, (time, launches) in sorted(by_kernel.items(), key=lambda item: -item[1][0])[: options.most]:
        print(f"{time:9.1f} us {launches:7.1f}x  {name[:110]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
