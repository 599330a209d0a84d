"""The advice of `embinit inspect` against results in which it is right, wrong, or cannot be judged."""

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
from tests.research.advised import NARROW, RECIPES, WIDE, cells, measured, of_classifier, one, seen, trained


def test_advice_that_is_the_best_is_a_hit_without_regret() -> None:
    trial = one(9.0, WIDE)
    assert advised_start(trial) == trial.best == "pretrained_xavier"
    assert outcome(trial, advised_start(trial)) == outcome(trial, "pretrained_xavier")
    assert (outcome(trial, "pretrained_xavier").status, outcome(trial, "pretrained_xavier").regret) == ("hit", 0)


def test_advice_that_is_significantly_worse_is_a_miss_and_its_regret_is_the_distance() -> None:
    trial = one(9.0, NARROW)
    found = outcome(trial, advised_start(trial))
    assert (found.status, found.start) == ("miss", "pretrained_xavier")
    means = {name: np.mean(list(scores.values())) for name, scores in trial.scores.items()}
    assert found.regret == pytest.approx(means["pretrained"] - means["pretrained_xavier"])
    assert found.difference is not None
    assert found.difference.high is not None
    assert found.difference.high < 0


def test_advice_within_noise_of_the_best_is_a_hit_with_a_regret() -> None:
    trial = one(9.0, dict.fromkeys(RECIPES, 37.0))
    for recipe in RECIPES:
        assert outcome(trial, recipe).status == "hit"
    regrets = [outcome(trial, recipe).regret for recipe in RECIPES]
    assert sum(regret == 0 for regret in regrets) == 1
    assert all(regret is not None and 0 <= regret < 0.5 for regret in regrets)


def test_a_difference_that_never_changes_is_no_noise() -> None:
    trial = one(9.0, NARROW)
    flat = {name: dict.fromkeys(trial.scores[name], level) for name, level in NARROW.items()}
    assert outcome(replace(trial, scores=flat), "pretrained_xavier").status == "miss"
    equal = {name: dict.fromkeys(trial.scores[name], 37.0) for name in NARROW}
    assert outcome(replace(trial, scores=equal), "pretrained_xavier").status == "hit"


def test_lower_is_better_where_the_score_is_a_loss() -> None:
    trial = one(9.0, NARROW)
    loss = replace(trial, metric=replace(trial.metric, higher=False))
    assert loss.best == "xavier"
    assert outcome(loss, "pretrained").status == "miss"
    assert (outcome(loss, "pretrained").regret or 0) > 0


def test_a_recipe_whose_runs_left_no_score_is_never_the_best_and_a_miss_where_advised() -> None:
    ran = trained({"x": WIDE})
    lost = next(run.spec for run in ran.experiment.blocks[0].runs if dict(run.axes)["recipe"] == "pretrained_xavier")
    ran.results[lost.key] = made.result(lost, 0.0, diverged=True)
    (trial,) = trials([ran, measured({"x": [seen(9.0)]})])
    assert trial.best == "xavier"
    assert (outcome(trial, advised_start(trial)).status, outcome(trial, advised_start(trial)).reason) == (
        "miss",
        "1 of 8 runs left nothing to score",
    )


def test_the_advice_is_one_of_the_recipes_that_were_run() -> None:
    assert advised_start(one(0.5, NARROW)) == "pretrained"
    assert advised_start(one(2.0, NARROW)) == "pretrained"
    # As it is written: another scale. Of those that were run Xavier's is the nearer one, for the rows' own is far off.
    levels = trained({"x": WIDE})
    large = seen(9.0, extra=20_000)
    assert large["verdict"]["recipe"] == "pretrained | center | scale ratio=0.4"
    (trial,) = trials([levels, measured({"x": [large]})])
    assert advised_start(trial) == "pretrained_xavier"
    said = "For x it advises a scale that was not run"
    assert said in "\n".join(section([trial]))
    assert said not in "\n".join(section([one(2.0, NARROW)]))
    # Rows of 0.15 are nearer to 0.4 than Xavier's at this size, 0.08.
    (trial,) = trials([levels, measured({"x": [seen(0.15, extra=20_000)]})])
    assert trial.sides[0].basis.absorbed is not None
    assert advised_start(trial) == "pretrained"


