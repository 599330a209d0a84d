"""The cost of size: changes from one end of a sweep to the other, paired by seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embinit.reports.analysis.size_costs import size_changes, size_costs, size_table
from embinit.reports.model import Part, Summary
from embinit.reports.summarize import summarize
from embinit.reports.writers.html import page
from embinit.reports.writers.markdown import markdown
from research.results import experiment_page
from tests.reports import made

#: positions -> what rows of 0.1, 1 and 10 reach; meaning adds 1 at 10
LEVELS = {"sinusoidal": (38.0, 36.0, 28.0), "rotary": (38.0, 38.0, 36.0)}
PLACES = ("0.1", "1", "10")


def kinds(levels: dict[str, tuple[float, ...]] = LEVELS, seeds: range = range(3)) -> Summary:
    cells = {
        (kind, place, recipe): level + (recipe == "pretrained" and place == "10")
        for kind, line in levels.items()
        for place, level in zip(PLACES, line, strict=False)
        for recipe in ("xavier", "pretrained")
    }
    block, found = made.crossed(cells, ("model.positions", "ratio", "recipe"), seeds, sweep="ratio")
    return summarize(made.experiment(block, name="positions"), found, file="experiments/open/positions.toml")


def part(summary: Summary) -> Part:
    return summary.parts[0]


def test_each_line_has_its_change_and_that_against_the_first_of_the_same_rows() -> None:
    found = {one.line: one for one in size_costs(part(kinds()))}
    assert list(found) == [
        "sinusoidal positions · xavier", "sinusoidal positions · pretrained", "rotary positions · xavier",
        "rotary positions · pretrained",
    ]  # fmt: skip
    assert [one.change.mean for one in found.values()] == pytest.approx([-10, -9, -2, -1], abs=0.6)
    first, second, third, fourth = found.values()
    assert first.beside is None and second.beside is None
    assert third.beside is not None and fourth.beside is not None
    assert third.beside.mean == pytest.approx(third.change.mean - first.change.mean)
    assert fourth.beside.mean == pytest.approx(fourth.change.mean - second.change.mean)
    assert third.beside.low is not None and third.beside.low > 5


def test_lines_that_differ_by_their_rows_alone_are_held_against_the_first() -> None:
    found = size_costs(part(kinds({"sinusoidal": LEVELS["sinusoidal"]})))
    assert [one.series for one in found] == ["xavier", "pretrained"]
    assert found[1].beside is not None
    assert found[1].beside.mean == pytest.approx(found[1].change.mean - found[0].change.mean)
    table = size_table(part(kinds({"sinusoidal": LEVELS["sinusoidal"]})))
    assert table is not None
    assert table.header == ("", "from 0.1 to 10", "against xavier")


def test_the_intervals_have_one_sigma() -> None:
    widths = {
        round(one.change.high - one.change.low, 9) for one in size_costs(part(kinds())) if one.change.low is not None
    }  # type: ignore[operator]
    assert len(widths) == 1


def test_one_seed_has_no_interval() -> None:
    summary = kinds(seeds=range(1))
    assert all(one.change.low is None for one in size_costs(part(summary)))
    assert all(one.change.low is None for each in size_changes(summary.parts, "xavier") for one in each.changes)


def test_a_line_without_an_end_is_left_out() -> None:
    short = kinds({**LEVELS, "rotary": LEVELS["rotary"][:2]})
    assert all("rotary" not in one.line for one in size_costs(part(short)))


def test_a_sweep_over_something_else_says_nothing_of_size() -> None:
    block, found = made.crossed(
        {(x, "xavier"): 37.0 for x in ("1", "3")}, ("model.layers", "recipe"), sweep="model.layers"
    )
    other = summarize(made.experiment(block), found)
    assert part(other).sweep is not None
    assert size_costs(part(other)) == []
    assert size_table(part(other)) is None
    assert size_changes(other.parts, "xavier") == ()


def test_a_line_that_stands_in_two_blocks_is_said_once() -> None:
    summary = kinds()
    (found,) = size_changes([*summary.parts, *summary.parts], "xavier")
    assert (found.recipe, found.low, found.high) == ("xavier", 0.1, 10.0)
    assert [one.name for one in found.changes] == ["sinusoidal positions", "rotary positions"]
    assert all(one.change.method == "pooled" for one in found.changes)


def test_lines_of_one_name_in_several_blocks_are_told_apart_by_these() -> None:
    german, czech = part(kinds()), part(kinds({"sinusoidal": (37.0, 34.0, 24.0), "none": (29.0, 28.0, 25.0)}))
    (found,) = size_changes([replace(german, name="German"), replace(czech, name="Czech")], "xavier")
    assert [one.name for one in found.changes] == [
        "German, sinusoidal positions",
        "rotary positions",
        "Czech, sinusoidal positions",
        "no positions",
    ]


def test_reports_show_it() -> None:
    summary = kinds()
    assert "against sinusoidal positions |" in experiment_page(summary)
    assert "against sinusoidal positions |" in markdown(summary)
    assert "The cost of size" in page(summary)
