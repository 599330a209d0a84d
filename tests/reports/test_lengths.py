"""Scores by length in reports: rows against their baseline, stretch by stretch, and what grows with length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from embinit.experiments.runs.length_buckets import LengthBucket
from embinit.experiments.runs.result import Result
from embinit.reports.analysis.lengths import length_effects, length_note, length_tables, scores_by_length
from embinit.reports.model import Part, Summary
from embinit.reports.results_file import write_compact
from embinit.reports.results_reader import read_compact
from embinit.reports.scores import LengthScores, ScoreName
from embinit.reports.summarize import summarize
from embinit.reports.writers.figures import figures, names
from embinit.reports.writers.html import page
from embinit.reports.writers.markdown import markdown
from research.results import experiment_page
from tests.reports import made

#: recipe -> how far below its score short and long sentences lie
LOSSES = {
    "xavier": (0.0, 5.0),
    "pretrained": (0.0, 15.0),
    "pretrained_xavier": (0.0, 5.0),
    "pretrained_shuffled": (1, 16),
}


def stretched(result: Result) -> Result:
    recipe, score = result.spec.sides[0][1].recipe, result.scores["test"]["bleu"]
    wobble = made.noise(recipe, result.spec.seed)
    short, long = (score - loss + wobble * sign for loss, sign in zip(LOSSES[recipe], (1, -1), strict=True))
    return replace(
        result, lengths={"test": {"bleu": {LengthBucket(0, 15, 700): short, LengthBucket(16, None, 300): long}}}
    )


def told(scored: bool = True) -> Summary:
    block = made.block()
    found = {key: stretched(one) if scored else one for key, one in made.results(block).items()}
    return summarize(made.experiment(block), found)


def part(summary: Summary) -> Part:
    return summary.parts[0]


def test_rows_are_held_against_their_baseline_by_the_seeds_that_both_have() -> None:
    (found,) = scores_by_length(part(told()).rows, "test")
    lines = {line.label: line for line in found.lines}
    assert found.buckets == ((0, 15, 700), (16, None, 300))
    assert lines["xavier"].base == "" and lines["pretrained"].base == "xavier"
    short, long = lines["pretrained"].points
    assert short is not None and long is not None and short.low is not None and short.high is not None
    assert short.mean == pytest.approx(-3.2, abs=0.5)
    assert long.mean == pytest.approx(-13.2, abs=0.5)
    assert short.low < short.mean < short.high
    rows = {row.label: row for row in part(told()).rows}
    ours, base = (rows[name].lengths[ScoreName("test", "bleu")][1].scores for name in ("pretrained", "xavier"))
    assert long.mean == pytest.approx(sum(ours[seed] - base[seed] for seed in base) / len(base))


def test_what_grows_with_length_is_said_and_nothing_else() -> None:
    effects = length_effects(part(told()).rows, "test")
    assert [one.label for one in effects] == ["pretrained", "pretrained_shuffled"]
    assert (str(effects[0].shortest), str(effects[0].longest)) == ("up to 15", "16 and more")
    assert effects[0].short.mean > effects[0].long.mean + 5
    note = length_note(part(told()).rows, "test")
    assert note.startswith(
        f"Length matters: pretrained on test −{-effects[0].short.mean:.1f} BLEU at up to 15 tokens, "
    )
    assert note in part(told()).notes


@pytest.mark.parametrize(("spread", "known"), [(1.0, False), (0.2, True)])
def test_length_matters_only_where_a_99_9_percent_interval_excludes_zero(spread: float, known: bool) -> None:
    base, row = part(told()).rows[:2]
    # Five paired changes with mean -1: t is 2.8 and 14.1 at 4 degrees of freedom, where 95 % needs 2.8 and 99.9 % needs 8.6.
    changes = [-1 + spread * step for step in (-0.5, -1, 0, 0.5, 1)]
    names = ScoreName("test", "bleu")
    flat = LengthScores(0, 15, 700, {str(seed): 30.0 for seed in range(5)})
    long = LengthScores(16, None, 300, {str(seed): 30.0 + change for seed, change in enumerate(changes)})
    rows = [
        replace(base, baseline=True, lengths={names: (flat, replace(long, scores=flat.scores))}),
        replace(row, lengths={names: (flat, long)}),
    ]
    (found,) = scores_by_length(rows, "test")
    growth = found.lines[1].growth
    assert growth is not None and growth.bounds is not None
    assert growth.mean == pytest.approx(-1)
    assert (growth.bounds[1] < 0) == known
    assert bool(length_effects(rows, "test")) == known


def test_runs_that_were_not_scored_so_say_nothing() -> None:
    silent = part(told(scored=False))
    assert scores_by_length(silent.rows, "test") == ()
    assert length_tables(silent) == []
    assert length_effects(silent.rows, "test") == ()
    assert length_note(silent.rows, "test") == ""
    assert names(told(scored=False)) == {1: ("made-1-curves.svg",)}


def test_a_row_of_which_some_seeds_were_not_scored_so_is_left_out() -> None:
    block = made.block()
    found = {
        key: one if (one.spec.seed, one.spec.sides[0][1].recipe) == (0, "pretrained") else stretched(one)
        for key, one in made.results(block).items()
    }
    (known,) = scores_by_length(part(summarize(made.experiment(block), found)).rows, "test")
    assert [line.label for line in known.lines] == ["xavier", "pretrained_xavier", "pretrained_shuffled"]


def test_every_writer_has_the_table() -> None:
    summary = told()
    (found,) = length_tables(part(summary))
    assert found.header == ("tokens", "up to 15", "16 and more")
    assert "700, 300 sentences" in found.caption and "differences from xavier with the same seeds" in found.caption
    for written in (markdown(summary), experiment_page(summary), page(summary)):
        assert "16 and more" in written
    assert "Length matters" in experiment_page(summary)


def test_a_picture_is_drawn_where_length_matters(tmp_path: Path) -> None:
    summary = told()
    assert names(summary) == {1: ("made-1-curves.svg", "made-1-lengths.svg")}
    drawn = figures(summary, tmp_path)
    assert [path.name for path in drawn] == ["made-1-curves.svg", "made-1-lengths.svg"]
    assert "BLEU against xavier" in drawn[1].read_text()
    pictures = {1: [path.name for path in drawn]}
    assert all(f"]({path.name})" in experiment_page(summary, pictures) for path in drawn)


def test_a_small_file_keeps_them(tmp_path: Path) -> None:
    block = made.block()
    found = {key: stretched(one) for key, one in made.results(block).items()}
    write_compact(made.experiment(block), found, tmp_path / "made.results.json")
    again = part(read_compact(tmp_path / "made.results.json").summary())
    (before,), (after,) = scores_by_length(part(told()).rows, "test"), scores_by_length(again.rows, "test")
    assert after.buckets == before.buckets
    for one, other in zip(before.lines, after.lines, strict=True):
        means = [[point.mean for point in line.points if point is not None] for line in (one, other)]
        assert means[1] == pytest.approx(means[0], abs=0.02)
