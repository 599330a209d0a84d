"""Starts that are chosen on some seeds and judged on others."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from embinit import statistics
from embinit.experiments.experiment import Baseline, Block
from embinit.experiments.runs.result import Result
from embinit.reports.model import Summary
from embinit.reports.results_file import write_compact
from embinit.reports.results_reader import read_compact
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import AwaitedChoices, JudgedChoices, NamedStart, UseStart
from embinit.reports.writers.html import page
from embinit.reports.writers.markdown import markdown, table
from embinit.reports.writers.tables import selection_table
from research.results import experiment_page, short_document
from tests.reports import made

AXES = ("model.positions", "recipe")
BOTH = (Baseline("xavier"), Baseline("pretrained_xavier"))
Levels = dict[tuple[str, ...], float]


def levels(**of: float) -> Levels:
    """Return levels of recipes, half a point more with rotary positions."""
    known = {"xavier": 37.0, "pretrained_xavier": 37.2, **of}
    places = (("sinusoidal", 0.0), ("rotary", 0.5))
    return {(place, name): level + more for place, more in places for name, level in known.items()}


def pair(name: str, chosen: Levels, held: Levels, seeds: range = range(10)) -> tuple[list[Block], dict[str, Result]]:
    first, found = made.crossed(chosen, AXES, range(101, 104), name=f"{name}, chosen on")
    second, more = made.crossed(held, AXES, seeds, name=name)
    return [replace(first, chooses_for=name), second], found | more


def report(*pairs: tuple[list[Block], dict[str, Result]], against: tuple[Baseline, ...] = BOTH) -> Summary:
    blocks = [block for listed, _ in pairs for block in listed]
    results = {key: one for _, found in pairs for key, one in found.items()}
    return summarize(made.experiment(*blocks, against=against, name="both"), results, file="experiments/open/both.toml")


def test_the_highest_that_is_no_baseline_is_chosen_and_judged_on_other_seeds() -> None:
    ups = levels(wide=39.0, gentle=38.0)
    # On the held-out seeds the other one is better: it was not chosen.
    summary = report(pair("Multi30k", ups | {("rotary", "xavier"): 50.0}, levels(wide=39.0, gentle=45.0)))
    (one,) = summary.choices
    assert (one.block, one.label, one.seeds) == ("Multi30k", "wide · rotary positions", ("101", "102", "103"))
    held = next(row for row in summary.parts[1].rows if row.label == one.label)
    assert one.held_out == held.statistic
    assert [(found.baseline, found.mean) for found in one.differences] == [
        (found.baseline, found.mean) for found in held.differences
    ]
    assert one.complete
    assert one.verdict == "better"
    assert summary.answer.verdicts == (JudgedChoices((one,), BOTH),)


def test_a_start_with_an_unscored_run_is_not_chosen() -> None:
    blocks, results = pair("Multi30k", levels(wide=39.0, gentle=38.0), levels(wide=39.0, gentle=38.0))
    lost = next(run.spec for run in blocks[0].runs if run.axes[-1][1] == "wide" and run.axes[0][1] == "rotary")
    results[lost.key] = made.result(lost, 0.0, diverged=True)
    (choice,) = report((blocks, results)).choices
    assert choice.label == "wide · sinusoidal positions"


def test_holm_is_over_the_choices_alone() -> None:
    up = levels(wide=39.0)
    summary = report(pair("A", up, levels(wide=37.6)), pair("B", up, levels(wide=37.4), range(20, 30)))
    found = [one for choice in summary.choices for one in choice.differences]
    assert len(found) == 4
    expected = statistics.holm([one.t_p for one in found if one.t_p is not None])
    assert [one.holm_p for one in found] == pytest.approx(expected)


def test_blocks_that_choose_are_no_part_of_the_others_correction() -> None:
    alone, found = made.crossed(levels(wide=37.6), AXES, range(10), name="A")
    (whole,) = summarize(made.experiment(alone, against=BOTH), found).parts
    summary = report(pair("A", levels(wide=39.0), levels(wide=37.6)))
    assert [row.differences for row in summary.parts[1].rows] == [row.differences for row in whole.rows]


def test_several_choices_are_counted_and_named() -> None:
    good, bad = levels(wide=40.0), levels(wide=36.9)
    summary = report(pair("A", good, good), pair("B", good, bad, range(20, 30)), pair("C", good, good, range(30, 40)))
    assert summary.answer.verdicts == (JudgedChoices(summary.choices, BOTH),)
    assert [(one.block, one.label, one.verdict) for one in summary.choices] == [
        ("A", "wide · rotary positions", "better"),
        ("B", "wide · rotary positions", ""),
        ("C", "wide · rotary positions", "better"),
    ]


def test_what_is_not_run_is_no_choice_or_no_outcome() -> None:
    good = levels(wide=40.0)
    nothing = dict.fromkeys(good, math.nan)
    assert report(pair("A", nothing, good)).choices == ()
    (one,) = report(pair("A", good | {("rotary", "wide"): math.nan}, nothing)).choices
    assert (one.label, one.complete, one.held_out) == ("wide · sinusoidal positions", False, None)
    made_of = selection_table((one,))
    assert made_of is not None
    assert [str(cell) for cell in made_of.rows[0]][1::2] == [
        "wide · sinusoidal positions (so far)",
        "no run on other seeds",
        "–",
    ]
    assert selection_table(()) is None


def test_what_was_chosen_is_said_before_it_is_judged_but_not_before_all_were_run() -> None:
    pairs = [pair(name, levels(wide=39.0), levels(wide=39.0)) for name in ("a", "b")]
    first = [(blocks, {run.spec.key: found[run.spec.key] for run in blocks[0].runs}) for blocks, found in pairs]
    summary = report(*first)
    assert summary.answer.verdicts == (AwaitedChoices(summary.choices),)
    assert [(one.block, one.label) for one in summary.choices] == [
        ("a", "wide · rotary positions"),
        ("b", "wide · rotary positions"),
    ]
    lacking = [(blocks, dict(list(found.items())[:-1])) for blocks, found in first]
    assert not any(isinstance(one, AwaitedChoices) for one in report(*lacking).answer.verdicts)


def test_the_seeds_that_chose_do_not_judge() -> None:
    good = levels(wide=40.0)
    (one,) = report(pair("A", good, good, range(95, 105))).choices
    assert (one.held_out, one.differences) == (None, ())


def test_a_name_alone_chooses_for_nothing() -> None:
    block, found = made.crossed(levels(wide=40.0), AXES, range(10), name="A, chosen on")
    assert summarize(made.experiment(block, against=BOTH), found).choices == ()


def named(
    name: str, of: Levels, seeds: range = range(10), label: str = "wide"
) -> tuple[list[Block], dict[str, Result]]:
    block, found = made.crossed(of, AXES, seeds, name=name)
    return [replace(block, candidate=(("model.positions", "rotary"), ("recipe", label)))], found


def test_what_was_named_beforehand_is_judged_by_itself() -> None:
    # Another row is better: it was not named.
    summary = report(named("A", levels(wide=38.0, gentle=45.0)))
    (one,) = summary.choices
    assert (one.block, one.label, one.seeds, one.there) == ("A", "wide · rotary positions", (), None)
    row = next(row for row in summary.parts[0].rows if row.label == one.label)
    assert [found.mean for found in one.differences] == [found.mean for found in row.differences]
    expected = statistics.holm([found.t_p for found in row.differences if found.t_p is not None])
    assert [found.holm_p for found in one.differences] == pytest.approx(expected)
    assert one.verdict == "better"
    # It may be so by itself and not among all that was run; the block says both.
    first, second = summary.answer.verdicts
    assert first == NamedStart(one)
    assert isinstance(second, UseStart)
    assert second.best.start == "gentle · rotary positions"
    assert summary.answer == summary.parts[0].answer
    bad = report(named("A", levels(wide=36.0)))
    assert bad.answer.verdicts[0] == NamedStart(bad.choices[0])
    assert bad.choices[0].verdict == "worse"


def test_the_answer_is_about_the_chosen_first_and_then_about_the_named() -> None:
    good, bad = levels(wide=40.0), levels(wide=36.9)
    both = [pair("A", good, bad), pair("B", good, bad, range(20, 30))]
    summary = report(*both, named("C", good, range(30, 40)))
    assert summary.answer.verdicts[:2] == (
        JudgedChoices(summary.choices[:2], BOTH),
        JudgedChoices(summary.choices[2:], BOTH, second=True),
    )
    # Neither is a reason to correct the other.
    assert summary.choices[:2] == report(*both).choices
    assert summary.choices[2:] == report(named("C", good, range(30, 40))).choices
    alone = report(named("A", good), named("B", bad, range(20, 30)))
    assert alone.answer.verdicts == (JudgedChoices(alone.choices, BOTH),)
    assert "Named, then judged" in page(alone)
    assert "A start that was named beforehand" in page(alone)


def test_what_was_named_and_not_run_is_said() -> None:
    found = selection_table(report(named("A", dict.fromkeys(levels(wide=1.0), math.nan))).choices)
    assert found is not None
    assert [str(cell) for cell in found.rows[0]][:4] == [
        "A",
        "wide · rotary positions (named beforehand)",
        "–",
        "not run yet",
    ]
    assert found.caption == (
        "Named beforehand: in the file before the block was run; p is Holm's over the lines of this table alone"
    )


def test_small_files_keep_what_was_named(tmp_path: Path) -> None:
    blocks, results = named("A", levels(wide=40.0))
    experiment = made.experiment(*blocks, against=BOTH)
    path = tmp_path / "a.results.json"
    write_compact(experiment, results, path)
    assert read_compact(path).experiment.blocks[0].candidate == blocks[0].candidate


def test_results_have_a_line_for_each_difference_of_a_choice() -> None:
    good = levels(wide=40.0)
    summary = report(pair("Multi30k", good, good), pair("SST-2", good, levels(wide=36.0), range(20, 30)))
    said = experiment_page(summary)
    found = selection_table(summary.choices)
    assert found is not None
    assert len(found.rows) == 4
    assert table(found) in said
    assert table(found) in markdown(summary)
    assert "Chosen on seeds 101, 102 and 103, judged on others; p is Holm's over the lines of this table alone." in said
    assert f"- **Which start is best?** {summary.answer}" in short_document([summary])
    assert "Chosen, then judged" in page(summary)
    assert "Chosen, then judged" not in page(summarize(made.experiment(), made.results()))


def test_one_baseline_is_enough() -> None:
    good = levels(wide=40.0)
    summary = report(pair("A", good, good), against=())
    (one,) = summary.choices
    assert [found.baseline for found in one.differences] == ["xavier"]
    assert summary.answer.verdicts == (JudgedChoices((one,), (Baseline("xavier"),)),)
