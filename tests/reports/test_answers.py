"""The verdicts of a report: what is claimed, and what few seeds cannot show."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from embinit.experiments.experiment import Baseline, Block
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Task
from embinit.reports.analysis.answers import is_beaten
from embinit.reports.analysis.chance import nothing_learned
from embinit.reports.analysis.samples import SplitTexts
from embinit.reports.model import Summary
from embinit.reports.scores import ScoreName
from embinit.reports.sentences import NAMED
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import (
    InBlock,
    NoComparison,
    NoneBetter,
    NothingLearned,
    NothingYet,
    OnlyBaselines,
    RunsNotLearned,
    StartNotLearned,
    StartTallies,
    StartTally,
    UseStart,
)
from embinit.statistics import mean_interval
from tests.reports import made
from tests.reports.test_summarize import at, report

XAVIER = (Baseline("xavier"),)


def verdict(summary: Summary) -> object:
    """Return the only verdict of a report."""
    (one,) = summary.answer.verdicts
    return one


def test_the_best_start_is_named_with_its_difference() -> None:
    summary = report(made.block(seeds=range(10)))
    found = verdict(summary)
    assert isinstance(found, UseStart)
    best = next(row for row in summary.parts[0].rows if row.label == "pretrained_xavier")
    assert (found.best.start, found.best.differences) == ("pretrained_xavier", best.differences)
    assert (found.equal, found.seeds, found.by_t_test_alone) == ((), 10, False)


def test_with_few_seeds_the_t_test_alone_shows_it() -> None:
    summary = report(made.block(seeds=range(3)))
    found = verdict(summary)
    assert isinstance(found, UseStart)
    assert (found.seeds, found.by_t_test_alone) == (3, True)
    assert any("p cannot fall below 0.25" in caveat for caveat in summary.caveats)


def test_without_a_difference_the_verdict_says_what_could_have_been_seen() -> None:
    block = made.block(recipes=("xavier", "pretrained_xavier"), seeds=range(3))
    summary = report(block, results=made.results(block, levels=dict.fromkeys(made.RECIPES, 37.0)))
    found, row = verdict(summary), summary.parts[0].rows[1]
    assert isinstance(found, NoneBetter)
    assert row.difference is not None
    assert (found.worse, found.all_worse, found.seeds) == ((), False, 3)
    assert found.detectable == row.difference.detectable is not None


def test_differences_that_agree_by_chance_do_not_promise_a_fine_test() -> None:
    scores = {"xavier": [37.0, 37.3, 36.8], "noisy": [36.2, 37.9, 35.9], "agreeing": [37.001, 37.302, 36.8]}
    block, results = at(scores, 3)
    summary = report(block, results=results)
    found = verdict(summary)
    noisy, agreeing = (row.differences[0].detectable for row in summary.parts[0].rows[1:])
    assert isinstance(found, NoneBetter)
    assert noisy is not None
    assert agreeing is not None
    assert agreeing < 0.01
    assert found.detectable == pytest.approx(((noisy**2 + agreeing**2) / 2) ** 0.5)


def test_the_limit_is_that_of_a_start_that_is_not_worse_and_of_its_seeds() -> None:
    scores = {"xavier": [37.0, 37.3, 36.8], "seen": [35.0, 35.4, 34.7], "unsure": [33.0, 35.9]}
    block, results = at(scores, 3)
    summary = report(block, results=results)
    found, (_, seen, unsure) = verdict(summary), summary.parts[0].rows
    assert isinstance(found, NoneBetter)
    assert (seen.verdict, unsure.verdict) == ("worse", "")
    assert (found.limited, found.seeds, found.detectable) == ("unsure", 2, unsure.differences[0].detectable)


def test_starts_with_other_numbers_of_seeds_have_other_limits() -> None:
    scores = {"xavier": [37.0, 37.3, 36.8], "close": [36.9, 37.4, 36.9], "unsure": [33.0, 37.9]}
    block, results = at(scores, 3)
    summary = report(block, results=results)
    found, close = verdict(summary), summary.parts[0].rows[1]
    assert isinstance(found, NoneBetter)
    assert (found.limited, found.seeds, found.detectable) == ("close", 3, close.differences[0].detectable)


def test_each_number_of_seeds_that_gets_no_mark_is_named() -> None:
    block, results = at({"xavier": [37.0, 37.3, 36.8], "a": [35.0, 35.4, 34.7], "b": [33.0, 35.9]}, 3)
    caveats = report(block, results=results).caveats
    assert any("With 2 and 3 seeds" in caveat and "cannot fall below 0.5 and 0.25" in caveat for caveat in caveats)


def test_if_every_start_is_worse_the_baseline_stays() -> None:
    found = verdict(report(made.block(recipes=("xavier", "pretrained", "pretrained_shuffled"), seeds=range(6))))
    assert isinstance(found, NoneBetter)
    assert found.all_worse
    assert found.detectable is None


def test_worse_starts_are_named_with_their_cost_if_others_are_level() -> None:
    levels = {"xavier": 37.0, "pretrained": 34.0, "pretrained_xavier": 37.0}
    block = made.block(recipes=tuple(levels), seeds=range(6))
    summary = report(block, results=made.results(block, levels=levels))
    found = verdict(summary)
    assert isinstance(found, NoneBetter)
    assert [(one.start, one.differences) for one in found.worse] == [
        ("pretrained", summary.parts[0].rows[1].differences)
    ]
    assert not found.all_worse


def test_starts_that_are_as_good_are_named_up_to_a_limit() -> None:
    noise = [0.0, 0.3, -0.2, 0.1, -0.1, 0.2]
    good = {f"start-{number}": [39.0 + number / 100 + shift for shift in noise] for number in range(NAMED + 3)}
    scores = {"xavier": [37.0 + shift / 2 for shift in noise], **good}
    block, results = at(scores, len(noise))
    found = verdict(report(block, results=results))
    assert isinstance(found, UseStart)
    assert found.best.start == f"start-{NAMED + 2}"
    beaten = {row.label for row in report(block, results=results).parts[0].rows if row.verdict != "better"}
    assert beaten == {"xavier"}
    assert len(found.equal) <= NAMED


def test_a_start_on_other_seeds_is_not_beaten() -> None:
    (part,) = report(made.block(recipes=("xavier", "pretrained", "pretrained_xavier"), seeds=range(6))).parts
    worse, best = part.rows[1:]
    assert is_beaten(best, worse, part.metric)
    elsewhere = replace(worse, scores={str(int(seed) + 100): score for seed, score in worse.scores.items()})
    assert not is_beaten(best, elsewhere, part.metric)


def test_a_start_with_one_seed_does_not_silence_the_others() -> None:
    block = made.block(recipes=("xavier", "pretrained", "pretrained_xavier"), seeds=range(8))
    results = made.results(block)
    for planned in block.runs:
        if planned.axes[0][1] == "pretrained" and planned.spec.seed > 0:
            del results[planned.spec.key]
    found = verdict(report(block, results=results))
    assert isinstance(found, UseStart)
    assert found.best.start == "pretrained_xavier"


def test_one_seed_claims_nothing() -> None:
    summary = report(made.block(seeds=range(1)))
    assert verdict(summary) == NoComparison("one seed", XAVIER)
    assert all(one.difference is None or not one.difference.verdict for one in summary.parts[0].rows)


def test_nothing_run_is_said() -> None:
    assert verdict(report(made.block(), results={})) == NothingYet("runs")


def test_baselines_alone_and_starts_on_other_seeds_are_not_compared() -> None:
    block = made.block(recipes=("xavier", "pretrained"), seeds=range(4))
    found = made.results(block)
    only = {key: one for key, one in found.items() if one.spec.sides[0][1].recipe == "xavier"}
    alone = verdict(report(block, results=only))
    assert isinstance(alone, OnlyBaselines)
    assert [name for name, _ in alone.means] == ["xavier"]
    half = {key: one for key, one in found.items() if (one.spec.sides[0][1].recipe == "xavier") == (one.spec.seed < 2)}
    assert verdict(report(block, results=half)) == NoComparison("no shared seed", XAVIER)
    others = {key: one for key, one in found.items() if key not in only}
    assert verdict(report(block, results=others)) == NoComparison("no baseline run", XAVIER)


def test_equal_differences_leave_no_spread_and_no_claim() -> None:
    block, found = at({"xavier": [37.0, 37.0, 37.0], "pretrained": [38.0, 38.0, 38.0]}, 3)
    summary = report(block, results=found)
    assert not summary.parts[0].rows[1].difference.verdict  # type: ignore[union-attr]
    assert isinstance(verdict(summary), NoneBetter)


def test_several_blocks_are_counted() -> None:
    one, two = made.block(seeds=range(6)), made.block("SST-2", task="sst2", seeds=range(6))
    found = verdict(report(one, two))
    assert isinstance(found, StartTallies)
    assert (found.unit, found.blocks) == ("comparison", 2)
    assert found.tallies[0] == StartTally("pretrained_xavier", 2, 0, 2)
    assert {tally.start: tally.worse for tally in found.tallies[1:]} == {"pretrained": 2, "pretrained_shuffled": 2}


def test_the_json_of_a_report_has_the_kinds_of_its_verdicts() -> None:
    content = report(made.block(seeds=range(10))).as_json()
    assert content["answer"] == content["parts"][0]["answer"]
    (found,) = content["verdicts"]
    assert found["kind"] == "UseStart"
    assert found["best"]["start"] == "pretrained_xavier"


# ---------------------------------------------------------------- nothing learned


def classified(accuracy: float, matthews: float | None, seeds: int = 5) -> tuple[Block, dict[str, Result]]:
    """Return a block of a classifier with these scores, half a point of noise on each."""
    block = made.block("SST-2", recipes=("xavier", "pretrained"), task="sst2", seeds=range(seeds))
    found = {}
    for planned in block.runs:
        noise = made.noise(planned.axes[0][1], planned.spec.seed) / 100
        scores = {"accuracy": accuracy + noise}
        if matthews is not None:
            scores["matthews"] = matthews + noise
        found[planned.spec.key] = replace(made.result(planned.spec, accuracy), scores={block.split: scores})
    return block, found


def test_a_translator_below_one_bleu_has_learned_nothing() -> None:
    block = made.block(recipes=("xavier", "pretrained"), seeds=range(6))
    nothing = verdict(report(block, results=made.results(block, levels=dict.fromkeys(made.RECIPES, 0.4))))
    assert isinstance(nothing, NothingLearned)
    assert (nothing.by, nothing.chance) == ("bleu", 1.0)
    one = report(block, results=made.results(block, levels={"xavier": 0.4, "pretrained": 2.0}))
    assert isinstance(verdict(one), UseStart)


def test_a_classifier_without_correlation_has_learned_nothing() -> None:
    nothing = verdict(report(classified(0.7, 0.0)[0], results=classified(0.7, 0.0)[1]))
    assert isinstance(nothing, NothingLearned)
    assert nothing.by == "matthews"
    block, found = classified(0.7, 0.05)
    assert not isinstance(verdict(report(block, results=found)), NothingLearned)


@pytest.mark.parametrize(("accuracy", "learned"), [(0.75, False), (0.80, True)])
def test_without_matthews_the_largest_class_is_chance(accuracy: float, learned: bool) -> None:
    block, found = classified(accuracy, None)
    labels = ["yes"] * 3 + ["no"]

    def texts(*_: object) -> SplitTexts:
        return SplitTexts(["text"] * 4, labels)

    summary = summarize(made.experiment(block), found, texts=texts)
    assert isinstance(verdict(summary), NothingLearned) != learned
    unknown = summarize(made.experiment(block), found)
    assert isinstance(verdict(unknown), NoneBetter)


def language_models(levels: dict[str, list[float]]) -> tuple[Block, dict[str, Result]]:
    """Return a block of language models with these losses on test; the vocabulary has 7,853 tokens (a loss of 8.97)."""
    block, results = at(levels, 3)
    runs = tuple(
        replace(one, spec=replace(one.spec, task=Task("text", kind="language_model"), sides=one.spec.sides[:1]))
        for one in block.runs
    )
    found = {}
    for old, new in zip(block.runs, runs, strict=True):
        loss = levels[old.axes[0][1]][old.spec.seed]
        scores = {"test": {"perplexity": math.exp(loss), "loss": loss}}
        found[new.spec.key] = replace(results[old.spec.key], spec=new.spec, scores=scores)
    return replace(block, runs=runs, score="perplexity"), found


def test_language_models_above_a_uniform_guess_did_not_learn() -> None:
    block, results = language_models({"xavier": [5.0, 5.1, 5.2], "raw": [20.0, 21.0, 5.1]})
    summary = report(block, results=results)
    first, second = summary.answer.verdicts
    assert not any("cannot be seen" in note for note in summary.parts[0].notes)
    assert first == RunsNotLearned((StartNotLearned("raw", 2, 3, 7853),))
    assert isinstance(second, NoneBetter)
    assert second.detectable is None  # the spread of raw would give an absurd limit
    block, results = language_models({"xavier": [9.1, 9.2, 9.3], "raw": [20.0, 21.0, 22.0]})
    nothing = verdict(report(block, results=results))
    assert isinstance(nothing, NothingLearned)
    assert (nothing.by, nothing.chance) == ("uniform", 7853)
    block, results = language_models({"xavier": [5.0, 5.1, 5.2], "raw": [6.0, 6.1, 8.9]})
    assert isinstance(verdict(report(block, results=results)), NoneBetter)


def test_a_baseline_that_did_not_learn_silences_the_power_of_its_own_setting_alone() -> None:
    wild, calm = [20.0, 21.0, 5.1], [5.0, 5.1, 5.2]
    axes = ("model.norm", "recipe")
    levels = {(norm, recipe): 0.0 for norm in ("post", "pre") for recipe in ("xavier", "pretrained")}
    block, results = made.crossed(levels, axes, seeds=range(3))
    runs, found = [], {}
    for planned in block.runs:
        spec = replace(planned.spec, task=Task("text", kind="language_model"), sides=planned.spec.sides[:1])
        losses = wild if dict(planned.axes) == {"model.norm": "post", "recipe": "xavier"} else calm
        loss = losses[spec.seed] + 0.01 * (dict(planned.axes)["recipe"] == "pretrained") * spec.seed
        runs.append(replace(planned, spec=spec))
        scores = {"test": {"perplexity": math.exp(loss), "loss": loss}}
        found[spec.key] = replace(results[planned.spec.key], spec=spec, scores=scores)
    notes = report(replace(block, runs=tuple(runs), score="perplexity"), results=found).parts[0].notes
    of_power = [note.partition(":")[0] for note in notes if "cannot be seen" in note]
    assert of_power == ["pretrained · pre-LN"]


def test_a_block_with_blown_up_runs_says_so_in_the_answer_of_several_blocks() -> None:
    block, results = language_models({"xavier": [5.0, 5.1, 5.2], "raw": [20.0, 21.0, 22.0]})
    other = made.block("other", seeds=range(6))
    first = report(other, block, results=results | made.results(other)).answer.verdicts[0]
    assert isinstance(first, InBlock)
    assert isinstance(first.verdict, RunsNotLearned)


def test_two_seeds_with_a_wide_interval_may_still_have_learned() -> None:
    """The σ of all starts decides: with two seeds a start's own t interval would reach zero."""
    block, found = classified(0.8, 0.2, seeds=2)
    (part,) = report(block, results=found).parts
    wide = {("xavier", 0): 0.3, ("xavier", 1): 0.2, ("pretrained", 0): 0.3, ("pretrained", 1): 0.25}
    correlations = {
        label: mean_interval([value for (name, _), value in wide.items() if name == label])
        for label in ("xavier", "pretrained")
    }
    name = ScoreName(block.split, "matthews")
    rows = [replace(row, others={name: correlations[row.label]}) for row in part.rows]
    assert all(one.low is not None and one.low < 0 for one in correlations.values())
    assert nothing_learned(rows, part.metric) is None


