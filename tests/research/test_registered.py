"""The test of the registered rule: criteria, outcomes and page, on generated results with known differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.experiments.experiment import Block, Experiment, Planned
from embinit.experiments.runs.result import Result
from embinit.reports.results_file import write_compact
from embinit.reports.results_reader import ResultsFile
from embinit.statistics import pool_data_sets
from research import power, registered, registered_page
from research.registered import (
    KEPT_ASIDE,
    RULE,
    RegisteredBlock,
    by_data,
    judge,
    missing_parts,
    outcome,
    registered_blocks,
    regret,
)
from research.results import main
from tests.reports import made

PARTS = dict(zip(registered.PARTS, power.designs(), strict=True))
#: Points or BLEU of each start above random rows.
GAINS = {RULE: 2.0, ("pretrained_xavier", 1.0): 1.0, ("pretrained", 1.0): -2.0, ("pretrained", 0.1): -1.0}
LEVEL = 30.0


def made_block(
    task: str, name: str, seeds: Iterable[int], gains: Mapping[tuple[str, float], float], part: str = KEPT_ASIDE
) -> tuple[Block, dict[str, Result]]:
    """Return a block of the test and its results. Random rows score `LEVEL`; other starts score their gain above it."""
    translation = task in ("ted", "multi30k")
    starts = {("xavier", 1.0): 0.0, **{start: gain for start, gain in gains.items() if _has_start(part, start)}}
    planned, results = [], {}
    for (recipe, rate), gain in starts.items():
        for seed in seeds:
            own = {} if rate == 1 else {"found_rate": rate}
            spec = made.spec(recipe, seed, "multi30k" if translation else "sst2", epochs=9, **own)
            spec = replace(spec, task=replace(spec.task, name=task, tokenizer=name))
            value = LEVEL + gain + made.noise(f"{recipe} {rate}", seed) * 0.4
            result = made.result(spec, value if translation else value / 100, split="test" if translation else "valid")
            if not translation:
                history = [{"valid loss": 1.0, "accuracy": 0.5}, {"valid loss": 0.5, "accuracy": (value - 7) / 100}]
                scores = {"valid": {"accuracy": value / 100, "matthews": value / 100}}
                result = replace(result, history=history, scores=scores)
            planned.append(Planned(spec, (("recipe", recipe), ("training.found_rate", str(rate)))))
            results[spec.key] = replace(result, best_epoch=2)
    score = "bleu" if translation else "matthews" if task == "cola" else "accuracy"
    return Block(name, tuple(planned), score, "test" if translation else "valid"), results


def _has_start(part: str, start: tuple[str, float]) -> bool:
    """Return whether a part of the test has a start; only the data sets kept aside have raw rows."""
    return part == KEPT_ASIDE or start[0] != "pretrained"


def part_of(
    part: str, gains: Mapping[str, Mapping[tuple[str, float], float]] | None = None, fewer_seeds: int = 0
) -> ResultsFile:
    """Return the results of a complete part, with the registered blocks and seeds."""
    blocks, all_results = [], dict[str, Result]()
    for data_set in PARTS[part].sets:
        for number in range(data_set.blocks):
            seeds = range(201, 201 + data_set.seeds - fewer_seeds)
            own = (gains or {}).get(data_set.task, GAINS)
            block, results = made_block(data_set.task, f"{data_set.task} {number}", seeds, own, part)
            blocks.append(block)
            all_results |= results
    return ResultsFile(Experiment(part, part, "Does it hold?", tuple(blocks)), all_results)


def test_the_experiments_are_the_registered_ones() -> None:
    """The designs of registered.toml have the blocks and seeds of both experiment files."""
    import tomllib

    for part, design in PARTS.items():
        content = tomllib.loads(Path(f"experiments/open/{part}.toml").read_text("utf-8"))
        seeds: dict[str, set[int]] = {}
        counted: dict[str, int] = {}
        for block in content["block"]:
            name = block["task"].partition("-")[0]
            seeds.setdefault(name, set()).add(len(block["grid"]["seed"]))
            counted[name] = counted.get(name, 0) + 1
        assert counted == {data_set.task: data_set.blocks for data_set in design.sets}
        assert seeds == {data_set.task: {data_set.seeds} for data_set in design.sets}


def test_differences_are_paired_and_pooled_over_blocks_and_data_sets() -> None:
    blocks = registered_blocks([part_of(KEPT_ASIDE, {"ted": {**GAINS, RULE: 8.0}})])
    judgement = judge(blocks)
    expected = pool_data_sets(
        [
            [
                {seed: score - block.scores["xavier", 1.0][seed] for seed, score in block.scores[RULE].items()}
                for block in of_data
            ]
            for of_data in by_data(blocks).values()
        ]
    )
    assert judgement.differences["random rows"] == expected
    assert expected.mean == pytest.approx((8 + 2 + 2) / 3, abs=0.2)
    assert judgement.differences["standardized rows at the full rate"].mean == pytest.approx((7 + 1 + 1) / 3, abs=0.2)


@pytest.mark.parametrize(
    ("aside", "fresh", "expected"),
    [
        ({RULE: 2.0}, {RULE: 2.0}, "held"),
        ({RULE: 2.0}, {RULE: -9.0}, "held"),  # the data sets kept aside decide alone
        ({RULE: 0.0, ("pretrained_xavier", 1.0): 0.0}, {RULE: 3.0}, "held where made"),
        ({RULE: 0.0, ("pretrained_xavier", 1.0): 0.0}, {RULE: 0.0}, "not held"),
        ({RULE: 2.0, ("pretrained_xavier", 1.0): 4.0}, {RULE: 9.0}, "lost"),  # a gain, but a loss to standardized rows
        ({RULE: -2.0, ("pretrained_xavier", 1.0): -4.0}, {RULE: 9.0}, "lost"),
    ],
)
def test_each_outcome_follows_from_the_criteria(
    aside: dict[tuple[str, float], float], fresh: dict[tuple[str, float], float], expected: str
) -> None:
    files = [
        part_of(part, {data_set.task: {**GAINS, **gains} for data_set in PARTS[part].sets})
        for part, gains in zip(registered.PARTS, (aside, fresh), strict=True)
    ]
    blocks = registered_blocks(files)
    assert outcome(blocks) == expected
    assert registered.OUTCOMES[expected] in registered_page.headline(blocks)


def without_a_run(file: ResultsFile, recipe: str) -> ResultsFile:
    """Return the results without one run of the last block with this recipe."""
    runs = file.experiment.blocks[-1].runs
    removed = next(planned.spec.key for planned in runs if planned.spec.sides[0][1].recipe == recipe)
    return ResultsFile(file.experiment, {key: result for key, result in file.results.items() if key != removed})


def test_missing_runs_of_raw_rows_change_only_the_regret() -> None:
    file = part_of(KEPT_ASIDE)
    blocks, complete = registered_blocks([without_a_run(file, "pretrained")]), registered_blocks([file])
    assert (outcome(blocks), outcome(complete)) == ("held", "held")
    assert judge(blocks) == judge(complete)
    assert regret(blocks, ("pretrained", 1.0)) is None
    assert regret(blocks, ("pretrained", 0.1)) == regret(complete, ("pretrained", 0.1))


def test_a_missing_run_leaves_the_test_open() -> None:
    file = part_of(KEPT_ASIDE, {"rte": {**GAINS, RULE: -9.0}})
    blocks = registered_blocks([without_a_run(file, "xavier")])
    assert len(missing_parts(blocks, KEPT_ASIDE)) == 1
    assert outcome(blocks) == "open"
    assert outcome(registered_blocks([part_of(KEPT_ASIDE, fewer_seeds=1)])) == "open"
    fewer = replace(file.experiment, blocks=file.experiment.blocks[1:])
    assert outcome(registered_blocks([ResultsFile(fewer, file.results)])) == "open"
    # If the data sets kept aside decide, no fresh seeds are needed; other outcomes need them.
    assert outcome(registered_blocks([part_of(KEPT_ASIDE)])) == "held"
    weak = {data_set.task: {**GAINS, RULE: 0.0, ("pretrained_xavier", 1.0): 0.0} for data_set in PARTS[KEPT_ASIDE].sets}
    assert outcome(registered_blocks([part_of(KEPT_ASIDE, weak)])) == "open"


def test_a_diverged_run_is_counted_and_its_seed_left_out_of_the_pairs() -> None:
    file = part_of(KEPT_ASIDE)
    first = next(planned.spec for planned in file.experiment.blocks[1].runs if planned.spec.seed == 203)
    diverged = replace(file.results[first.key], scores={}, diverged=True)
    blocks = registered_blocks([ResultsFile(file.experiment, {**file.results, first.key: diverged})])
    assert [dict(block.unscored) for block in blocks] == [{}, {("xavier", 1.0): 1}, *[{}] * 5]
    assert outcome(blocks) == "held"
    assert judge(blocks).differences["random rows"].n == judge(registered_blocks([file])).differences["random rows"].n
    assert 203 not in blocks[1].scores["xavier", 1.0]


def test_a_diverged_run_of_one_start_does_not_stand_for_a_missing_seed_of_another() -> None:
    file = part_of(KEPT_ASIDE)
    block = file.experiment.blocks[1]
    raw = next(planned.spec for planned in block.runs if planned.spec.sides[0][1].recipe == "pretrained")
    diverged = {**file.results, raw.key: replace(file.results[raw.key], scores={}, diverged=True)}
    fewer = tuple(
        planned for planned in block.runs if planned.spec.seed != 203 or planned.spec.sides[0][1].recipe != "xavier"
    )
    blocks = (file.experiment.blocks[0], replace(block, runs=fewer), *file.experiment.blocks[2:])
    found = registered_blocks([ResultsFile(replace(file.experiment, blocks=blocks), diverged)])
    assert dict(found[1].unscored) == {(raw.sides[0][1].recipe, 1.0): 1}
    assert outcome(found) == "open"


def test_classifiers_are_also_scored_at_the_epoch_of_the_lowest_loss() -> None:
    blocks = registered_blocks([part_of(KEPT_ASIDE)])
    for block in blocks:
        assert block.scores.keys() == block.by_loss.keys()
        for start, by_seed in block.scores.items():
            shift = 0 if block.data == "ted" else 7
            other = {seed: score - shift for seed, score in by_seed.items()}
            assert block.by_loss[start] == pytest.approx(other)


def test_regret_is_the_distance_to_the_best_start_averaged_over_data_sets() -> None:
    blocks = registered_blocks([part_of(KEPT_ASIDE), part_of(registered.FRESH_SEEDS)])
    aside = [block for block in blocks if block.part == KEPT_ASIDE]
    assert regret(aside, RULE) == pytest.approx(0.0, abs=0.05)
    assert regret(aside, ("pretrained_xavier", 1.0)) == pytest.approx(1.0, abs=0.15)
    assert regret(aside, ("pretrained", 0.1)) == pytest.approx(3.0, abs=0.15)
    # Raw rows are not run with fresh seeds.
    assert regret(blocks, ("pretrained", 1.0)) is None


def test_a_training_that_is_shorter_than_the_rule_requires_is_named() -> None:
    blocks = registered_blocks([part_of(KEPT_ASIDE)])
    assert all(block.long_enough for block in blocks)  # 9 epochs, and random rows are best after two
    late = replace(blocks[0], best_random=7.0)
    page = "\n".join(registered_page._reading([late, *blocks[1:]]))
    assert blocks[0].name in page
    assert blocks[1].name not in page


def test_make_results_writes_the_page(tmp_path: Path) -> None:
    folder, out = tmp_path / "results", tmp_path / "RESULTS.md"
    folder.mkdir()
    for part in registered.PARTS:
        file = part_of(part)
        write_compact(file.experiment, file.results, folder / f"{part}.results.json")
    main([str(folder), str(out), "--no-figures"])
    page = (folder / "registered_rule.md").read_text("utf-8")
    blocks = registered_blocks([part_of(part) for part in registered.PARTS])
    assert registered_page.headline(blocks) in page
    assert "registered_rule.md" in out.read_text("utf-8")
    for difference in judge(blocks).differences.values():
        assert f"| {difference.mean:+.2f} |" in page
    assert registered_page.page([]) == []


def test_an_incomplete_part_is_not_judged(tmp_path: Path) -> None:
    page = registered_page.page([part_of(KEPT_ASIDE, fewer_seeds=1)])
    assert not [line for line in page if line.startswith("|")]
    assert isinstance(registered_blocks([part_of(KEPT_ASIDE)])[0], RegisteredBlock)
