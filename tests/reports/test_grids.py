"""Small tables: settings or places of a sweep on one side, initializations on the other."""

from __future__ import annotations

import math

from embinit.reports.grids import grid, paper_grid, sweep_grid
from embinit.reports.markdown import table
from embinit.reports.shown import shown
from embinit.reports.summary import summarize
from embinit.reports.types import Part
from tests.reports import made

TABLE3 = {
    (frozen, positions, recipe): level
    for frozen, positions, level in (("-1", "none", 29.0), ("-1", "sinusoidal", 34.0), ("0", "sinusoidal", 38.0))
    for recipe in ("xavier", "pretrained")
}
AXES = ("training.frozen_epochs", "model.positions", "recipe")


def swept(levels: dict[tuple[str, ...], float]) -> Part:
    block, found = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    return shown(summarize(made.experiment(block), found))[0].part


def test_a_sweep_has_a_line_for_each_start_and_a_column_for_each_place() -> None:
    falling = {"0.1": 38.0, "1": 36.0, "9": 30.0}
    made_of = {
        (x, r): y + (0.4 if r == "pretrained" else 0) for x, y in falling.items() for r in ("xavier", "pretrained")
    }
    made_of["9", "pretrained"] = math.nan
    found = sweep_grid(swept(made_of))
    assert found is not None
    assert found.header == ("", "0.1", "1", "9")
    assert [str(row[0]) for row in found.rows] == ["xavier", "pretrained"]
    first, second = found.rows
    assert " ± " in first[1].text
    assert [cell.strong for cell in first] == [False, True, False, False]
    assert second[3].text == "–"


def test_a_sweep_with_very_many_places_has_no_small_table() -> None:
    assert sweep_grid(swept({(str(x), "xavier"): 37.0 for x in range(1, 20)})) is None


def test_the_best_of_a_line_is_the_lowest_where_lower_is_better() -> None:
    block, found = made.crossed({(x, "xavier"): 37.0 for x in ("0.1", "1")}, ("ratio", "recipe"), sweep="ratio")
    losses = {"0.1": 1.5, "1": 1.2}
    found = {
        run.spec.key: made.replace(found[run.spec.key], scores={"test": {"valid loss": losses[run.axes[0][1]]}})
        for run in block.runs
    }
    summary = summarize(made.experiment(made.replace(block, score="valid loss")), found)
    small = sweep_grid(shown(summary)[0].part)
    assert small is not None
    assert [cell.strong for cell in small.rows[0]] == [False, False, True]


def test_settings_are_crossed_with_initializations_and_the_papers_stand_beside_ours() -> None:
    block, found = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    (one,) = shown(summarize(made.experiment(block), found))
    ours, theirs = grid(one.part), paper_grid(one.part)
    assert ours is not None
    assert theirs is not None
    assert ours.header == ("", "xavier", "pretrained")
    assert [str(row[0]) for row in ours.rows] == [
        "frozen · no positions",
        "frozen · sinusoidal positions",
        "trained · sinusoidal positions",
    ]
    assert theirs.header == ("", "xavier, ours", "paper", "pretrained, ours", "paper")
    assert [str(row[2]) for row in theirs.rows] == ["28.3 ± 0.1", "34.6 ± 0.5", "37.3 ± 0.4"]
    assert table(theirs).count("\n") == 4


def test_one_setting_needs_no_such_table() -> None:
    (part,) = summarize(made.experiment(made.block()), made.results(made.block())).parts
    assert grid(part) is None
    assert paper_grid(part) is None
    assert sweep_grid(part) is None
