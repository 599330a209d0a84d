"""Statistics of scores over seeds: intervals, paired tests, power."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from embinit.statistics.comparison import Comparison, compare, holm
from embinit.statistics.intervals import MeanInterval, mean_interval, pooled
from embinit.statistics.power import detectable, floor_note, power_note, seeds_needed

if TYPE_CHECKING:
    from embinit.statistics.clustered import Clustered, pool_blocks, pool_data_sets
    from embinit.statistics.outputs import PairedBootstrap, paired_bootstrap
    from embinit.statistics.shares import wilson

#: Names that no report needs: their modules are imported when a name is first used.
_LATER = {
    "Clustered": "clustered",
    "pool_blocks": "clustered",
    "pool_data_sets": "clustered",
    "PairedBootstrap": "outputs",
    "paired_bootstrap": "outputs",
    "wilson": "shares",
}

__all__ = [
    "Clustered",
    "Comparison",
    "MeanInterval",
    "PairedBootstrap",
    "compare",
    "detectable",
    "floor_note",
    "holm",
    "mean_interval",
    "paired_bootstrap",
    "pool_blocks",
    "pool_data_sets",
    "pooled",
    "power_note",
    "seeds_needed",
    "wilson",
]


def __getattr__(name: str) -> Any:
    if name == "cell":  # the name of `mean_interval` before version 0.2
        return mean_interval
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
