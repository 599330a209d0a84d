"""The summary of RESULTS.md: one line for each answer."""

from __future__ import annotations

import pytest

from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import BestPlaces, SizeChanges
from research.findings import findings
from research.overview import cost, is_open, section
from tests.reports import made
from tests.research.test_judging import NARROW, WIDE, trial_of

FALLING = {
    (x, r): y - (0 if r == "xavier" else float(x) / 10)
    for x, y in {"0.1": 38.0, "1": 36.0, "10": 30.0}.items()
    for r in ("xavier", "pretrained")
}


def swept(names: tuple[str, ...] = ("one",), file: str = "experiments/open/scale.toml") -> Summary:
    blocks, all_results = [], {}
    for number, name in enumerate(names):
        seeds = range(10 * number, 10 * number + 4)
        block, results = made.crossed(FALLING, ("ratio", "recipe"), seeds, name=name, sweep="ratio")
        blocks.append(block)
        all_results |= results
    return summarize(made.experiment(*blocks, name="scale", title="Which scale?"), all_results, file=file)


def table1(levels: dict[str, float] = made.LEVELS) -> Summary:
    block = made.block(seeds=range(8))
    missing = made.block("Multi30k, mT5", task="iwslt2017", missing="needs mt5-base")
    return summarize(
        made.experiment(block, missing, name="table1"),
        made.results(block, levels=levels),
        file="experiments/paper/table1.toml",
    )


def test_the_section_has_a_line_for_each_finding_each_open_question_and_the_advice() -> None:
    summaries = [table1(), swept()]
    lines = section(summaries, findings(summaries), [trial_of(9.0, WIDE)])
    text = "\n".join(lines)
    assert lines[0] == "## In short"
    assert sum(line.startswith("- ") for line in lines) == 1 + 3 + 1 + 1 + 1
    assert "- 56 runs kept the device (NVIDIA H200) busy for" in text
    assert "about 162 GPU-hours" in text
    assert "Its 2 tested claims: supported in 2 of 2 cases (against in 0)." in text
    assert "Largest in support: pretrained_xavier against pretrained +4." in text
    assert "**Finding 2: large rows hide the positions that are added to them.** Not tested." in text
    assert "**Which scale?** Best: " in text
    assert "xavier at 0.1 (38." in text or "xavier at 0.1 (37." in text
    assert "in 1 of 1 block" in text
    assert "Not run: 1 block needs files that are missing here." in text


def test_the_largest_case_against_a_finding_is_named() -> None:
    summaries = [table1({**made.LEVELS, "pretrained": 40.0})]
    text = "\n".join(section(summaries, findings(summaries), []))
    assert "Its 2 tested claims: supported in 0 of 2 cases (against in 2)." in text
    assert "Largest against: pretrained against xavier +2." in text
    assert "advice" not in text


def test_an_open_question_is_a_file_in_open_with_results() -> None:
    assert is_open(swept())
    assert not is_open(swept(file="experiments/paper/open.toml"))
    nothing = summarize(made.experiment(made.block(), title="Nothing yet?"), {}, file="experiments/open/x.toml")
    assert "Nothing yet?" not in "\n".join(section([nothing], findings([]), []))


def test_a_sweep_shows_the_cost_of_large_rows() -> None:
    size = swept().answer.verdicts[-1]
    assert isinstance(size, SizeChanges)
    assert (size.recipe, size.low, size.high) == ("xavier", 0.1, 10.0)
    (change,) = size.changes
    assert change.name == "one"
    assert change.change.mean == pytest.approx(-8, abs=0.5)


def test_several_sweeps_share_one_verdict() -> None:
    best, size = swept(("a", "b", "c", "d", "e", "f")).answer.verdicts
    assert isinstance(best, BestPlaces)
    assert [(optimum.block, optimum.x) for optimum in best.optima] == [(name, 0.1) for name in "abcdef"]
    assert isinstance(size, SizeChanges)
    assert [change.name for change in size.changes] == list("abcdef")


def test_runs_in_two_reports_are_counted_once() -> None:
    assert cost([table1(), table1()]).startswith("32 runs ")
    assert "in 1 of 2 blocks" in "\n".join(section([], findings([]), [trial_of(2.0, WIDE), trial_of(2.0, NARROW)]))
