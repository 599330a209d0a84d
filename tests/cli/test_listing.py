"""Tables of experiments in a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from embinit.cli.listing import results_table
from tests.reports import made


def test_the_scores_of_run_have_the_unit_of_the_report() -> None:
    block = made.block("SST-2", recipes=("xavier",), task="sst2", seeds=range(2))
    found = {run.spec.key: made.result(run.spec, 0.54 + run.spec.seed / 100, split=block.split) for run in block.runs}
    written = io.StringIO()
    screen = Console(width=100, file=written)
    screen.print(results_table(made.experiment(block), found))
    assert "xavier  accuracy, %  54.5  0.7    2/2" in written.getvalue()