def test_sides_that_are_advised_differently_are_both_standardized() -> None:
    (trial,) = trials([trained({"x": WIDE}), measured({"x": [seen(0.5), seen(9.0, "target")]})])
    assert advised_start(trial) == "pretrained_xavier"
    (trial,) = trials([trained({"x": WIDE}), measured({"x": [seen(0.5), seen(0.6, "target")]})])
    assert advised_start(trial) == "pretrained"


def test_a_recipe_that_the_file_calls_by_its_own_name_is_known_by_its_steps() -> None:
    trial = of_classifier()
    assert not trial.open_reason
    assert advised_start(trial) == trial.best == "pretrained | center | scale ratio=1.4"
    assert advised_start(without_task(trial)) == "pretrained_xavier"
    said = "\n".join(section([trial]))
    assert "| embinit inspect | 1 of 1 |" in said
    assert "| embinit inspect without --task | 0 of 1 |" in said
    assert "pretrained \\| center \\| scale ratio=1.4 | pretrained \\| center" in said
    assert "advises a scale that was not run" not in said
    assert "without --task" not in "\n".join(section([one(9.0, WIDE)]))


SIZED = "pretrained | center | scale ratio=1.4"
SLOW = " · rows at a tenth of the rate"


def test_rows_at_a_rate_of_their_own_are_starts_of_the_same_cell() -> None:
    trial = of_classifier(slow={"pretrained_xavier": 44.0, "larger": 42.0})
    assert not trial.open_reason
    assert set(trial.scores) == {*WIDE, SIZED, f"pretrained_xavier{SLOW}", f"{SIZED}{SLOW}"}
    assert advised_start(trial) == trial.best == f"pretrained_xavier{SLOW}"
    assert (advised_start_at_full_rate(trial), start_to_compare(trial)) == (SIZED, f"{SIZED}{SLOW}")
    assert outcome(trial, SIZED).status == outcome(trial, start_to_compare(trial)).status == "miss"
    said = "\n".join(section([trial], ["read from x"]))
    assert "| embinit inspect | 1 of 1 |" in said
    assert "| embinit inspect, the larger rows that it says to compare | 0 of 1 |" in said
    assert "| embinit inspect, where all weights share one rate | 0 of 1 |" in said
    assert "\n- read from x\n" in said


def test_what_is_to_be_compared_is_sought_among_the_starts_at_its_rate() -> None:
    trial = of_classifier(slow={"pretrained_xavier": 42.0, "larger": 44.0})
    slow_alone = replace(trial, scores={name: trial.scores[name] for name in trial.scores if name != SIZED})
    assert start_to_compare(slow_alone) == slow_alone.best == f"{SIZED}{SLOW}"
    assert advised_start_at_full_rate(slow_alone) == "pretrained_xavier"


def test_a_scale_that_was_not_run_is_told_by_what_stood_for_it() -> None:
    said = "For x it advises a scale that was not run"
    trial = of_classifier()
    bare = replace(trial, scores={name: trial.scores[name] for name in WIDE})
    assert advised_start(bare) == "pretrained_xavier"
    lines = "\n".join(section([bare]))
    assert said in lines
    assert "| a tenth | pretrained \\| center \\| scale ratio=1.4 |" in lines
    assert said not in "\n".join(section([trial]))
    assert said not in "\n".join(section([of_classifier(slow={"pretrained_xavier": 44.0})]))


def test_a_rate_that_was_tried_with_other_rows_alone_leaves_the_advice_open() -> None:
    trial = of_classifier(slow={"larger": 42.0})
    assert outcome(trial, advised_start(trial)).reason == f"pretrained_xavier{SLOW} was not run"
    said = "\n".join(section([trial]))
    assert "Open: none of 1 block can be judged yet." in said
    # Where nobody tried the rate, what is advised for the full one is judged.
    assert advised_start(of_classifier()) == start_to_compare(of_classifier()) == SIZED
    said = "\n".join(section([of_classifier()]))
    assert "share one rate" not in said
    assert "says to compare" not in said


