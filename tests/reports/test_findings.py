"""The paper's findings against results that bear them out, contradict them, or leave them open."""

from __future__ import annotations

from embinit.experiments.experiment import Block, Planned
from embinit.experiments.results import Result
from embinit.reports.findings import Claim, findings
from embinit.reports.summary import summarize
from embinit.reports.types import Summary
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
