"""The paper's findings against results that bear them out, contradict them, or leave them open."""

from __future__ import annotations

from dataclasses import replace

from embinit.experiments.experiment import Block, Planned
from embinit.experiments.runs.result import Result
from embinit.reports.analysis.rows import difference
from embinit.reports.metrics import metric
from embinit.reports.model import Summary
from embinit.reports.summarize import summarize
from research.findings import Case, Claim, findings, holds, tallied
from tests.reports import made

SEEDS = range(8)


def report(levels: dict[str, float], embedding: str = "glove", seeds: range = SEEDS) -> Summary:
    block = made.block(seeds=seeds, paper=("1", "multi30k", embedding))
    return summarize(made.experiment(block), made.results(block, levels=levels))


def claim(summaries: list[Summary], text: str) -> Claim:
    (found,) = [one for finding in findings(summaries) for one in finding.claims if text in one.text]
    return found


def test_results_like_the_papers_bear_its_findings_out() -> None:
    said = [report(made.LEVELS)]
    assert claim(said, "wide rows").outcome == "confirmed: borne out in 1 of 1 case"
    assert claim(said, "standardized to Xavier").outcome.startswith("confirmed")
    assert claim(said, "shuffled").outcome.startswith("confirmed")
    assert claim(said, "random ones of the same").outcome.startswith("confirmed")
    assert claim(said, "nearly as narrow").outcome == "not tested"
    (case,) = claim(said, "wide rows").cases
    assert case.paper is not None
    assert round(case.paper, 1) == -3.2


def test_results_the_other_way_round_refute_them() -> None:
    said = [report({**made.LEVELS, "pretrained": 40.0})]
    assert claim(said, "wide rows").outcome == "refuted: contradicted in 1 of 1 case"


def test_noise_leaves_them_open() -> None:
    said = [report(dict.fromkeys(made.RECIPES, 37.0))]
    assert claim(said, "wide rows").outcome == "open: open in 1 of 1 case"


def test_at_least_as_well_is_borne_out_by_better_and_contradicted_by_worse() -> None:
    better = [report({**made.LEVELS, "pretrained": 39.0}, "mBERT")]
    worse = [report(made.LEVELS, "mBERT")]
    assert claim(better, "nearly as narrow").outcome.startswith("confirmed")
    assert claim(worse, "nearly as narrow").outcome.startswith("refuted")


def test_runs_that_stand_in_two_reports_count_once() -> None:
    one = report(made.LEVELS)
    assert len(claim([one, one], "wide rows").cases) == 1


def test_what_positions_help_is_a_difference_of_differences() -> None:
    gains = {"xavier": 8.0, "pretrained": 2.0, "pretrained_xavier": 7.5}
    runs, found = [], dict[str, Result]()
    for recipe, gain in gains.items():
        for positions in ("sinusoidal", "none"):
            for seed in SEEDS:
                spec = made.spec(recipe, seed, positions=positions)
                runs.append(Planned(spec, (("recipe", recipe), ("model.positions", positions))))
                level = 30 + (gain if positions == "sinusoidal" else 0) + made.noise(recipe + positions, seed)
                found[spec.key] = made.result(spec, level)
    block = Block("Table 3", tuple(runs), "bleu", "test", ("3", "multi30k", "glove"))
    said = claim([summarize(made.experiment(block), found)], "less than they help Xavier")
    (case,) = said.cases
    assert said.outcome.startswith("confirmed")
    assert abs(case.difference.mean - (-6)) < 0.5
    assert case.paper is not None
    assert round(case.paper, 1) == round((34.1 - 31.9) - (37.3 - 29.6), 1)


# ---------------------------------------------------------------- beside the paper, and where


def case(
    outcome: str, ours: float = -3.0, paper: float | None = -3.2, spread: float | None = 0.8, **fields: str
) -> Case:
    score = metric(fields.get("score", "bleu"), "test")
    found = difference({"1": ours, "2": ours + 0.1}, {"1": 0.0, "2": 0.0}, "xavier", score)
    assert found is not None
    return Case("block", fields.get("task", "Multi30k"), score, found, paper, spread, outcome)