def test_a_translator_is_advised_the_full_rate_whatever_else_was_run() -> None:
    trial = of_classifier(slow={"pretrained_xavier": 42.0})
    assert advised_start(without_task(trial)) == "pretrained_xavier"
    assert outcome(without_task(trial), advised_start(without_task(trial))).status == "miss"


def test_hits_are_counted_beside_those_of_advisers_that_look_at_nothing() -> None:
    found = cells(border=2.5)
    whole = tally(found, advised_start)
    assert (whole.hits, whole.judged, whole.open, whole.cost) == (8, 8, 0, 0)
    assert whole.low is not None
    assert whole.low == pytest.approx(0.676, abs=1e-3)
    for recipe in ("pretrained", "pretrained_xavier"):
        assert tally(found, always(recipe)).hits == 4
    assert tally(found, always("xavier")).hits == 0
    regret = tally(found, always("pretrained")).regret
    assert regret["BLEU"] == pytest.approx((39.0 - 33.0) / 2, abs=0.5)


def test_advisers_that_look_at_nothing_may_also_have_the_advised_rate() -> None:
    trial = of_classifier(slow={"pretrained_xavier": 44.0, "larger": 42.0})
    assert always_at_advised_rate("pretrained_xavier")(trial) == f"pretrained_xavier{SLOW}"
    # Random rows were not run at that rate, so their full rate stands for it.
    assert always_at_advised_rate("xavier")(trial) == "xavier"
    hits = {name: tally([trial], adviser).hits for name, adviser in blind_advisers().items()}
    assert hits["always pretrained_xavier at the advised rate"] == 1
    assert hits["always pretrained_xavier"] == 0
    said = "\n".join(section([trial]))
    assert "| always pretrained_xavier at the advised rate | 1 of 1 |" in said
    assert "always xavier at the advised rate" not in said  # it chooses what “always xavier” chooses


def test_the_section_says_whether_the_advice_is_worth_anything() -> None:
    good, bad = ("\n".join(section(cells(border))) for border in (2.5, 100.0))
    assert "in 8 of 8 blocks, with a mean regret of 0.00 BLEU. That is more than the 4 of “always pretrained” (" in good
    assert "in 4 of 8 blocks, " in bad
    assert "That is fewer than the 8 of “always pretrained” (0.00 BLEU), the best of 3 advisers" in bad
    assert "| embinit inspect | 8 of 8 | 100.0 % | [68, 100] % | 0.00 |" in good


def test_nothing_that_can_be_judged_is_said() -> None:
    said = "\n".join(section(trials([measured({"x": [seen(9.0)]})])))
    assert "Open: none of 1 block can be judged yet." in said
    assert "- Open (not trained yet): x." in said
    assert "<summary>What it measured</summary>" in said
    mixed = "\n".join(section([one(9.0, WIDE), *trials([measured({"y": [seen(9.0)]})])]))
    cells_of = mixed.partition("| block | ratio |")[2].partition("<details>")[0]
    assert "| y |" not in cells_of
    assert "- Open (not trained yet): y." in cells_of


def test_results_md_has_the_section_from_the_files_alone(tmp_path: Path) -> None:
    names = {"sst, 9": 9.0, "sst, 2": 2.0}
    looked, ran = measured({name: [seen(ratio)] for name, ratio in names.items()}), trained(dict.fromkeys(names, WIDE))
    write_compact(ran.experiment, ran.results, tmp_path / "trained.results.json")
    main([str(tmp_path), str(tmp_path / "RESULTS.md"), "--no-figures"])
    assert not (tmp_path / "advice.md").exists()
    noted = replace(looked.experiment, notes=("its lines were read from sst, 9",))
    write_measured(noted, looked.measured, tmp_path / "verdicts.results.json")
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
