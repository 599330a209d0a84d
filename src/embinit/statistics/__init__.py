"""Statistics: what scores over seeds can show, and what they cannot."""

from embinit.statistics.clustered import Clustered, pool_blocks, pool_data_sets
from embinit.statistics.comparison import Comparison, compare, holm
from embinit.statistics.intervals import cell
from embinit.statistics.mean_interval import MeanInterval
from embinit.statistics.outputs import PairedBootstrap, paired_bootstrap
from embinit.statistics.pooled import pooled
from embinit.statistics.power import detectable, floor_note, power_note, seeds_needed
from embinit.statistics.shares import wilson

__all__ = [
    "Clustered",
    "Comparison",
    "MeanInterval",
    "PairedBootstrap",
    "cell",
    "compare",
    "detectable",
    "floor_note",
    "holm",
    "paired_bootstrap",
    "pool_blocks",
    "pool_data_sets",
    "pooled",
    "power_note",
    "seeds_needed",
    "wilson",
]
