"""The table of a report in a terminal: what it keeps if the terminal is narrow."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from embinit.cli.report_tables import print_report
from embinit.experiments.experiment import Baseline
from embinit.reports.summarize import summarize
from tests.reports import made


@pytest.mark.parametrize("width", [80, 100, 160])
def test_differences_to_several_baselines_stay_beside_their_names(width: int) -> None:
    levels = {
        (positions, recipe): level
        for positions, lift in (("sinusoidal", 0.0), ("rotary", 1.0))
        for recipe, level in (("xavier", 37.0), ("pretrained_xavier", 38.0 + lift))
    }
    block, results = made.crossed(levels, ("model.positions", "recipe"), seeds=range(6))
    pinned = (Baseline("xavier"), Baseline("same", (("model.positions", "sinusoidal"),)))
    screen = Console(file=StringIO(), width=width)
    print_report(summarize(made.experiment(block, against=pinned), results), screen)
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    header = next(line for line in lines if line.startswith("start "))
    assert ("against" in header, "difference" in header) == (True, True)
    assert "…" not in "".join(lines)
