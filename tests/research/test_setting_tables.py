"""Small tables: settings against initializations, and the lines of a sweep against its places."""

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
    block, results = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    return completed_blocks(summarize(made.experiment(block), results))[0].part


def test_a_sweep_has_a_row_for_each_start_and_a_column_for_each_place() -> None:
    falling = {"0.1": 38.0, "1": 36.0, "9": 30.0}
    levels = {
        (x, r): y + (0.4 if r == "pretrained" else 0) for x, y in falling.items() for r in ("xavier", "pretrained")
    }
    levels["9", "pretrained"] = math.nan
    small = sweep_grid(swept(levels))
    assert small is not None
    assert small.header == ("", "0.1", "1", "9")
    assert [str(row[0]) for row in small.rows] == ["xavier", "pretrained"]
    first, second = small.rows
    assert " ± " in first[1].text
    assert [cell.strong for cell in first] == [False, True, False, False]
    assert second[3].text == "–"


def test_a_sweep_with_very_many_places_has_no_small_table() -> None:
    assert sweep_grid(swept({(str(x), "xavier"): 37.0 for x in range(1, 20)})) is None


def test_the_best_of_a_line_is_the_lowest_if_lower_is_better() -> None:
    block, results = made.crossed({(x, "xavier"): 37.0 for x in ("0.1", "1")}, ("ratio", "recipe"), sweep="ratio")
    losses = {"0.1": 1.5, "1": 1.2}
    results = {
        run.spec.key: made.replace(results[run.spec.key], scores={"test": {"valid loss": losses[run.axes[0][1]]}})
        for run in block.runs
    }
    summary = summarize(made.experiment(made.replace(block, score="valid loss")), results)
    small = sweep_grid(completed_blocks(summary)[0].part)
    assert small is not None
    assert [cell.strong for cell in small.rows[0]] == [False, False, True]


def test_settings_are_crossed_with_initializations_and_the_papers_numbers_are_beside_ours() -> None:
    block, results = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    (completed,) = completed_blocks(summarize(made.experiment(block), results))
    ours, theirs = grid(completed.part), paper_grid(completed.part)
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


def test_losses_are_means_of_the_lowest_of_each_run_with_the_scored_epoch() -> None:
    block, results = made.crossed(TABLE3, AXES, paper=("3", "multi30k", "glove"))
    targets = {"xavier": (1.96, 18), "pretrained": (1.96, 20)}
    for number, run in enumerate(block.runs):
        loss, epoch = targets[run.axes[-1][1]]
        # Half of the runs are lower by as much as the other half is higher.
        lowest = loss + (0.25 if number % 2 else -0.25) + (0.001 if run.axes[-1][1] == "pretrained" else 0.02)
        history = [{"valid loss": value} for value in (3.0, lowest, 2.9, None)]
        results[run.spec.key] = made.replace(results[run.spec.key], history=history, best_epoch=epoch)
    (part,) = summarize(made.experiment(block), results).parts
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
    results = made.results(block)
    lost = block.runs[1].spec
    results[lost.key] = made.result(lost, 0.0, diverged=True)
    kept = results[block.runs[0].spec.key]
    first = summarize(made.experiment(block), results).parts[0].rows[0]
    lowest = min(record["valid loss"] for record in kept.history if record["valid loss"] is not None)
    assert first.loss == pytest.approx(lowest, rel=1e-3)
    assert first.epoch == kept.best_epoch


def test_a_single_setting_has_no_small_table() -> None:
    (part,) = summarize(made.experiment(made.block()), made.results(made.block())).parts
    assert grid(part) is None
    assert paper_grid(part) is None
    assert sweep_grid(part) is None
    assert loss_grid(part) is None


def test_a_setting_with_a_single_row_has_no_best_row() -> None:
    cells = {(kind, "xavier"): level for kind, level in (("sinusoidal", 38.0), ("none", 30.0))}
    block, results = made.crossed(cells, ("model.positions", "recipe"))
    assert not any(row.best for row in summarize(made.experiment(block), results).parts[0].rows)
    both = {(kind, recipe): level for (kind, _), level in cells.items() for recipe in ("xavier", "pretrained")}
    block, results = made.crossed(both, ("model.positions", "recipe"))
    rows = summarize(made.experiment(block), results).parts[0].rows
    assert {row.setting for row in rows if row.best} == {row.setting for row in rows}
