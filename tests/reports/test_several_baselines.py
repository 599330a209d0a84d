"""Several baselines: each row against each, in its own setting and in the one that is pinned."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest

from embinit import statistics
from embinit.experiments.experiment import Baseline
from embinit.reports.model import Summary
from embinit.reports.results_file import write_compact
from embinit.reports.results_reader import read_compact
from embinit.reports.scores import TableRow
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import (
    NoComparison,
    NoneBetter,
    OnlyBaselines,
    SettingDifferences,
    StartTallies,
    StartTally,
    UseStart,
)
from embinit.reports.writers import tables
from embinit.reports.writers.csv_table import spreadsheet
from embinit.reports.writers.html import page
from embinit.reports.writers.latex import latex
from embinit.reports.writers.markdown import markdown
from research.setting_tables import grid
from tests.reports import made

AXES = ("model.positions", "recipe")
BOTH = (Baseline("xavier"), Baseline("pretrained_xavier"))
PINNED = tuple(Baseline(one.recipe, (("model.positions", "sinusoidal"),)) for one in BOTH)
#: `wide` is better than both, also than the plain ones; `gentle` is so with rotary positions alone.
LEVELS = {
    ("sinusoidal", "xavier"): 37.0,
    ("sinusoidal", "pretrained_xavier"): 38.0,
    ("sinusoidal", "wide"): 37.5,
    ("sinusoidal", "gentle"): 35.0,
    ("rotary", "xavier"): 39.0,
    ("rotary", "pretrained_xavier"): 36.0,
    ("rotary", "wide"): 42.0,
    ("rotary", "gentle"): 37.5,
}


def report(
    levels: dict[tuple[str, str], float] | None = None,
    against: tuple[Baseline, ...] = (*BOTH, *PINNED),
    seeds: int = 10,
) -> Summary:
    block, found = made.crossed({**LEVELS, **(levels or {})}, AXES, range(seeds), name="Multi30k")
    return summarize(made.experiment(block, against=against), found)


def row(summary: Summary, label: str) -> TableRow:
    return next(one for one in summary.parts[0].rows if one.label == label)


def verdict(summary: Summary) -> object:
    """Return the only verdict of a report."""
    (one,) = summary.answer.verdicts
    return one


def compared(summary: Summary) -> dict[str, list[str]]:
    return {one.label: [found.baseline for found in one.differences] for one in summary.parts[0].rows}


def test_each_row_is_compared_with_each_baseline_once() -> None:
    assert compared(report()) == {
        "xavier · sinusoidal positions": [],
        "pretrained_xavier · sinusoidal positions": ["xavier"],
        "wide · sinusoidal positions": ["xavier", "pretrained_xavier"],
        "gentle · sinusoidal positions": ["xavier", "pretrained_xavier"],
        "xavier · rotary positions": ["xavier · sinusoidal positions", "pretrained_xavier · sinusoidal positions"],
        "pretrained_xavier · rotary positions": [
            "xavier",
            "xavier · sinusoidal positions",
            "pretrained_xavier · sinusoidal positions",
        ],
        **{
            f"{name} · rotary positions": [
                "xavier",
                "pretrained_xavier",
                "xavier · sinusoidal positions",
                "pretrained_xavier · sinusoidal positions",
            ]
            for name in ("wide", "gentle")
        },
    }


def test_a_pinned_baseline_alone_is_that_of_every_setting() -> None:
    summary = report(against=PINNED[:1])
    found = compared(summary)
    assert found["xavier · sinusoidal positions"] == []
    assert found["wide · sinusoidal positions"] == ["xavier"]
    assert found["xavier · rotary positions"] == ["xavier · sinusoidal positions"]
    assert [one.label for one in summary.parts[0].rows if one.baseline] == ["xavier · sinusoidal positions"]


def test_the_same_rows_in_a_pinned_setting_are_a_baseline_of_each_row() -> None:
    same = Baseline("same", (("model.positions", "sinusoidal"),))
    summary = report(against=(Baseline("xavier"), same))
    found = compared(summary)
    assert found["xavier · sinusoidal positions"] == []
    assert found["wide · sinusoidal positions"] == ["xavier"]
    assert found["xavier · rotary positions"] == ["xavier · sinusoidal positions"]
    assert found["wide · rotary positions"] == ["xavier", "wide · sinusoidal positions"]
    wide, own = row(summary, "wide · rotary positions"), row(summary, "wide · sinusoidal positions")
    assert wide.differences[1].mean == pytest.approx(
        sum(wide.scores[seed] - own.scores[seed] for seed in own.scores) / 10
    )
    assert wide.verdict == "better"
    # The same rows elsewhere may still be the answer.
    assert [one.label for one in summary.parts[0].rows if one.baseline] == [
        "xavier · sinusoidal positions",
        "xavier · rotary positions",
    ]
    best = verdict(report({("sinusoidal", "wide"): 45.0}, against=(Baseline("xavier"), same)))
    assert isinstance(best, UseStart)
    assert best.best.start == "wide · sinusoidal positions"
    none = verdict(report(dict.fromkeys(LEVELS, 37.0), against=(Baseline("xavier"), same)))
    assert isinstance(none, NoneBetter)
    assert none.baselines == (Baseline("xavier"), same)


def test_a_pin_on_an_axis_that_the_block_has_not_is_no_matter() -> None:
    pinned = Baseline("pretrained", (("model.positions", "sinusoidal"),))
    block = made.block(seeds=range(10))
    (part,) = summarize(made.experiment(block, against=(Baseline("xavier"), pinned)), made.results(block)).parts
    assert {one.label: [found.baseline for found in one.differences] for one in part.rows} == {
        "xavier": [],
        "pretrained": ["xavier"],
        "pretrained_xavier": ["xavier", "pretrained"],
        "pretrained_shuffled": ["xavier", "pretrained"],
    }


def test_differences_are_paired_with_the_pinned_row() -> None:
    summary = report()
    wide, plain = row(summary, "wide · rotary positions"), row(summary, "pretrained_xavier · sinusoidal positions")
    apart = [wide.scores[seed] - plain.scores[seed] for seed in wide.scores]
    assert wide.differences[3].mean == pytest.approx(sum(apart) / 10)
    low, high = wide.differences[3].low, wide.differences[3].high
    assert low is not None
    assert high is not None
    assert low < wide.differences[3].mean < high


def test_holm_is_over_all_differences() -> None:
    found = [one for each in report().parts[0].rows for one in each.differences]
    assert len(found) == 1 + 4 + 2 + 3 + 8
    expected = statistics.holm([one.t_p for one in found if one.t_p is not None])
    assert [one.holm_p for one in found] == pytest.approx(expected)


def test_a_row_is_better_only_where_it_is_better_than_all() -> None:
    summary = report()
    assert row(summary, "wide · rotary positions").verdict == "better"
    half = row(summary, "wide · sinusoidal positions")
    assert {one.verdict for one in half.differences} == {"better", "worse"}
    assert half.verdict == half.mark == ""
    assert row(summary, "gentle · sinusoidal positions").verdict == "worse"
    small = grid(summary.parts[0])
    assert small is not None
    assert [cell.after for cell in small.rows[0]] == ["", "", "***", "", "***"]


def test_the_answer_names_the_start_and_its_difference_to_each() -> None:
    summary = report()
    found = verdict(summary)
    assert isinstance(found, UseStart)
    assert found.best.start == "wide · rotary positions"
    assert found.best.differences == row(summary, found.best.start).differences
    assert (len(found.best.differences), found.seeds) == (4, 10)


def test_where_none_is_better_than_all_the_nearest_is_named() -> None:
    found = verdict(report({("rotary", "wide"): 38.5}))
    assert isinstance(found, NoneBetter)
    assert found.baselines == (*BOTH, *PINNED)
    assert found.nearest is not None
    assert found.nearest.start == "wide · rotary positions"
    assert -1 < found.nearest.differences[0].mean < 0
    assert (found.worse, found.detectable, found.lacking) == ((), None, ())


def test_what_a_baseline_lacks_is_no_claim() -> None:
    summary = report({("sinusoidal", "pretrained_xavier"): math.nan})
    wide = row(summary, "wide · rotary positions")
    assert {one.verdict for one in wide.differences} == {"better"}
    assert wide.lacking == ("pretrained_xavier · sinusoidal positions",)
    assert wide.verdict == wide.mark == ""
    found = verdict(summary)
    assert isinstance(found, NoneBetter)
    assert found.lacking == ("pretrained_xavier", "pretrained_xavier · sinusoidal positions")


def test_one_seed_claims_nothing() -> None:
    assert verdict(report(seeds=1)) == NoComparison("one seed", (*BOTH, *PINNED))


def test_one_start_in_several_settings_is_told_against_the_pinned_one() -> None:
    levels = {("sinusoidal", "xavier"): 37.0, ("rotary", "xavier"): 39.0}
    block, found = made.crossed(levels, AXES, range(10), name="Multi30k")
    against = (Baseline("xavier"), Baseline("xavier", (("model.positions", "sinusoidal"),)))
    settings = verdict(summarize(made.experiment(block, against=against), found))
    assert isinstance(settings, SettingDifferences)
    assert [(one.start, [each.baseline for each in one.differences]) for one in settings.starts] == [
        ("xavier · rotary positions", ["xavier · sinusoidal positions"])
    ]
    alone, found = made.crossed(levels, AXES, range(1), name="Multi30k")
    assert isinstance(verdict(summarize(made.experiment(alone, against=against), found)), OnlyBaselines)


def test_blocks_are_counted() -> None:
    one, found = made.crossed(LEVELS, AXES, range(10), name="Multi30k")
    other, more = made.crossed({**LEVELS, ("rotary", "wide"): 30.0}, AXES, range(20, 30), name="Tatoeba")
    counted = verdict(summarize(made.experiment(one, other, against=BOTH), found | more))
    assert isinstance(counted, StartTallies)
    assert (counted.baselines, counted.unit, counted.blocks) == (BOTH, "block", 2)
    assert counted.tallies[0] == StartTally("wide · rotary positions", 1, 1, 2)
    other, more = made.crossed({**LEVELS, ("rotary", "wide"): 30.0}, AXES, range(10), name="Tatoeba")
    twice = verdict(summarize(made.experiment(other, made.replace(other, name="again"), against=BOTH), more))
    assert isinstance(twice, StartTallies)
    assert (twice.blocks, {tally.better for tally in twice.tallies}) == (2, {0})
    alone = verdict(summarize(made.experiment(other, made.block("baselines alone"), against=BOTH), more))
    assert isinstance(alone, StartTallies)
    assert alone.blocks == 1


def test_every_writer_has_a_line_for_each_difference() -> None:
    summary = report()
    found = tables.block_table(summary.parts[0])
    assert found.header == ("start", "BLEU", "95 %", "against", "difference", "p (Holm)", "validation loss")
    assert len(found.rows) == 1 + 1 + 2 + 2 + 2 + 3 + 4 + 4
    assert [str(one) for one in found.rows[0][3:5]] == ["–", "baseline"]
    last = [[str(cell) for cell in cells] for cells in found.rows[-4:]]
    assert [cells[0] for cells in last] == ["gentle · rotary positions", "", "", ""]
    assert last[3][3] == "pretrained_xavier · sinusoidal positions"
    assert f"| {last[3][3]} |" in markdown(summary)
    assert "pretrained\\_xavier $\\cdot$ sinusoidal positions" in latex(summary)
    lines = list(csv.DictReader(io.StringIO(spreadsheet(summary))))
    wide = [line for line in lines if line["row"] == "wide · rotary positions"]
    assert [line["against"] for line in wide] == compared(summary)["wide · rotary positions"]
    assert len({line["difference"] for line in wide}) == 4
    drawn = page(summary)
    assert drawn.count("<circle cx=") == 18
    assert ">against</th>" in drawn


def test_one_baseline_has_the_table_that_it_had() -> None:
    (part,) = report(against=()).parts
    assert tables.block_table(part).header == (
        "start",
        "BLEU",
        "95 %",
        "against xavier",
        "p (Holm)",
        "validation loss",
    )
    assert len(tables.block_table(part).rows) == 8


def test_a_small_file_keeps_the_baselines(tmp_path: Path) -> None:
    block, found = made.crossed(LEVELS, AXES, range(10))
    asked = made.experiment(block, against=(*BOTH, *PINNED))
    write_compact(asked, found, tmp_path / "x.json")
    again = read_compact(tmp_path / "x.json")
    assert again.experiment.baselines == asked.baselines
    assert again.summary().answer == summarize(asked, found).answer
