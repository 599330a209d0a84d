"""Run `benchmarks.training` or `benchmarks.text` on one card: `python3 -m benchmarks.gpu PREPARED [options]`.

PREPARED is a folder that `embinit prepare multi30k` wrote, with the options of `python -m benchmarks.training --help`. If
PREPARED holds a running text (`embinit prepare wikitext2`), this runs `benchmarks.text` with its options.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    # Import the checkout if embinit is not installed.
    if find_spec("embinit") is None:
        sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    from benchmarks import text, training

    table = text if arguments and text.is_text(arguments[0]) else training
    named = ["--prepared", *arguments] if arguments and not arguments[0].startswith("-") else arguments
    return table.main(["--device", "cuda", *named])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
