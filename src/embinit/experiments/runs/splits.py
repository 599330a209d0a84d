"""The split that a block is judged on, where the data has no test rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from embinit.experiments.experiment import Block
from embinit.experiments.runs.result import Result

#: The split that every training has: it chooses the epoch that is scored.
VALID = "valid"


def with_scored_split(block: Block, results: Mapping[str, Result]) -> Block:
    """Return the block, judged on the validation rows if its runs have scores there and none on its own split.

    A user's data set may have training and validation rows alone. Its file does not say so, and the data may not be at hand
    when a report is made: the scores of the finished runs decide.
    """
    scores = [results[run.spec.key].scores for run in block.runs if run.spec.key in results]
    if any(block.score in found.get(block.split, {}) for found in scores):
        return block
    return replace(block, split=VALID) if any(block.score in found.get(VALID, {}) for found in scores) else block
