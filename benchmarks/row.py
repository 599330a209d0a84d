"""One row in a process of its own: `python -m benchmarks.row CASE`, which prints JSON as its last line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module

from benchmarks.cases import Case, Timed, read_case

#: Who measures what; imported only when asked for, for not every environment has them all.
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


def measured(case: Case) -> Timed:
    """Return what the case took, measured in this process."""
    module, name = MEASURES[case.what]
    result: Timed = getattr(import_module(module), name)(case)
    return result


if __name__ == "__main__":
    print("\n" + json.dumps(asdict(measured(read_case(sys.argv[1])))))
