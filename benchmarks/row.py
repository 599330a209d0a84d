"""Measure one case: `python -m benchmarks.row CASE` prints JSON in its last line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module

from benchmarks.cases import Case, Timing, read_case

#: Program -> module and function that measure it. Modules are imported on demand: no environment has all packages.
MEASURES = {
    "embinit": ("benchmarks.lockstep", "training"),
    "embinit, mixed settings": ("benchmarks.lockstep", "mixed_training"),
    "embinit, end to end": ("benchmarks.lockstep", "whole_training"),
    "embinit, two groups": ("benchmarks.pairs", "two_groups"),
    "embinit, two groups, MPS": ("benchmarks.pairs", "two_groups_under_mps"),
    "greedy decoding": ("benchmarks.lockstep", "decoding"),
    "PyTorch's tutorial": ("benchmarks.peers_tutorial", "training"),
    "Marian, transformers": ("benchmarks.peers_marian", "training"),
    "JoeyNMT": ("benchmarks.peers_joeynmt", "training"),
    "embinit, language model": ("benchmarks.lockstep", "text_training"),
    "compiled loop": ("benchmarks.peers_compiled", "training"),
    "GPT-2, Trainer": ("benchmarks.peers_trainer", "training"),
    "matrix product": ("benchmarks.clock", "matrix_product"),
}


def measure(case: Case) -> Timing:
    """Return the time and memory of a case, measured in this process."""
    module, name = MEASURES[case.what]
    result: Timing = getattr(import_module(module), name)(case)
    return result


if __name__ == "__main__":
    print("\n" + json.dumps(asdict(measure(read_case(sys.argv[1])))))
