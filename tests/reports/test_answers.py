"""The answer of a report: what is claimed, and what so few seeds cannot show."""

from __future__ import annotations

from tests.reports import made
from tests.reports.test_summarize import at, report


def test_the_answer_names_the_best_with_its_interval() -> None:
    summary = report(made.block(seeds=range(10)))
    assert summary.answer == "use pretrained_xavier: +1.4 BLEU over xavier, 95 % [1.2, 1.6], 10 seeds"


def test_few_seeds_are_said_with_the_answer() -> None:
    summary = report(made.block(seeds=range(3)))
    assert summary.answer.endswith("3 seeds, by the t test alone")
    assert any("p cannot fall below 0.25" in said for said in summary.caveats)


def test_no_difference_is_an_honest_no_with_what_could_have_been_seen() -> None:
    level = dict.fromkeys(made.RECIPES, 37.0)
    block = made.block(recipes=("xavier", "pretrained_xavier"), seeds=range(3))
    summary = report(block, results=made.results(block, levels=level))
    difference = summary.parts[0].rows[1].difference
    assert difference is not None
    assert difference.detectable is not None
    assert summary.answer == (
        "no initialization is better than xavier beyond noise; with 3 seeds a difference under "
        f"{difference.detectable:.2g} BLEU cannot be seen"
    )


def test_worse_rows_are_named_where_none_is_better() -> None:
    block = made.block(recipes=("xavier", "pretrained", "pretrained_shuffled"), seeds=range(6))
    assert report(block).answer == "stay with xavier: every other initialization is worse beyond noise"


def test_worse_rows_are_told_with_what_they_cost_where_others_are_level() -> None:
    levels = {"xavier": 37.0, "pretrained": 34.0, "pretrained_xavier": 37.0}
    block = made.block(recipes=tuple(levels), seeds=range(6))
    summary = report(block, results=made.results(block, levels=levels))
    found = summary.parts[0].rows[1].difference
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    said = f"{found.mean:.1f} BLEU [{found.low:.1f}, {found.high:.1f}]".replace("-", "−")
    assert f"better than xavier beyond noise, and pretrained ({said}) is worse; with 6 seeds" in summary.answer


def test_one_seed_claims_nothing() -> None:
    summary = report(made.block(seeds=range(1)))
    assert summary.answer == "one seed tells nothing from chance: run more to compare with xavier"
    assert all(one.difference is None or not one.difference.verdict for one in summary.parts[0].rows)


def test_nothing_run_is_said() -> None:
    assert report(made.block(), results={}).answer == "nothing has been run yet"


def test_equal_differences_leave_no_spread_and_no_claim() -> None:
    block, found = at({"xavier": [37.0, 37.0, 37.0], "pretrained": [38.0, 38.0, 38.0]}, 3)
    summary = report(block, results=found)
    assert not summary.parts[0].rows[1].difference.verdict  # type: ignore[union-attr]
    assert summary.answer.startswith("no initialization is better")


def test_several_blocks_are_counted() -> None:
    one, two = made.block(seeds=range(6)), made.block("SST-2", task="sst2", seeds=range(6))
    assert report(one, two).answer.startswith("pretrained_xavier is better than xavier in both comparisons; ")