@pytest.mark.parametrize(("seeds", "learned"), [(2, False), (8, True)])
def test_more_seeds_show_a_smaller_correlation(seeds: int, learned: bool) -> None:
    """The interval of a mean shrinks with the number of its seeds."""
    block, results = classified(0.8, 0.1, seeds=seeds)
    (part,) = report(block, results=results).parts
    correlation = mean_interval([0.1 + (0.06 if seed % 2 else -0.06) for seed in range(seeds)])
    rows = [replace(row, others={ScoreName(block.split, "matthews"): correlation}) for row in part.rows]
    assert (nothing_learned(rows, part.metric) is None) == learned


def test_blocks_in_which_nothing_was_learned_come_first() -> None:
    block, found = classified(0.5, 0.0)
    other = made.block(seeds=range(6))
    summary = report(other, block, results=found | made.results(other))
    first = summary.answer.verdicts[0]
    assert isinstance(first, InBlock)
    assert (first.block, type(first.verdict)) == ("SST-2", NothingLearned)
    assert any(isinstance(one, StartTallies) for one in summary.answer.verdicts)
    only = report(block, replace(block, name="again"), results=found).answer.verdicts
    assert [type(one.verdict) if isinstance(one, InBlock) else one for one in only] == [NothingLearned] * 2


def test_a_start_with_runs_without_a_score_is_better_in_no_tally() -> None:
    one, two = made.block(seeds=range(6)), made.block("SST-2", task="sst2", seeds=range(6))
    found = made.results(one, two)
    lost = next(run.spec for run in one.runs if run.axes == (("recipe", "pretrained_xavier"),))
    found[lost.key] = made.result(lost, 0.0, diverged=True)
    tallies = verdict(report(one, two, results=found))
    assert isinstance(tallies, StartTallies)
    assert StartTally("pretrained_xavier", 1, 0, 2) in tallies.tallies
