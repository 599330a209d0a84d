"""The first lines: every answer in a line, from the results alone."""

from __future__ import annotations

import pytest

from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import BestPlaces, SizeChanges
from research.findings import findings
from research.overview import cost, is_open, section
from tests.reports import made
from tests.research.test_judging import NARROW, WIDE, one

FALLING = {
    (x, r): y - (0 if r == "xavier" else float(x) / 10)
    for x, y in {"0.1": 38.0, "1": 36.0, "10": 30.0}.items()
    for r in ("xavier", "pretrained")
}


def swept(names: tuple[str, ...] = ("one",), file: str = "experiments/open/scale.toml") -> Summary:
    blocks, found = [], {}
    for number, name in enumerate(names):
        seeds = range(10 * number, 10 * number + 4)
        block, results = made.crossed(FALLING, ("ratio", "recipe"), seeds, name=name, sweep="ratio")
        blocks.append(block)
        found |= results
    return summarize(made.experiment(*blocks, name="scale", title="Which scale?"), found, file=file)


def table1(levels: dict[str, float] = made.LEVELS) -> Summary:
    block = made.block(seeds=range(8))
    gone = made.block("Multi30k, mT5", task="iwslt2017", missing="needs mt5-base")
    return summarize(
        made.experiment(block, gone, name="table1"),
        made.results(block, levels=levels),
        file="experiments/paper/table1.toml",
    )


def test_the_section_has_a_line_for_each_finding_each_open_question_and_the_advice() -> None:
    summaries = [table1(), swept()]
    lines = section(summaries, findings(summaries), [one(9.0, WIDE)])
    said = "\n".join(lines)
    assert lines[0] == "## In short"
    assert sum(line.startswith("- ") for line in lines) == 1 + 3 + 1 + 1 + 1
    assert "- 56 runs kept the device (NVIDIA H200) busy for" in said
    assert "about 162 GPU-hours" in said
    assert "Its 2 tested claims: supported in 2 of 2 cases (against in 0)." in said
    assert "Largest in support: pretrained_xavier against pretrained +4." in said
    assert "**Finding 2: large rows hide the positions that are added to them.** Not tested." in said
    assert "**Which scale?** Best: " in said
    assert "xavier at 0.1 (38." in said or "xavier at 0.1 (37." in said
    assert "in 1 of 1 block" in said
    assert "Not run: 1 block needs files that are not at hand." in said


def test_what_contradicts_a_finding_is_named() -> None:
    summaries = [table1({**made.LEVELS, "pretrained": 40.0})]
    said = "\n".join(section(summaries, findings(summaries), []))
    assert "Its 2 tested claims: supported in 0 of 2 cases (against in 2)." in said
    assert "Largest against: pretrained against xavier +2." in said
    assert "advice" not in said


def test_an_open_question_is_a_file_in_open_that_has_results() -> None:
    assert is_open(swept())
    assert not is_open(swept(file="experiments/paper/open.toml"))
    nothing = summarize(made.experiment(made.block(), title="Nothing yet?"), {}, file="experiments/open/x.toml")
    assert "Nothing yet?" not in "\n".join(section([nothing], findings([]), []))


def test_a_sweep_says_what_large_rows_cost() -> None:
    found = swept().answer.verdicts[-1]
    assert isinstance(found, SizeChanges)
    assert (found.recipe, found.low, found.high) == ("xavier", 0.1, 10.0)
    (change,) = found.changes
    assert change.name == "one"
    assert change.change.mean == pytest.approx(-8, abs=0.5)


def test_several_sweeps_are_one_sentence() -> None:
    best, size = swept(("a", "b", "c", "d", "e", "f")).answer.verdicts
    assert isinstance(best, BestPlaces)
    assert [(one.block, one.x) for one in best.optima] == [(name, 0.1) for name in "abcdef"]
    assert isinstance(size, SizeChanges)
    assert [one.name for one in size.changes] == list("abcdef")


def test_runs_of_two_reports_are_counted_once() -> None:
    assert cost([table1(), table1()]).startswith("32 runs ")
    assert "in 1 of 2 blocks" in "\n".join(section([], findings([]), [one(2.0, WIDE), one(2.0, NARROW)]))
