"""Statistics: what scores over seeds can show, and what they cannot."""

from embinit.statistics.comparison import Comparison, compare, holm
from embinit.statistics.intervals import MeanInterval, cell
from embinit.statistics.outputs import PairedBootstrap, paired_bootstrap
from embinit.statistics.pooled import Pooled, pooled
from embinit.statistics.power import detectable, floor_note, power_note, seeds_needed
from embinit.statistics.shares import wilson

__all__ = [
    "Comparison",
    "MeanInterval",
    "PairedBootstrap",
    "Pooled",
    "cell",
    "compare",
    "detectable",
    "floor_note",
    "holm",
    "paired_bootstrap",
    "pooled",
    "power_note",
    "seeds_needed",
    "wilson",
]
