"""The paper's findings on results that support them, contradict them, or leave them open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embinit.experiments.experiment import Block, Planned
from embinit.experiments.runs.result import Result
from embinit.reports.analysis.rows import difference
from embinit.reports.metrics import metric
from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from research.findings import Case, Claim, Support, findings, pooled_by_task, support, support_by_kind
from tests.reports import made

SEEDS = range(8)


def report(levels: dict[str, float], embedding: str = "glove", seeds: range = SEEDS) -> Summary:
    block = made.block(seeds=seeds, paper=("1", "multi30k", embedding))
    return summarize(made.experiment(block), made.results(block, levels=levels))


def claim(summaries: list[Summary], words: str) -> Claim:
    (match,) = [claim for finding in findings(summaries) for claim in finding.claims if words in claim.text]
    return match


def test_results_like_the_papers_support_its_findings() -> None:
    summaries = [report(made.LEVELS)]
    for words in ("Wide rows", "standardized to Xavier", "shuffled", "random ones of the same"):
        assert claim(summaries, words).support == Support(1, 0, 1)
    assert str(claim(summaries, "Wide rows").support) == "supported in 1 of 1 case (against in 0)"
    assert str(claim(summaries, "nearly as narrow").support) == "not tested"
    (case,) = claim(summaries, "Wide rows").cases
    assert case.paper is not None
    assert round(case.paper, 1) == -3.2


def test_opposite_results_are_against_them() -> None:
    summaries = [report({**made.LEVELS, "pretrained": 40.0})]
    assert claim(summaries, "Wide rows").support == Support(0, 1, 1)


def test_noise_leaves_them_open() -> None:
    summaries = [report(dict.fromkeys(made.RECIPES, 37.0))]
    assert claim(summaries, "Wide rows").support == Support(0, 0, 1)


def test_at_least_as_well_is_supported_by_better_and_contradicted_by_worse() -> None:
    better = [report({**made.LEVELS, "pretrained": 39.0}, "mBERT")]
    worse = [report(made.LEVELS, "mBERT")]
    assert claim(better, "nearly as narrow").support == Support(1, 0, 1)
    assert claim(worse, "nearly as narrow").support == Support(0, 1, 1)


def test_runs_in_two_reports_count_once() -> None:
    summary = report(made.LEVELS)
    assert len(claim([summary, summary], "Wide rows").cases) == 1


def test_the_gain_from_positions_is_a_difference_of_differences() -> None:
    gains = {"xavier": 8.0, "pretrained": 2.0, "pretrained_xavier": 7.5}
    runs, results = [], dict[str, Result]()
    for recipe, gain in gains.items():
        for positions in ("sinusoidal", "none"):
            for seed in SEEDS:
                spec = made.spec(recipe, seed, positions=positions)
                runs.append(Planned(spec, (("recipe", recipe), ("model.positions", positions))))
                level = 30 + (gain if positions == "sinusoidal" else 0) + made.noise(recipe + positions, seed)
                results[spec.key] = made.result(spec, level)
    block = Block("Table 3", tuple(runs), "bleu", "test", ("3", "multi30k", "glove"))
    tested = claim([summarize(made.experiment(block), results)], "less than they help Xavier")
    (case,) = tested.cases
    assert tested.support == Support(1, 0, 1)
    assert abs(case.difference.mean - (-6)) < 0.5
    assert case.paper is not None
    assert round(case.paper, 1) == round((34.1 - 31.9) - (37.3 - 29.6), 1)


# ---------------------------------------------------------------- beside the paper, and where


def case(
    outcome: str, ours: float = -3.0, paper: float | None = -3.2, spread: float | None = 0.8, **fields: str
) -> Case:
    score = metric(fields.get("score", "bleu"), "test")
    gap = difference({"1": ours, "2": ours + 0.1}, {"1": 0.0, "2": 0.0}, "xavier", score)
    assert gap is not None
    return Case("block", fields.get("task", "Multi30k"), score, gap, paper, spread, outcome)


def test_a_case_names_the_sign_of_the_papers_difference_if_it_is_clear() -> None:
    assert case("supported").outcome_text == "supported, as in the paper"
    assert case("against", ours=2.0, paper=0.9).outcome_text == "against, as in the paper"
    assert case("against", ours=2.0).outcome_text == "against, unlike the paper"
    # +0.6 with σ 0.6 and 0.5 is within the paper's own noise.
    assert case("against", ours=2.0, paper=0.6, spread=0.78).outcome_text == "against"
    assert case("against", ours=2.0, paper=0.8).outcome_text == "against"
    assert case("supported", paper=None, spread=None).outcome_text == "supported"
    assert case("open").outcome_text == "open"


def test_the_papers_spread_combines_both_its_rows() -> None:
    (case,) = claim([report(made.LEVELS)], "Wide rows").cases
    assert case.spread is not None
    assert round(case.spread, 3) == round((0.4**2 + 0.7**2) ** 0.5, 3)
    assert case.outcome_text == "supported, as in the paper"
    assert case.task == "multi30k de-en"


def test_a_claim_is_counted_by_kind_of_task() -> None:
    sst = {"score": "accuracy", "task": "SST-2"}
    cases = [case("supported"), case("open"), case("against", **sst), case("open", **sst), case("supported", **sst)]
    assert support(cases) == Support(2, 1, 5)
    assert support_by_kind(cases) == {"translation": Support(1, 0, 2), "classification": Support(1, 1, 3)}
    assert support([]) == Support(0, 0, 0)


def test_blocks_of_one_data_set_are_pooled_by_seed() -> None:
    """Two equal blocks give the same interval as one of them."""
    single = replace(case("supported"), by_seed={"1": -1.0, "2": -3.0, "3": -2.0})
    (alone,) = pooled_by_task([single]).values()
    (twice,) = pooled_by_task([single, single]).values()
    assert (twice.mean, twice.low, twice.high) == (alone.mean, alone.low, alone.high) == (-2, alone.low, alone.high)
    assert (twice.blocks, twice.n) == (2, 3)
    apart = pooled_by_task([single, replace(single, task="Tatoeba")])
    assert {task: pooled.blocks for task, pooled in apart.items()} == {"Multi30k": 1, "Tatoeba": 1}


def test_a_case_keeps_its_difference_at_each_seed() -> None:
    (case,) = claim([report(made.LEVELS)], "Wide rows").cases
    assert len(case.by_seed) == case.difference.n == 8
    assert sum(case.by_seed.values()) / 8 == pytest.approx(case.difference.mean)


def test_the_validation_loss_is_judged_beside_the_score() -> None:
    """Noise explains the scores but not the losses, of which lower ones are better."""
    block = made.block(seeds=SEEDS, paper=("1", "multi30k", "glove"))
    results = made.results(block, levels=dict.fromkeys(made.RECIPES, 37.0))
    shifts = {"xavier": 0.0, "pretrained": 0.3, "pretrained_xavier": -0.2}
    for key, result in results.items():
        shift = shifts.get(result.spec.sides[0][1].recipe, 0.0) * (1 + 0.01 * (result.spec.seed % 2))
        history = [{**record, "valid loss": 1.5 + 0.01 * result.spec.seed + shift} for record in result.history]
        results[key] = replace(result, history=history)
    summaries = [summarize(made.experiment(block), results)]
    wide, standard = claim(summaries, "Wide rows"), claim(summaries, "random ones of the same")
    assert [case.outcome for case in (*wide.cases, *standard.cases)] == ["open", "open"]
    assert [case.loss_outcome for case in (*wide.cases, *standard.cases)] == ["supported", "supported"]
    assert support(wide.cases, by_loss=True) == Support(1, 0, 1)
    (case,) = standard.cases
    assert case.loss is not None
    assert round(case.loss.mean, 6) == -0.201
    (worse,) = claim(summaries, "standardized to Xavier").cases  # −0.2 against +0.3
    assert worse.loss_outcome == "supported"
