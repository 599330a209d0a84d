"""Named places on an axis of ratios."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from embinit.reports.results_reader import ResultsFile
from embinit.reports.writers.axis_marks import AxisMark, marks
from tests.reports import made
from tests.research.test_judging import diagnosis, verdict_file


def test_xaviers_own_ratio_comes_from_the_matrices_and_a_sources_from_its_verdict() -> None:
    block = made.block("x")
    runs = tuple(
        replace(run, spec=replace(run.spec, sides=tuple((n, replace(s, rows="f1")) for n, s in run.spec.sides)))
        for run in block.runs
    )
    block = replace(block, runs=runs)
    verdicts = verdict_file({"y": [{**diagnosis(9.0), "rows": "f1"}, {**diagnosis(4.0), "rows": "f2"}]})
    found = marks([ResultsFile(made.experiment(block), made.results(block)), verdicts])
    own, raw = found["made", "x"]
    sigma = math.sqrt(2 / (7853 + 300)) * math.sqrt(300) / math.sqrt(0.5)
    assert (own.label, own.low, own.high) == ("Xavier's own", pytest.approx(sigma), pytest.approx(sigma))
    assert raw.label == "glove as it is"
    assert raw.low == raw.high == pytest.approx(9.0, rel=0.05)
    # Rows that nobody diagnosed have no mark.
    assert [mark.label for mark in marks([ResultsFile(made.experiment(block), made.results(block))])["made", "x"]] == [
        "Xavier's own"
    ]


def test_two_sides_make_a_stretch_and_no_runs_no_mark() -> None:
    block = made.block("x")
    found = made.results(block)
    key = block.runs[0].spec.key
    sides = dict(found[key].matrices)
    sides["target"] = {**sides["target"], "rows": 5893}
    (own,) = marks([ResultsFile(made.experiment(block), {key: replace(found[key], matrices=sides)})])["made", "x"]
    assert isinstance(own, AxisMark)
    assert 0.38 < own.low < 0.39 < 0.44 < own.high < 0.45
    assert marks([ResultsFile(made.experiment(block), {})])["made", "x"] == ()
