"""The advice of `embinit inspect` against results in which it is right, wrong, or cannot be judged."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embinit.alignment import align
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.verdict import as_dict, limits
from embinit.experiments.experiment import Block, Planned
from embinit.experiments.results import Result
from embinit.experiments.spec import Spec
from embinit.reports.advice import section
from embinit.reports.cells import Trial, halves, trials
from embinit.reports.compact import Compact, read_compact, write_compact, write_measured
from embinit.reports.results import document, main
from embinit.reports.thresholds import adjusted, candidates
from embinit.reports.verdicts import advised, always, outcome, tally, untold
from embinit.types import Embeddings, Origin, TaskKind
from tests.reports import made

#: BLEU of each recipe where rows are narrow enough as they are, and where they are not.
NARROW = {"xavier": 37.0, "pretrained": 39.0, "pretrained_xavier": 37.5}
WIDE = {"xavier": 37.0, "pretrained": 33.0, "pretrained_xavier": 39.0}
RECIPES = tuple(NARROW)


def seen(
    ratio: float, side: str = "source", rows: int = 1500, extra: int = 0, task: TaskKind | None = None
) -> dict[str, Any]:
    """Return the measure of vectors with this ratio to the positions; of `extra` more tokens there is no row."""
    rng = np.random.default_rng(0)
    matrix = (ratio * 0.70710678 / 32**0.5 * rng.standard_normal((rows, 32))).astype(np.float32)
    words = [f"w{i}" for i in range(rows)]
    aligned = align(Embeddings(words, matrix, Origin("made", "made")), [*words, *(f"x{i}" for i in range(extra))])
    found = diagnose(aligned, task=task)
    return {
        "side": side, "source": "glove", "rows": "", "basis": found.basis.as_json(), "verdict": as_dict(found.verdict)
    }  # fmt: skip


def measured(blocks: Mapping[str, list[dict[str, Any]]], tasks: Mapping[str, str] | None = None) -> Compact:
    listed = [
        {"name": name, "task": (tasks or {}).get(name, "multi30k"), "missing": "", "rows": rows}
        for name, rows in blocks.items()
    ]
    asked = made.experiment(*(made.block(name) for name in blocks), name="verdicts", kind="verdict")
    return Compact(asked, {}, json.loads(json.dumps({"name": "verdicts", "kind": "verdict", "blocks": listed})))


def trained(levels: Mapping[str, Mapping[str, float]], seeds: int = 8) -> Compact:
    blocks = [made.block(name, recipes=tuple(one), seeds=range(seeds)) for name, one in levels.items()]
    found: dict[str, Result] = {}
    renamed = []
    for block, one in zip(blocks, levels.values(), strict=True):
        # Equal specs are the same run: the task's name tells the blocks apart.
        runs = tuple(
            replace(run, spec=replace(run.spec, task=replace(run.spec.task, pair=block.name))) for run in block.runs
        )
        for run in runs:
            recipe = dict(run.axes)["recipe"]
            found[run.spec.key] = made.result(run.spec, one[recipe] + made.noise(recipe, run.spec.seed))
        renamed.append(replace(block, runs=runs))
    return Compact(made.experiment(*renamed, name="trained"), found)


def one(ratio: float, levels: Mapping[str, float], seeds: int = 8) -> Trial:
    (trial,) = trials([trained({"x": levels}, seeds), measured({"x": [seen(ratio)]})])
    return trial


def test_advice_that_is_the_best_is_a_hit_without_regret() -> None:
    trial = one(9.0, WIDE)
    assert advised(trial) == trial.best == "pretrained_xavier"
    assert outcome(trial, advised(trial)) == outcome(trial, "pretrained_xavier")
    assert (outcome(trial, "pretrained_xavier").word, outcome(trial, "pretrained_xavier").regret) == ("hit", 0)


def test_advice_that_is_significantly_worse_is_a_miss_and_its_regret_is_the_distance() -> None:
    trial = one(9.0, NARROW)
    found = outcome(trial, advised(trial))
    assert (found.word, found.recipe) == ("miss", "pretrained_xavier")
    means = {name: np.mean(list(scores.values())) for name, scores in trial.scores.items()}
    assert found.regret == pytest.approx(means["pretrained"] - means["pretrained_xavier"])
    assert found.difference is not None
    assert found.difference.high is not None
    assert found.difference.high < 0


def test_advice_within_noise_of_the_best_is_a_hit_with_a_regret() -> None:
    trial = one(9.0, dict.fromkeys(RECIPES, 37.0))
    for recipe in RECIPES:
        assert outcome(trial, recipe).word == "hit"
    regrets = [outcome(trial, recipe).regret for recipe in RECIPES]
    assert sum(regret == 0 for regret in regrets) == 1
    assert all(regret is not None and 0 <= regret < 0.5 for regret in regrets)


def test_a_difference_that_never_changes_is_no_noise() -> None:
    trial = one(9.0, NARROW)
    flat = {name: dict.fromkeys(trial.scores[name], level) for name, level in NARROW.items()}
    assert outcome(replace(trial, scores=flat), "pretrained_xavier").word == "miss"
    equal = {name: dict.fromkeys(trial.scores[name], 37.0) for name in NARROW}
    assert outcome(replace(trial, scores=equal), "pretrained_xavier").word == "hit"


def test_lower_is_better_where_the_score_is_a_loss() -> None:
    trial = one(9.0, NARROW)
    loss = replace(trial, metric=replace(trial.metric, higher=False))
    assert loss.best == "xavier"
    assert outcome(loss, "pretrained").word == "miss"
    assert (outcome(loss, "pretrained").regret or 0) > 0


def test_too_few_seeds_runs_that_are_not_there_and_other_rows_leave_it_open() -> None:
    assert one(9.0, WIDE, seeds=4).open == "4 seeds that all recipes have; 5 are needed"
    (alone,) = trials([measured({"x": [seen(9.0)]})])
    assert alone.open == "not trained yet"
    assert advised(alone) == "pretrained_xavier"
    assert outcome(alone, advised(alone)).word == "open"
    trial = one(9.0, {name: WIDE[name] for name in ("xavier", "pretrained")})
    assert outcome(trial, advised(trial)).why == "pretrained_xavier was not run"
    ran, looked = trained({"x": WIDE}), measured({"x": [{**seen(9.0), "rows": "those"}]})
    assert looked.measured is not None
    spec = next(run.spec for run in ran.experiment.blocks[0].runs if dict(run.axes)["recipe"] == "pretrained")
    sides = tuple((name, replace(side, rows="these")) for name, side in spec.sides)
    ran.results[spec.key] = replace(ran.results[spec.key], spec=replace(spec, sides=sides))
    (other,) = trials([ran, looked])
    assert other.open == "other rows were trained than diagnosed"


def test_a_recipe_whose_runs_left_no_score_is_never_the_best_and_a_miss_where_advised() -> None:
    ran = trained({"x": WIDE})
    lost = next(run.spec for run in ran.experiment.blocks[0].runs if dict(run.axes)["recipe"] == "pretrained_xavier")
    ran.results[lost.key] = made.result(lost, 0.0, diverged=True)
    (trial,) = trials([ran, measured({"x": [seen(9.0)]})])
    assert trial.best == "xavier"
    assert (outcome(trial, advised(trial)).word, outcome(trial, advised(trial)).why) == (
        "miss",
        "1 of 8 runs left nothing to score",
    )


def test_the_advice_is_one_of_the_recipes_that_were_run() -> None:
    assert advised(one(0.5, NARROW)) == "pretrained"
    assert advised(one(2.0, NARROW)) == "pretrained"
    # As it is written: another scale. Of those that were run Xavier's is the nearer one, for the rows' own is far off.
    levels = trained({"x": WIDE})
    large = seen(9.0, extra=20_000)
    assert large["verdict"]["recipe"] == "pretrained | center | scale ratio=0.4"
    (trial,) = trials([levels, measured({"x": [large]})])
    assert advised(trial) == "pretrained_xavier"
    said = "For x it advises a scale that was not run"
    assert said in "\n".join(section([trial]))
    assert said not in "\n".join(section([one(2.0, NARROW)]))
    # Rows of 0.15 are nearer to 0.4 than Xavier's at this size, 0.08.
    (trial,) = trials([levels, measured({"x": [seen(0.15, extra=20_000)]})])
    assert trial.sides[0].basis.absorbed is not None
    assert advised(trial) == "pretrained"


def test_sides_that_are_advised_differently_are_both_standardized() -> None:
    (trial,) = trials([trained({"x": WIDE}), measured({"x": [seen(0.5), seen(9.0, "target")]})])
    assert advised(trial) == "pretrained_xavier"
    (trial,) = trials([trained({"x": WIDE}), measured({"x": [seen(0.5), seen(0.6, "target")]})])
    assert advised(trial) == "pretrained"


def test_what_several_files_trained_in_one_setting_is_one_cell() -> None:
    looked = measured({"x": [seen(9.0)]})
    fewer = trained({"x": WIDE}, seeds=8)
    more = trained(
        {"x": {name: WIDE[name] for name in ("xavier", "pretrained")} | {"pretrained_shuffled": 31.0}}, seeds=6
    )
    begun = trained({"x": {"xavier": 37.0, "xavier_pretrained": 33.0}}, seeds=3)
    for files in itertools.permutations((fewer, more, begun)):
        (trial,) = trials([*files, looked])
        assert not trial.open
        assert set(trial.scores) == {*WIDE, "pretrained_shuffled"}
        assert {len(scores) for scores in trial.scores.values()} == {6}
        assert outcome(trial, advised(trial)).word == "hit"


def test_of_two_settings_the_one_with_more_recipes_and_then_seeds_counts() -> None:
    def longer(ran: Compact) -> Compact:
        (block,) = ran.experiment.blocks
        runs = tuple(replace(run, spec=_epochs(run.spec, 99)) for run in block.runs)
        found = {
            new.spec.key: replace(ran.results[old.spec.key], spec=new.spec)
            for old, new in zip(block.runs, runs, strict=True)
        }
        return Compact(replace(ran.experiment, blocks=(replace(block, runs=runs),)), found)

    looked = measured({"x": [seen(9.0)]})
    better = {name: level + 20 for name, level in WIDE.items()}
    for order in itertools.permutations((trained({"x": WIDE}, seeds=8), longer(trained({"x": better}, seeds=6)))):
        (trial,) = trials([*order, looked])
        assert len(trial.scores["xavier"]) == 8
        assert max(trial.scores["xavier"].values()) < 45
    more = longer(trained({"x": {**better, "pretrained_shuffled": 31.0}}, seeds=6))
    for order in itertools.permutations((trained({"x": WIDE}, seeds=8), more)):
        (trial,) = trials([*order, looked])
        assert len(trial.scores) == 4
        assert min(trial.scores["xavier"].values()) > 45


def _epochs(spec: Spec, epochs: int) -> Spec:
    return replace(spec, training=(*(pair for pair in spec.training if pair[0] != "epochs"), ("epochs", epochs)))


def test_sides_that_were_run_as_they_are_advised_are_a_recipe_of_their_own() -> None:
    # The encoder's narrow rows as they are, the decoder's wide ones standardized.
    ran = trained({"x": {**WIDE, "mixed": 41.0}})
    (block,) = ran.experiment.blocks
    runs, found = [], {}
    for run in block.runs:
        sides = run.spec.sides
        if dict(run.axes)["recipe"] == "mixed":
            (first, one), (second, other) = sides
            sides = ((first, replace(one, recipe="pretrained")), (second, replace(other, recipe="pretrained_xavier")))
        runs.append(replace(run, spec=replace(run.spec, sides=sides)))
        found[runs[-1].spec.key] = replace(ran.results[run.spec.key], spec=runs[-1].spec)
    ran = Compact(replace(ran.experiment, blocks=(replace(block, runs=tuple(runs)),)), found)
    (trial,) = trials([ran, measured({"x": [seen(0.5), seen(9.0, "target")]})])
    assert advised(trial) == trial.best == "pretrained / pretrained_xavier"
    assert outcome(trial, "pretrained_xavier").word == "miss"


def of_classifier(ratio: float = 9.0) -> Trial:
    """Return a cell of classification in which the size that is advised to classifiers was run, under a name of its own."""
    ran = trained({"x": {**WIDE, "larger": 41.0}})
    (block,) = ran.experiment.blocks
    steps = "pretrained | center | scale ratio=1.4"
    runs, found = [], {}
    for run in block.runs:
        own = dict(run.axes)["recipe"]
        sides = tuple(
            (name, replace(side, source="glove", recipe=steps if own == "larger" else own))
            for name, side in run.spec.sides
        )
        runs.append(replace(run, spec=replace(run.spec, sides=sides)))
        found[runs[-1].spec.key] = replace(ran.results[run.spec.key], spec=runs[-1].spec)
    ran = Compact(replace(ran.experiment, blocks=(replace(block, runs=tuple(runs)),)), found)
    rows = {side.rows for run in runs for _, side in run.spec.sides}
    looked = {**seen(ratio, "source", task="classification"), "rows": rows.pop()}
    (trial,) = trials([ran, measured({"x": [looked]})])
    return trial


def test_a_recipe_that_the_file_calls_by_its_own_name_is_known_by_its_steps() -> None:
    trial = of_classifier()
    assert not trial.open
    assert advised(trial) == trial.best == "pretrained | center | scale ratio=1.4"
    assert advised(untold(trial)) == "pretrained_xavier"
    said = "\n".join(section([trial]))
    assert "| embinit inspect | 1 of 1 |" in said
    assert "| embinit inspect without --task | 0 of 1 |" in said
    assert "pretrained \\| center \\| scale ratio=1.4 | pretrained \\| center" in said
    assert "advises a scale that was not run" not in said
    assert "without --task" not in "\n".join(section([one(9.0, WIDE)]))


def test_lines_of_classifiers_are_adjusted_by_their_own_cells() -> None:
    # At 9 rows do best as they are: the upper line of classifiers moves beyond it, those of translation stay.
    cell = of_classifier()
    kept = {**cell.scores, "pretrained": {seed: 50.0 + score for seed, score in cell.scores["pretrained"].items()}}
    found = adjusted([replace(cell, scores=kept, half=half) for half in "AB"], "A")
    assert found is not None
    assert found.lines["high"] > 9
    assert {name: found.lines[name] for name in ("buried", "border", "low")} == {
        "buried": 0.2, "border": 2.5, "low": 0.75
    }  # fmt: skip
    assert (found.before["B"].hits, found.after["B"].hits) == (0, 1)


def test_halves_share_out_tasks_and_sources() -> None:
    sources = ["glove", "bert", "t5"]
    tasks = [task for task in ("a", "b", "c", "d") for _ in sources]
    found = halves(tasks)
    for name in ("a", "b", "c", "d"):
        assert {half for half, task in zip(found, tasks, strict=True) if task == name} == {"A", "B"}
    for place in range(3):
        assert sorted(found[place::3]) == ["A", "A", "B", "B"]


def cells(border: float, ratios: tuple[float, ...] = (1.5, 2.0, 3.0, 9.0)) -> tuple[Trial, ...]:
    """Return two cells of each ratio, one in each half, in which rows up to the border do best as they are."""
    names = {f"{task}, {ratio}": ratio for task in ("a", "b") for ratio in ratios}
    levels = {name: NARROW if ratio < border else WIDE for name, ratio in names.items()}
    tasks = {name: name[0] for name in names}
    looked = measured({name: [seen(ratio)] for name, ratio in names.items()}, tasks)
    return trials([trained(levels), looked])


def test_hits_are_counted_beside_those_of_advisers_that_look_at_nothing() -> None:
    found = cells(border=2.5)
    whole = tally(found, advised)
    assert (whole.hits, whole.judged, whole.open, whole.cost) == (8, 8, 0, 0)
    assert whole.low is not None
    assert whole.low == pytest.approx(0.676, abs=1e-3)
    for recipe in ("pretrained", "pretrained_xavier"):
        assert tally(found, always(recipe)).hits == 4
    assert tally(found, always("xavier")).hits == 0
    regret = tally(found, always("pretrained")).regret
    assert regret["BLEU"] == pytest.approx((39.0 - 33.0) / 2, abs=0.5)


def test_lines_that_are_right_stay() -> None:
    found = adjusted(cells(border=2.5), "A")
    assert found is not None
    assert not found.moved
    assert found.lines == {"buried": 0.2, "border": 2.5, "low": 0.75, "high": 3.0}


def test_lines_that_are_wrong_are_moved_on_one_half_and_judged_on_the_other() -> None:
    found = adjusted(cells(border=5.0), "A")
    assert found is not None
    assert found.lines["border"] == pytest.approx((3 * 9) ** 0.5, abs=0.05)
    assert found.lines["buried"] == limits()["ratio"]["buried"]
    assert {half: (found.before[half].hits, found.after[half].hits) for half in "AB"} == {"A": (3, 4), "B": (3, 4)}


def test_what_one_half_alone_shows_does_not_help_the_other() -> None:
    # Rows of 3 do best as they are in half A, and not in half B.
    mixed = [
        replace(trial, scores=other.scores) if trial.half == "A" else trial
        for trial, other in zip(cells(border=2.5), cells(border=5.0), strict=True)
    ]
    found = adjusted(mixed, "A")
    assert found is not None
    assert (found.after["A"].hits, found.after["B"].hits) == (4, found.before["B"].hits - 1)
    said = "\n".join(section(mixed))
    assert "the one that does best on half A gives 1 hit fewer on half B." in said


def test_rows_that_are_enlarged_in_vain_move_the_lower_line() -> None:
    # At 0.1 and 0.15 rows do best as they are: the verdict enlarges them.
    found = adjusted(cells(border=5.0, ratios=(0.1, 0.15, 0.5, 3.0)), "A")
    assert found is not None
    assert found.lines["buried"] < 0.1
    assert found.after["B"].hits > found.before["B"].hits


def test_of_lines_with_equal_hits_those_with_the_least_regret_are_taken() -> None:
    # At 3 every recipe is a hit, and rows as they are have the highest mean.
    close = {"xavier": 37.0, "pretrained": 37.2, "pretrained_xavier": 37.0}
    cell = one(3.0, close)
    assert cell.best == "pretrained"
    assert outcome(cell, "pretrained_xavier").word == "hit"
    found = adjusted(
        [replace(trial, scores=cell.scores) if ", 3" in trial.name else trial for trial in cells(2.5)], "A"
    )
    assert found is not None
    assert found.before["A"].hits == found.after["A"].hits == 4
    assert 3 < found.lines["border"] < 9
    assert (found.after["B"].cost, (found.before["B"].cost or 0) > 0) == (0, True)


def test_every_division_of_the_ratios_is_tried() -> None:
    tried = [lines["ratio"] for lines in candidates(cells(border=2.5))]
    borders = {lines["border"] for lines in tried}
    assert len(borders) == 6  # below, between, above, and the shipped one
    assert {lines["buried"] for lines in tried} == {0.2}
    assert all(lines["buried"] < lines["aim"] < lines["border"] for lines in tried)
    assert all(lines["good"] <= lines["border"] for lines in tried)


def test_the_section_says_whether_the_advice_is_worth_anything() -> None:
    good, bad = ("\n".join(section(cells(border))) for border in (2.5, 100.0))
    assert "in 8 of 8 cells: more often than any one recipe taken always (pretrained or pretrained_xavier: 4)." in good
    assert "in 4 of 8 cells: less often than pretrained taken always (8)." in bad
    assert "| embinit inspect | 8 of 8 | 100.0 % | [68, 100] % | 0.00 |" in good
    assert "None of 6 sets of lines does better on half A than the one in the file." in good
    assert "| half A | 0.2 | 18 | 0.75 | 3 | 2 of 4 → 4 of 4 | 2 of 4 → 4 of 4 |" in bad


def test_nothing_that_can_be_judged_is_said() -> None:
    said = "\n".join(section(trials([measured({"x": [seen(9.0)]})])))
    assert "Open: none of 1 cell can be judged yet." in said
    assert "- Open (not trained yet): x." in said
    assert "| half |" not in said
    assert "<summary>What it saw</summary>" in said
    assert "Would other lines" not in said
    mixed = "\n".join(section([one(9.0, WIDE), *trials([measured({"y": [seen(9.0)]})])]))
    cells_of = mixed.partition("| block | half |")[2].partition("<details>")[0]
    assert "| y |" not in cells_of
    assert "- Open (not trained yet): y." in cells_of
    only = "\n".join(section([one(9.0, WIDE)]))
    assert "Open: each half needs a cell that can be judged." in only


def test_results_md_has_the_section_from_the_files_alone(tmp_path: Path) -> None:
    names = {"sst, 9": 9.0, "sst, 2": 2.0}
    looked, ran = measured({name: [seen(ratio)] for name, ratio in names.items()}), trained(dict.fromkeys(names, WIDE))
    write_compact(ran.experiment, ran.results, tmp_path / "trained.results.json")
    main([str(tmp_path), str(tmp_path / "RESULTS.md"), "--no-figures"])
    assert "Is the advice" not in (tmp_path / "RESULTS.md").read_text("utf-8")
    write_measured(looked.experiment, looked.measured, tmp_path / "verdicts.results.json")
    main([str(tmp_path), str(tmp_path / "RESULTS.md"), "--no-figures"])
    written = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert written.count("## Is the advice of `embinit inspect` good?") == 1
    assert "in 1 of 2 cells: less often than pretrained_xavier taken always (2)." in written
    assert "| **miss** |" in written
    # The rounding of the small file changes no advice.
    (first, second) = trials([ran, read_compact(tmp_path / "verdicts.results.json")])
    assert (advised(first), advised(second)) == ("pretrained_xavier", "pretrained")
    assert document([], None, (first, second)).count("<summary>What it saw</summary>") == 1
    assert "**The advice of `embinit inspect`.** The recipe that it advises was the best one" in written


def test_a_block_with_several_settings_is_no_cell() -> None:
    ran = trained({"x": WIDE})
    (block,) = ran.experiment.blocks
    runs = tuple(
        Planned(replace(run.spec, model=(*run.spec.model, ("depth", depth))), (*run.axes, ("model.layers", str(depth))))
        for depth in (3, 6)
        for run in block.runs
    )
    found = {run.spec.key: made.result(run.spec, 37.0) for run in runs}
    several = Compact(replace(ran.experiment, blocks=(_with(block, runs),)), found)
    (trial,) = trials([several, measured({"x": [seen(9.0)]})])
    assert trial.open == "its runs differ in more than the recipe"


def _with(block: Block, runs: tuple[Planned, ...]) -> Block:
    return replace(block, runs=runs)
