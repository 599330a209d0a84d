"""Time: what ran at once on one device counts once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embinit.reports.analysis.provenance import busy, cost
from embinit.reports.model import ExperimentCost
from tests.reports import made


def run(*spans: tuple[str, float, float], shares: dict[str, float] | None = None) -> ExperimentCost:
    keyed = {f"{device}{begin}{end}": (device, begin, end) for device, begin, end in spans}
    return ExperimentCost(
        len(spans), len(spans), 0.0, {**dict.fromkeys(keyed, 1.0), **(shares or {})}, "", (), {}, (), "", keyed
    )


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([("a", 0, 10), ("a", 20, 30)], 20),
        ([("a", 0, 10), ("a", 1, 11)], 11),
        ([("a", 0, 10), ("a", 2, 5), ("a", 9, 12)], 12),
        ([("a", 0, 10), ("b", 0, 10)], 20),
        ([], 0),
    ],
)
def test_stretches_that_overlap_on_one_device_count_once(spans: list[tuple[str, float, float]], seconds: float) -> None:
    assert busy([run(*spans)]) == seconds


def test_the_same_run_in_two_reports_counts_once_and_one_without_a_time_by_its_share() -> None:
    one = run(("a", 0, 10), shares={"x": 3.0})
    assert busy([one, one]) == 13


def test_members_that_trained_side_by_side_share_one_stretch() -> None:
    block = made.block(seeds=range(3))
    found = {
        key: replace(one, run={**one.run, "seconds": 100.0, "finished": "2025-01-02T03:04:05Z"})
        for key, one in made.results(block).items()
    }
    known = cost(made.experiment(block), found)
    assert len(known.spans) == 12
    assert busy([known]) == 100
    untimed = {key: replace(one, run={**one.run, "finished": ""}) for key, one in found.items()}
    assert cost(made.experiment(block), untimed).spans == {}
    assert busy([cost(made.experiment(block), untimed)]) == pytest.approx(12 * 100 / 20)
