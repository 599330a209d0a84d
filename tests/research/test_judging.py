"""The advice of `embinit inspect` on results in which it is right, wrong, or cannot be judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embinit.reports.results_file import write_compact, write_measured
from embinit.reports.results_reader import read_compact
from research.advice import section
from research.judging import (
    advised_start,
    advised_start_at_full_rate,
    always,
    always_at_advised_rate,
    blind_advisers,
    outcome,
    start_to_compare,
    tally,
    without_task,
)
from research.results import main
from research.trials import trials
from tests.reports import made
from tests.research.advised import (
    NARROW,
    RECIPES,
    WIDE,
    classifier_trial,
    diagnosis,
    trained_file,
    trial_of,
    trials_by_ratio,
    verdict_file,
)


def test_the_best_start_is_a_hit_without_regret() -> None:
    trial = trial_of(9.0, WIDE)
    assert advised_start(trial) == trial.best == "pretrained_xavier"
    assert outcome(trial, advised_start(trial)) == outcome(trial, "pretrained_xavier")
    assert (outcome(trial, "pretrained_xavier").status, outcome(trial, "pretrained_xavier").regret) == ("hit", 0)


def test_a_significantly_worse_start_is_a_miss_and_its_regret_is_the_distance() -> None:
    trial = trial_of(9.0, NARROW)
    judgement = outcome(trial, advised_start(trial))
    assert (judgement.status, judgement.start) == ("miss", "pretrained_xavier")
    means = {name: np.mean(list(scores.values())) for name, scores in trial.scores.items()}
    assert judgement.regret == pytest.approx(means["pretrained"] - means["pretrained_xavier"])
    assert judgement.difference is not None
    assert judgement.difference.high is not None
    assert judgement.difference.high < 0


def test_a_start_within_noise_of_the_best_is_a_hit_with_a_regret() -> None:
    trial = trial_of(9.0, dict.fromkeys(RECIPES, 37.0))
    for recipe in RECIPES:
        assert outcome(trial, recipe).status == "hit"
    regrets = [outcome(trial, recipe).regret for recipe in RECIPES]
    assert sum(regret == 0 for regret in regrets) == 1
    assert all(regret is not None and 0 <= regret < 0.5 for regret in regrets)


def test_a_difference_that_is_the_same_at_every_seed_is_not_noise() -> None:
    trial = trial_of(9.0, NARROW)
    flat = {name: dict.fromkeys(trial.scores[name], level) for name, level in NARROW.items()}
    assert outcome(replace(trial, scores=flat), "pretrained_xavier").status == "miss"
    equal = {name: dict.fromkeys(trial.scores[name], 37.0) for name in NARROW}
    assert outcome(replace(trial, scores=equal), "pretrained_xavier").status == "hit"


def test_lower_is_better_if_the_score_is_a_loss() -> None:
    trial = trial_of(9.0, NARROW)
    loss = replace(trial, metric=replace(trial.metric, higher=False))
    assert loss.best == "xavier"
    assert outcome(loss, "pretrained").status == "miss"
    assert (outcome(loss, "pretrained").regret or 0) > 0


def test_a_recipe_with_unscored_runs_is_never_the_best_and_a_miss_if_advised() -> None:
    ran = trained_file({"x": WIDE})
    lost = next(run.spec for run in ran.experiment.blocks[0].runs if dict(run.axes)["recipe"] == "pretrained_xavier")
    ran.results[lost.key] = made.result(lost, 0.0, diverged=True)
    (trial,) = trials([ran, verdict_file({"x": [diagnosis(9.0)]})])
    assert trial.best == "xavier"
    assert (outcome(trial, advised_start(trial)).status, outcome(trial, advised_start(trial)).reason) == (
        "miss",
        "1 of 8 runs without a score",
    )


def test_the_advised_start_is_one_that_was_run() -> None:
    assert advised_start(trial_of(0.5, NARROW)) == "pretrained"
    assert advised_start(trial_of(2.0, NARROW)) == "pretrained"
    # The advised scale was not run. Xavier's scale is nearer to it than the rows' own.
    ran = trained_file({"x": WIDE})
    large = diagnosis(9.0, extra=20_000)
    assert large["verdict"]["recipe"] == "pretrained | center | scale ratio=0.4"
    (trial,) = trials([ran, verdict_file({"x": [large]})])
    assert advised_start(trial) == "pretrained_xavier"
    sentence = "For x it advises a scale that was not run"
    assert sentence in "\n".join(section([trial]))
    assert sentence not in "\n".join(section([trial_of(2.0, NARROW)]))
    # Rows of 0.15 are nearer to 0.4 than Xavier's at this size, 0.08.
    (trial,) = trials([ran, verdict_file({"x": [diagnosis(0.15, extra=20_000)]})])
    assert trial.sides[0].basis.absorbed is not None
    assert advised_start(trial) == "pretrained"


def test_sides_with_different_advice_are_both_standardized() -> None:
    (trial,) = trials([trained_file({"x": WIDE}), verdict_file({"x": [diagnosis(0.5), diagnosis(9.0, "target")]})])
    assert advised_start(trial) == "pretrained_xavier"
    (trial,) = trials([trained_file({"x": WIDE}), verdict_file({"x": [diagnosis(0.5), diagnosis(0.6, "target")]})])
    assert advised_start(trial) == "pretrained"


def test_a_recipe_with_a_name_of_the_file_is_matched_by_its_steps() -> None:
    trial = classifier_trial()
    assert not trial.open_reason
    assert advised_start(trial) == trial.best == "pretrained | center | scale ratio=1.4"
    assert advised_start(without_task(trial)) == "pretrained_xavier"
    text = "\n".join(section([trial]))
    assert "| embinit inspect | 1 of 1 |" in text
    assert "| embinit inspect without --task | 0 of 1 |" in text
    assert "pretrained \\| center \\| scale ratio=1.4 | pretrained \\| center" in text
    assert "advises a scale that was not run" not in text
    assert "without --task" not in "\n".join(section([trial_of(9.0, WIDE)]))


SIZED = "pretrained | center | scale ratio=1.4"
SLOW = " · rows at a tenth of the rate"


def test_rows_at_their_own_rate_are_starts_of_the_same_trial() -> None:
    trial = classifier_trial(slow={"pretrained_xavier": 44.0, "larger": 42.0})
    assert not trial.open_reason
    assert set(trial.scores) == {*WIDE, SIZED, f"pretrained_xavier{SLOW}", f"{SIZED}{SLOW}"}
    assert advised_start(trial) == trial.best == f"pretrained_xavier{SLOW}"
    assert (advised_start_at_full_rate(trial), start_to_compare(trial)) == (SIZED, f"{SIZED}{SLOW}")
    assert outcome(trial, SIZED).status == outcome(trial, start_to_compare(trial)).status == "miss"
    text = "\n".join(section([trial], ["read from x"]))
    assert "| embinit inspect | 1 of 1 |" in text
    assert "| embinit inspect, the larger rows that it says to compare | 0 of 1 |" in text
    assert "| embinit inspect, where all weights share one rate | 0 of 1 |" in text
    assert "\n- read from x\n" in text


def test_the_start_to_compare_is_one_at_the_advised_rate() -> None:
    trial = classifier_trial(slow={"pretrained_xavier": 42.0, "larger": 44.0})
    slow_alone = replace(trial, scores={name: trial.scores[name] for name in trial.scores if name != SIZED})
    assert start_to_compare(slow_alone) == slow_alone.best == f"{SIZED}{SLOW}"
    assert advised_start_at_full_rate(slow_alone) == "pretrained_xavier"


def test_the_page_names_blocks_whose_advised_scale_was_not_run() -> None:
    sentence = "For x it advises a scale that was not run"
    trial = classifier_trial()
    bare = replace(trial, scores={name: trial.scores[name] for name in WIDE})
    assert advised_start(bare) == "pretrained_xavier"
    lines = "\n".join(section([bare]))
    assert sentence in lines
    assert "| a tenth | pretrained \\| center \\| scale ratio=1.4 |" in lines
    assert sentence not in "\n".join(section([trial]))
    assert sentence not in "\n".join(section([classifier_trial(slow={"pretrained_xavier": 44.0})]))


def test_a_rate_that_was_tried_with_other_rows_alone_leaves_the_advice_open() -> None:
    trial = classifier_trial(slow={"larger": 42.0})
    assert outcome(trial, advised_start(trial)).reason == f"pretrained_xavier{SLOW} was not run"
    text = "\n".join(section([trial]))
    assert "Open: none of 1 block can be judged yet." in text
    # Where nobody tried the rate, what is advised for the full one is judged.
    assert advised_start(classifier_trial()) == start_to_compare(classifier_trial()) == SIZED
    text = "\n".join(section([classifier_trial()]))
    assert "share one rate" not in text
    assert "says to compare" not in text


def test_translators_are_always_advised_the_full_rate() -> None:
    trial = classifier_trial(slow={"pretrained_xavier": 42.0})
    assert advised_start(without_task(trial)) == "pretrained_xavier"
    assert outcome(without_task(trial), advised_start(without_task(trial))).status == "miss"


def test_hits_of_the_advice_and_of_blind_advisers_are_counted() -> None:
    judged = trials_by_ratio(border=2.5)
    advice = tally(judged, advised_start)
    assert (advice.hits, advice.judged, advice.open, advice.cost) == (8, 8, 0, 0)
    assert advice.low is not None
    assert advice.low == pytest.approx(0.676, abs=1e-3)
    for recipe in ("pretrained", "pretrained_xavier"):
        assert tally(judged, always(recipe)).hits == 4
    assert tally(judged, always("xavier")).hits == 0
    regret = tally(judged, always("pretrained")).regret
    assert regret["BLEU"] == pytest.approx((39.0 - 33.0) / 2, abs=0.5)


def test_blind_advisers_may_use_the_advised_rate() -> None:
    trial = classifier_trial(slow={"pretrained_xavier": 44.0, "larger": 42.0})
    assert always_at_advised_rate("pretrained_xavier")(trial) == f"pretrained_xavier{SLOW}"
    # Random rows were not run at that rate, so their full rate stands for it.
    assert always_at_advised_rate("xavier")(trial) == "xavier"
    hits = {name: tally([trial], adviser).hits for name, adviser in blind_advisers().items()}
    assert hits["always pretrained_xavier at the advised rate"] == 1
    assert hits["always pretrained_xavier"] == 0
    text = "\n".join(section([trial]))
    assert "| always pretrained_xavier at the advised rate | 1 of 1 |" in text
    assert "always xavier at the advised rate" not in text  # makes the same choices as “always xavier”


def test_the_page_compares_the_advice_with_blind_advisers() -> None:
    good, bad = ("\n".join(section(trials_by_ratio(border))) for border in (2.5, 100.0))
    assert "in 8 of 8 blocks, with a mean regret of 0.00 BLEU. That is more than the 4 of “always pretrained” (" in good
    assert "in 4 of 8 blocks, " in bad
    assert "That is fewer than the 8 of “always pretrained” (0.00 BLEU), the best of 3 advisers" in bad
    assert "| embinit inspect | 8 of 8 | 100.0 % | [68, 100] % | 0.00 |" in good


def test_the_page_lists_trials_that_cannot_be_judged() -> None:
    text = "\n".join(section(trials([verdict_file({"x": [diagnosis(9.0)]})])))
    assert "Open: none of 1 block can be judged yet." in text
    assert "- Open (not trained yet): x." in text
    assert "<summary>What it measured</summary>" in text
    mixed = "\n".join(section([trial_of(9.0, WIDE), *trials([verdict_file({"y": [diagnosis(9.0)]})])]))
    cells_of = mixed.partition("| block | ratio |")[2].partition("<details>")[0]
    assert "| y |" not in cells_of
    assert "- Open (not trained yet): y." in cells_of


def test_make_results_writes_the_page_on_the_advice(tmp_path: Path) -> None:
    names = {"sst, 9": 9.0, "sst, 2": 2.0}
    verdicts = verdict_file({name: [diagnosis(ratio)] for name, ratio in names.items()})
    ran = trained_file(dict.fromkeys(names, WIDE))
    write_compact(ran.experiment, ran.results, tmp_path / "trained.results.json")
    main([str(tmp_path), str(tmp_path / "RESULTS.md"), "--no-figures"])
    assert not (tmp_path / "advice.md").exists()
    noted = replace(verdicts.experiment, notes=("its lines were read from sst, 9",))
    write_measured(noted, verdicts.measured, tmp_path / "verdicts.results.json")
    main([str(tmp_path), str(tmp_path / "RESULTS.md"), "--no-figures"])
    short, written = ((tmp_path / name).read_text("utf-8") for name in ("RESULTS.md", "advice.md"))
    assert written.count("# Is the advice of `embinit inspect` good?") == 1
    assert "That is fewer than the 2 of “always pretrained_xavier” (" in written
    assert "| **miss** |" in written
    assert "\n- its lines were read from sst, 9\n" in written
    # The rounding of the small file changes no advice.
    (first, second) = trials([ran, read_compact(tmp_path / "verdicts.results.json")])
    assert (advised_start(first), advised_start(second)) == ("pretrained_xavier", "pretrained")
    assert written.count("<summary>What it measured</summary>") == 1
    assert "**The advice of `embinit inspect`.** The start that it advises was the best one" in short
