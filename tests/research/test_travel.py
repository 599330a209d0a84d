"""The rate of pre-trained rows: rules judged by regret, on the lengths of training that one run yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Block, Planned
from embinit.experiments.runs.result import Result
from embinit.reports.results_reader import ResultsFile
from embinit.statistics import pool_blocks
from research import power, rates, travel_page
from research.travel import RULES, Length, Rule, factor, judge, lengths, regret_of_random, standardized
from tests.reports import made

#: Rate of the rows -> BLEU after each epoch. Slower rows reach a higher BLEU, but later.
CURVES = {0.1: (10.0, 20.0, 30.0, 40.0), 1.0: (20.0, 30.0, 35.0, 35.0)}
RANDOM = (15.0, 25.0, 24.0, 23.0)
TENTH = next(rule for rule in RULES if rule.fixed == 0.1)
FULL = next(rule for rule in RULES if rule.fixed == 1.0)


def run(recipe: str, rate: float, seed: int, curve: tuple[float, ...], **training: float) -> tuple[Planned, Result]:
    settings = {"batch": 2900, "epochs": len(curve), **({} if rate == 1 else {"found_rate": rate}), **training}
    spec = made.spec(recipe, seed, **settings)
    history: list[dict[str, float | None]] = [{"valid loss": 5 - score / 10, "bleu": score} for score in curve]
    result = replace(made.result(spec, curve[-1] + seed), history=history, best_epoch=curve.index(max(curve)) + 1)
    return Planned(spec, (("recipe", recipe),)), result


def results_file() -> ResultsFile:
    pairs = [run("xavier", 1.0, seed, RANDOM) for seed in (1, 2)]
    pairs += [run("pretrained_xavier", rate, seed, curve) for rate, curve in CURVES.items() for seed in (1, 2)]
    pairs += [run("xavier", 1.0, seed, RANDOM, embedding_rate=0.1) for seed in (1, 2)]
    block = Block("Multi30k, made", tuple(planned for planned, _ in pairs), "bleu", "test")
    experiment = made.experiment(block, name="travel")
    return ResultsFile(experiment, {planned.spec.key: result for planned, result in pairs})


def length(
    data: str = "a", epochs: int = 10, scores: Mapping[float, float] | None = None, random: float = 0.0
) -> Length:
    by_rate = scores or {0.01: 1.0, 0.1: 3.0, 1.0: 2.0}
    return Length(
        data, data, data == "mt", "pretrained_xavier", epochs, 100 * epochs, 1e-4, 0.01, by_rate, random, True
    )


def test_the_first_epochs_of_a_run_are_a_shorter_training() -> None:
    trainings = lengths(results_file())
    by_epochs = {length.epochs: length for length in trainings}
    assert sorted(by_epochs) == [2, 4]
    assert by_epochs[2].scores == {0.1: 20.0, 1.0: 30.0}
    assert by_epochs[4].scores == {0.1: 40.0, 1.0: 35.0}
    assert (by_epochs[2].best, by_epochs[4].best) == (1.0, 0.1)
    assert by_epochs[4].random == 25.0
    # Random rows are best after two epochs, so three are enough.
    assert [length.epochs for length in standardized(trainings)] == [4]
    assert [length.epochs for length in standardized(trainings, finished=False)] == [2]
    assert by_epochs[4].steps == 40
    assert by_epochs[4].travel(0.1) == pytest.approx(0.1 * 2e-4 * 40 / by_epochs[4].std)


def test_a_missing_run_is_an_error() -> None:
    file = results_file()
    first = file.experiment.blocks[0].runs[0].spec.key
    with pytest.raises(EmbinitError, match=first):
        lengths(ResultsFile(file.experiment, {key: result for key, result in file.results.items() if key != first}))


def test_regret_is_the_distance_to_the_best_of_all_rates_and_of_random_rows() -> None:
    training = length()
    assert training.regret(training.score(0.1)) == 0
    assert training.regret(training.score(0.01)) == 2
    assert training.score(10**-1.5) == pytest.approx(2.0)
    assert training.score(1e-9) == 1.0
    assert length(random=5.0).regret(3.0) == 2
    assert regret_of_random([length(random=1.0), length("b", random=3.0)]).mean == pytest.approx(1.0)


def test_a_rule_is_fitted_at_its_optimum_and_never_exceeds_the_full_rate() -> None:
    steps = next(rule for rule in RULES if rule.name == "c / steps")
    # The best rate is 100 / steps.
    trainings = [length("a", 10), length("b", 100, {0.001: 1.0, 0.01: 3.0, 0.1: 1.0})]
    judged = judge(steps, trainings)
    assert judged.constants[False] == pytest.approx(100)
    assert judged.fitted.worst == pytest.approx(0, abs=1e-9)
    assert judged.left_out.worst == pytest.approx(0, abs=1e-9)
    assert judge(TENTH, trainings).fitted.worst == 2
    assert factor(steps, length(epochs=1), {False: 1e6}) == 1.0


def test_a_left_out_data_set_does_not_affect_its_constant() -> None:
    constant = Rule("constant", lambda _, value: value)
    trainings = [
        length("a", scores={0.01: 0.0, 0.1: 9.0, 1.0: 0.0}),
        length("b", scores={0.01: 0.0, 0.1: 0.0, 1.0: 9.0}),
    ]
    by_data = judge(constant, trainings).by_data
    assert (by_data["a"].worst, by_data["b"].worst) == (pytest.approx(9.0), pytest.approx(9.0))


def test_data_sets_have_equal_weight_whatever_their_number_of_lengths() -> None:
    trainings = [length("a", scores={0.1: 0.0, 1.0: 4.0})] * 9 + [length("b")]
    assert judge(TENTH, trainings).fitted.mean == pytest.approx(2.0)
    assert judge(FULL, trainings).fitted.mean == pytest.approx(0.5)


def test_slow_rows_are_paired_with_every_comparator_by_seed() -> None:
    settings = rates.rate_settings([results_file(), results_file()])
    slow = next(setting for setting in settings if setting.mechanism == "found_rate")
    assert slow.differences("random rows") == {1: 17.0, 2: 17.0}
    assert slow.differences("standardized rows at the full rate") == {1: 5.0, 2: 5.0}
    assert slow.differences("random rows at a tenth") == {1: 17.0, 2: 17.0}
    assert slow.differences("raw rows") == {}
    pooled = rates.pooled([slow, slow], "random rows")["multi30k"]
    assert pooled == pool_blocks([{1: 17.0, 2: 17.0}] * 2)
    assert rates.seed_std([slow], "random rows") == {"multi30k": 0.0}


def test_power_is_half_of_five_percent_without_an_effect_and_grows_with_it() -> None:
    design = power.Design(
        "made", 0.5, 0.3, (), (power.DataSet("a", "a", 2, 10, 1.0, ""), power.DataSet("b", "b", 1, 5, 1.0, ""))
    )
    assert 0.015 < power.power(design, 0.0) < 0.035
    assert power.power(design, 0.5) < power.power(design, 1.0) < power.power(design, 2.0)
    assert power.power(design, 0.0, -0.3) == pytest.approx(power.power(design, 0.3), abs=0.03)
    assert all(registered.sets for registered in power.designs())


def test_both_criteria_hold_no_more_often_than_the_harder_one() -> None:
    design = power.together(power.designs())
    assert len(design.sets) == sum(len(part.sets) for part in power.designs())
    gain, no_loss = power.power(design, 0.3), power.power(design, 0.0, -design.margin)
    both = power.power_of_both(design, 0.3, 0.0)
    # More often than if the criteria were independent, because the differences share the runs of the rule.
    assert gain * no_loss + 0.02 < both < min(gain, no_loss) + 0.02
    assert power.power_of_both(design, 9.0, 9.0) == 1.0
    assert power.power_of_both(design, 9.0, 0.0) == pytest.approx(no_loss, abs=0.03)


def test_the_page_needs_the_experiment(tmp_path: Path) -> None:
    other = replace(results_file().experiment, name="other")
    assert travel_page.page([ResultsFile(other, {})]) == []
    assert travel_page.figure([ResultsFile(other, {})], tmp_path / "a.svg") == []
