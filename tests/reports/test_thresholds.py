"""The verdict's lines, adjusted on one half of the cells and judged on the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embinit.diagnosis.verdict import limits
from embinit.reports.advice import section
from embinit.reports.thresholds import adjusted, candidates
from embinit.reports.verdicts import outcome
from tests.reports.advised import cells, of_classifier, one


def test_lines_that_are_right_stay() -> None:
    found = adjusted(cells(border=2.5), "A")
    assert found is not None
    assert not found.moved
    assert found.lines == {"buried": 0.2, "border": 2.5, "low": 0.75, "high": 3.0}


def test_lines_that_are_wrong_are_moved_on_one_half_and_judged_on_the_other() -> None:
    found = adjusted(cells(border=5.0), "A")
    assert found is not None
    assert found.lines["border"] == pytest.approx((3 * 9) ** 0.5, abs=0.05)
    assert found.lines["buried"] == limits()["ratio"]["buried"]
    assert {half: (found.before[half].hits, found.after[half].hits) for half in "AB"} == {"A": (3, 4), "B": (3, 4)}


def test_what_one_half_alone_shows_does_not_help_the_other() -> None:
    # Rows of 3 do best as they are in half A, and not in half B.
    mixed = [
        replace(trial, scores=other.scores) if trial.half == "A" else trial
        for trial, other in zip(cells(border=2.5), cells(border=5.0), strict=True)
    ]
    found = adjusted(mixed, "A")
    assert found is not None
    assert (found.after["A"].hits, found.after["B"].hits) == (4, found.before["B"].hits - 1)
    said = "\n".join(section(mixed))
    assert "the one that does best on half A gives 1 hit fewer on half B." in said


def test_rows_that_are_enlarged_in_vain_move_the_lower_line() -> None:
    # At 0.1 and 0.15 rows do best as they are: the verdict enlarges them.
    found = adjusted(cells(border=5.0, ratios=(0.1, 0.15, 0.5, 3.0)), "A")
    assert found is not None
    assert found.lines["buried"] < 0.1
    assert found.after["B"].hits > found.before["B"].hits


def test_of_lines_with_equal_hits_those_with_the_least_regret_are_taken() -> None:
    # At 3 every recipe is a hit, and rows as they are have the highest mean.
    close = {"xavier": 37.0, "pretrained": 37.2, "pretrained_xavier": 37.0}
    cell = one(3.0, close)
    assert cell.best == "pretrained"
    assert outcome(cell, "pretrained_xavier").word == "hit"
    found = adjusted(
        [replace(trial, scores=cell.scores) if ", 3" in trial.name else trial for trial in cells(2.5)], "A"
    )
    assert found is not None
    assert found.before["A"].hits == found.after["A"].hits == 4
    assert 3 < found.lines["border"] < 9
    assert (found.after["B"].cost, (found.before["B"].cost or 0) > 0) == (0, True)


def test_every_division_of_the_ratios_is_tried() -> None:
    tried = [lines["ratio"] for lines in candidates(cells(border=2.5))]
    borders = {lines["border"] for lines in tried}
    assert len(borders) == 6  # below, between, above, and the shipped one
    assert {lines["buried"] for lines in tried} == {0.2}
    assert all(lines["buried"] < lines["aim"] < lines["border"] for lines in tried)
    assert all(lines["good"] <= lines["border"] for lines in tried)


def test_lines_of_classifiers_are_adjusted_by_their_own_cells() -> None:
    # At 9 rows do best as they are: the upper line of classifiers moves beyond it, those of translation stay.
    cell = of_classifier()
    kept = {**cell.scores, "pretrained": {seed: 50.0 + score for seed, score in cell.scores["pretrained"].items()}}
    found = adjusted([replace(cell, scores=kept, half=half) for half in "AB"], "A")
    assert found is not None
    assert found.lines["high"] > 9
    assert {name: found.lines[name] for name in ("buried", "border", "low")} == {
        "buried": 0.2, "border": 2.5, "low": 0.75
    }  # fmt: skip
    assert (found.before["B"].hits, found.after["B"].hits) == (0, 1)