def test_a_case_says_whether_the_papers_difference_has_the_same_sign_where_it_is_clear() -> None:
    assert case("borne out").said == "borne out, as in the paper"
    assert case("contradicted", ours=2.0, paper=0.9).said == "contradicted, as in the paper"
    assert case("contradicted", ours=2.0).said == "contradicted, unlike the paper"
    # +0.6 with σ 0.6 and 0.5 is within the paper's own noise.
    assert case("contradicted", ours=2.0, paper=0.6, spread=0.78).said == "contradicted"
    assert case("contradicted", ours=2.0, paper=0.8).said == "contradicted"
    assert case("borne out", paper=None, spread=None).said == "borne out"
    assert case("open").said == "open"


def test_the_papers_spread_is_that_of_both_its_rows() -> None:
    (found,) = claim([report(made.LEVELS)], "wide rows").cases
    assert found.spread is not None
    assert round(found.spread, 3) == round((0.4**2 + 0.7**2) ** 0.5, 3)
    assert found.said == "borne out, as in the paper"
    assert found.task == "Multi30k"


def test_a_claim_says_on_which_kinds_of_tasks_it_holds() -> None:
    sst = {"score": "accuracy", "task": "SST-2"}
    split = [case("borne out"), case("open"), case("contradicted", **sst), case("open", **sst)]
    assert holds(split) == "holds on translation (Multi30k); not on classification (SST-2)"
    assert holds([*split[:1], case("open", **sst)]) == (
        "holds on translation (Multi30k); open on classification (SST-2)"
    )
    assert holds([case("open"), case("open")]) == "open on translation (Multi30k)"
    assert holds([case("borne out")]) == ""
    tatoeba = {"task": "Tatoeba"}
    assert holds([*split, case("open", **tatoeba)]) == (
        "holds on translation (Multi30k); not on classification (SST-2); open on Tatoeba"
    )
    assert holds([case("borne out"), case("borne out", **tatoeba)]) == "holds on translation (Multi30k, Tatoeba)"


def test_where_a_kind_of_task_is_divided_tasks_are_named() -> None:
    mnli = {"score": "accuracy", "task": "MNLI"}
    sst = {"score": "accuracy", "task": "SST-2"}
    assert holds([case("borne out"), case("borne out", **mnli), case("contradicted", **sst)]) == (
        "holds on Multi30k, MNLI; not on SST-2"
    )
    assert holds([case("borne out"), case("borne out", **sst), case("contradicted", **sst)]) == (
        "holds on translation (Multi30k); divided on classification (SST-2)"
    )


def test_the_validation_loss_is_judged_beside_the_score() -> None:
    """Scores that noise explains, losses that it does not: lower is better."""
    block = made.block(seeds=SEEDS, paper=("1", "multi30k", "glove"))
    results = made.results(block, levels=dict.fromkeys(made.RECIPES, 37.0))
    shifts = {"xavier": 0.0, "pretrained": 0.3, "pretrained_xavier": -0.2}
    for key, result in results.items():
        shift = shifts.get(result.spec.sides[0][1].recipe, 0.0) * (1 + 0.01 * (result.spec.seed % 2))
        history = [{**record, "valid loss": 1.5 + 0.01 * result.spec.seed + shift} for record in result.history]
        results[key] = replace(result, history=history)
    said = [summarize(made.experiment(block), results)]
    wide, standard = claim(said, "wide rows"), claim(said, "random ones of the same")
    assert [case.outcome for case in (*wide.cases, *standard.cases)] == ["open", "open"]
    assert [case.loss_outcome for case in (*wide.cases, *standard.cases)] == ["borne out", "borne out"]
    assert tallied(wide.cases, by_loss=True) == "borne out in 1 of 1 case"
    (case,) = standard.cases
    assert case.loss is not None
    assert round(case.loss.mean, 6) == -0.201
    (worse,) = claim(said, "standardized to Xavier").cases  # −0.2 against +0.3
    assert worse.loss_outcome == "borne out"
