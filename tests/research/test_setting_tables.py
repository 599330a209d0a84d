"""Small tables: settings or places of a sweep on one side, initializations on the other."""

from __future__ import annotations

import math

import pytest

from embinit.reports.model import Part
from embinit.reports.summarize import summarize
from embinit.reports.writers.completed import completed_blocks
from embinit.reports.writers.markdown import table
from research.setting_tables import grid, loss_grid, paper_grid, sweep_grid
from tests.reports import made

TABLE3 = {
    (frozen, positions, recipe): level
    for frozen, positions, level in (("-1", "none", 29.0), ("-1", "sinusoidal", 34.0), ("0", "sinusoidal", 38.0))
    for recipe in ("xavier", "pretrained")
}
AXES = ("training.frozen_epochs", "model.positions", "recipe")


def swept(levels: dict[tuple[str, ...], float]) -> Part:
    block, found = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    return completed_blocks(summarize(made.experiment(block), found))[0].part


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
    small = sweep_grid(completed_blocks(summary)[0].part)
    assert small is not None
    assert [cell.strong for cell in small.rows[0]] == [False, False, True]


def test_settings_are_crossed_with_initializations_and_the_papers_stand_beside_ours() -> None:
    block, found = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    (one,) = completed_blocks(summarize(made.experiment(block), found))
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


def test_losses_are_the_lowest_of_each_run_with_the_epoch_that_was_scored() -> None:
    block, found = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    wanted = {"xavier": (1.96, 18), "pretrained": (1.96, 20)}
    for number, run in enumerate(block.runs):
        loss, epoch = wanted[run.axes[-1][1]]
        # Two runs of four are lower by as much as the others are higher.
        lowest = loss + (0.25 if number % 2 else -0.25) + (0.001 if run.axes[-1][1] == "pretrained" else 0.02)
        history = [{"valid loss": value} for value in (3.0, lowest, 2.9, None)]
        found[run.spec.key] = made.replace(found[run.spec.key], history=history, best_epoch=epoch)
    (part,) = summarize(made.experiment(block), found).parts
    losses = loss_grid(part)
    assert losses is not None
    assert losses.header == ("", "xavier, ours", "paper", "pretrained, ours", "paper")
    assert [[str(cell) for cell in cells] for cells in losses.rows] == [
        ["frozen · no positions", "1.98 (18.0)", "1.98 (18.67)", "1.96 (20.0)", "1.73 (18.00)"],
        ["frozen · sinusoidal positions", "1.98 (18.0)", "1.77 (20.00)", "1.96 (20.0)", "1.64 (19.67)"],
        ["trained · sinusoidal positions", "1.98 (18.0)", "1.61 (11.67)", "1.96 (20.0)", "1.62 (20.00)"],
    ]
    assert [cell.strong for cell in losses.rows[0]] == [False, False, False, True, False]


def test_a_run_that_was_not_scored_has_no_lowest_loss() -> None:
    block = made.block(seeds=range(2))
    found = made.results(block)
    lost = block.runs[1].spec
    found[lost.key] = made.result(lost, 0.0, diverged=True)
    kept = found[block.runs[0].spec.key]
    first = summarize(made.experiment(block), found).parts[0].rows[0]
    lowest = min(record["valid loss"] for record in kept.history if record["valid loss"] is not None)
    assert first.loss == pytest.approx(lowest, rel=1e-3)
    assert first.epoch == kept.best_epoch


def test_one_setting_needs_no_such_table() -> None:
    (part,) = summarize(made.experiment(made.block()), made.results(made.block())).parts
    assert grid(part) is None
    assert paper_grid(part) is None
    assert sweep_grid(part) is None
    assert loss_grid(part) is None


def test_a_row_that_is_alone_in_its_setting_is_the_best_of_nothing() -> None:
    cells = {(kind, "xavier"): level for kind, level in (("sinusoidal", 38.0), ("none", 30.0))}
    block, found = made.crossed(cells, ("model.positions", "recipe"))
    assert not any(row.best for row in summarize(made.experiment(block), found).parts[0].rows)
    both = {(kind, recipe): level for (kind, _), level in cells.items() for recipe in ("xavier", "pretrained")}
    block, found = made.crossed(both, ("model.positions", "recipe"))
    rows = summarize(made.experiment(block), found).parts[0].rows
    assert {row.setting for row in rows if row.best} == {row.setting for row in rows}
