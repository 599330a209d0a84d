"""What has been run is shown, and what has not is one line."""

from __future__ import annotations

import math

from embinit.experiments.runs.result import Result
from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from embinit.reports.writers.completed import MissingBlock, completed_blocks, completed_only, is_run, missing_blocks
from tests.reports import made

NONE = math.nan


def report(*, only: tuple[str, ...] = made.RECIPES, missing: str = "") -> Summary:
    block = made.block(missing=missing)
    found = {key: one for key, one in made.results(block).items() if one.spec.sides[0][1].recipe in only}
    return summarize(made.experiment(block), found)


def test_a_block_that_was_run_is_shown_whole() -> None:
    (one,) = completed_blocks(report())
    assert (one.place, len(one.part.rows), one.left) == (1, 4, ())
    assert missing_blocks(report()) == []


def test_a_block_without_runs_is_one_line_that_says_what_it_needs_or_how_many_runs() -> None:
    assert missing_blocks(report(only=(), missing="needs glove.840B.300d.txt")) == [
        MissingBlock("Multi30k, GloVe", "Not run: needs glove.840B.300d.txt.", lacks_files=True)
    ]
    assert missing_blocks(report(only=())) == [
        MissingBlock("Multi30k, GloVe", "Not run yet: 20 runs.", lacks_files=False)
    ]
    assert completed_blocks(report(only=())) == ()


def test_the_baselines_runs_alone_are_not_the_blocks() -> None:
    summary = report(only=("xavier",))
    assert completed_blocks(summary) == ()
    (missing,) = missing_blocks(summary)
    assert missing.reason.startswith("Not run yet: 15 runs, all but xavier 37.")
    # A block of one recipe has nothing else to run.
    alone = made.block(recipes=("xavier",))
    assert is_run(summarize(made.experiment(alone), made.results(alone)).parts[0])


def test_a_value_of_an_axis_that_has_no_run_is_said_once_and_its_rows_are_gone() -> None:
    levels = {
        (ratio, recipe): NONE if recipe == "pretrained_shuffled" else 37.0
        for ratio in ("0.1", "1", "9")
        for recipe in ("xavier", "pretrained", "pretrained_shuffled")
    }
    levels["9", "pretrained"] = NONE
    block, found = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    summary = summarize(made.experiment(block), found)
    (one,) = completed_blocks(summary)
    assert len(one.part.rows) == 5
    assert one.left == (
        "Not run yet: pretrained_shuffled (12 runs).",
        "Not run yet: pretrained · ratio 9 (4 runs).",
    )
    assert completed_only(summary).colors == {"xavier": 0, "pretrained": 1}
    assert "missing" in " ".join(summary.caveats)
    assert "missing" not in " ".join(completed_only(summary).caveats)


def test_many_rows_that_were_not_run_are_counted() -> None:
    recipes = ("xavier", "pretrained", "pretrained_xavier")
    levels = {(str(x), r): NONE if x > 1 and r == recipes[x % 2] else 37.0 for x in range(9) for r in recipes}
    block, found = made.crossed(levels, ("ratio", "recipe"), sweep="ratio")
    (left,) = completed_blocks(summarize(made.experiment(block), found))[0].left
    assert left.endswith("and 3 more rows (12 runs).")


def test_runs_that_left_no_score_are_runs() -> None:
    block = made.block(recipes=("xavier", "pretrained"))
    found: dict[str, Result] = made.results(block)
    for planned in block.runs:
        if planned.axes[0][1] == "pretrained":
            found[planned.spec.key] = made.result(planned.spec, 0.0, diverged=True)
    (one,) = completed_blocks(summarize(made.experiment(block), found))
    assert [row.label for row in one.part.rows] == ["xavier", "pretrained"]
