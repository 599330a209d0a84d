"""From results to a report: what is counted, compared, marked, missing, and said."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from embinit import statistics
from embinit.experiments import spec as spec_module
from embinit.experiments.experiment import Baseline, Block, Planned
from embinit.experiments.runs.result import Result
from embinit.reports.analysis.samples import SplitTexts
from embinit.reports.model import Part, Summary
from embinit.reports.scores import ScoreName, TableRow
from embinit.reports.summarize import summarize
from embinit.reports.verdicts import HighestMean, InBlock, NoneBetter, NotRun, StartTallies, StartTally, UseStart
from embinit.reports.writers import tables
from tests.reports import made


def report(*blocks: Block, results: dict[str, Result] | None = None, **fields: object) -> Summary:
    return summarize(made.experiment(*blocks, **fields), made.results(*blocks) if results is None else results)


def row(part: Part, label: str) -> TableRow:
    return next(one for one in part.rows if one.label == label)


def at(scores: dict[str, list[float]], seeds: int) -> tuple[Block, dict[str, Result]]:
    """Return a block whose recipes have exactly these scores."""
    block = made.block(recipes=tuple(scores), seeds=range(seeds))
    found = {}
    for planned in block.runs:
        listed = scores[planned.axes[0][1]]
        if planned.spec.seed < len(listed):
            found[planned.spec.key] = made.result(planned.spec, listed[planned.spec.seed])
    return block, found


def test_a_cell_is_mean_sigma_and_interval_of_its_seeds() -> None:
    block, found = at({"xavier": [37.0, 37.5, 38.0], "pretrained": [34.0, 34.1, 34.2]}, 3)
    (part,) = report(block, results=found).parts
    stated, expected = row(part, "xavier").statistic, statistics.mean_interval([37.0, 37.5, 38.0])
    assert stated is not None
    assert (stated.mean, stated.std, stated.n) == (37.5, 0.5, 3)
    assert (stated.low, stated.high, stated.method) == (expected.low, expected.high, "t")
    assert row(part, "xavier").best
    assert not row(part, "pretrained").best


def test_differences_are_paired_by_seed_and_corrected_over_the_whole_report() -> None:
    one, two = made.block(), made.block("SST-2", task="sst2")
    summary = report(one, two)
    compared = [found.difference for part in summary.parts for found in part.rows if found.difference]
    assert len(compared) == 6
    raw = [found.t_p for found in compared]
    assert None not in raw
    assert [found.holm_p for found in compared] == statistics.holm([p for p in raw if p is not None])
    ours, base = row(summary.parts[0], "pretrained_xavier"), row(summary.parts[0], "xavier")
    assert ours.difference is not None
    expected = sum(ours.scores[seed] - base.scores[seed] for seed in base.scores) / 5
    assert ours.difference.mean == pytest.approx(expected, abs=1e-9)
    assert base.difference is None


@pytest.mark.parametrize(("seeds", "marked"), [(3, False), (5, False), (6, True), (10, True)])
def test_a_mark_needs_seeds_with_which_the_exact_test_could_show_it(seeds: int, marked: bool) -> None:
    (part,) = report(made.block(seeds=range(seeds))).parts
    worse = row(part, "pretrained").difference
    assert worse is not None
    assert worse.verdict == "worse"
    assert bool(worse.mark) is marked


def test_accuracy_is_shown_in_per_cent_and_bleu_as_it_is() -> None:
    one, two = made.block(), made.block("SST-2", task="sst2")
    first, second = report(one, two).parts
    assert row(first, "xavier").statistic.mean == pytest.approx(37.3, abs=1)  # type: ignore[union-attr]
    assert row(second, "xavier").statistic.mean == pytest.approx(82.3, abs=1)  # type: ignore[union-attr]
    assert row(second, "xavier").others[ScoreName("valid", "macro_f1")].mean == pytest.approx(81.3, abs=1)


def test_missing_seeds_and_missing_rows_are_counted_and_said() -> None:
    block = made.block()
    found = made.results(block)
    for planned in block.runs:
        recipe, seed = planned.axes[0][1], planned.spec.seed
        if (recipe == "pretrained" and seed > 1) or recipe == "pretrained_shuffled":
            del found[planned.spec.key]
    summary = report(block, results=found)
    (part,) = summary.parts
    assert (len(row(part, "pretrained").scores), row(part, "pretrained").planned) == (2, 5)
    assert row(part, "pretrained").difference.n == 2  # type: ignore[union-attr]
    assert row(part, "pretrained_shuffled").statistic is None
    assert row(part, "pretrained_shuffled").difference is None
    assert "8 runs of 20 are missing." in summary.caveats
    assert (summary.cost.runs, summary.cost.planned) == (12, 20)


def test_a_diverged_run_is_left_out_said_and_its_row_is_never_best() -> None:
    block = made.block(recipes=("xavier", "pretrained_xavier"))
    found = made.results(block)
    lost = next(planned.spec for planned in block.runs if planned.axes[0][1] == "pretrained_xavier")
    found[lost.key] = made.result(lost, 0.0, diverged=True)
    summary = report(block, results=found)
    (part,) = summary.parts
    wounded = row(part, "pretrained_xavier")
    assert (wounded.diverged, wounded.unscored, wounded.statistic.n) == (1, 1, 4)  # type: ignore[union-attr]
    assert row(part, "xavier").best
    assert not wounded.best
    (verdict,) = summary.answer.verdicts
    assert isinstance(verdict, NoneBetter)
    assert verdict.diverged == ("pretrained_xavier",)
    assert part.notes[0] == "pretrained_xavier: 1 run of 5 diverged, 1 without a score."
    assert any(caveat.startswith("1 run has no score.") for caveat in summary.caveats)
    assert part.curves["validation BLEU"][1].mean[-1] is not None


def test_a_run_without_a_score_counts_in_neither_epochs_nor_losses() -> None:
    block = made.block(recipes=("xavier", "pretrained_xavier"))
    results = made.results(block)
    lost = next(planned.spec for planned in block.runs if planned.axes[0][1] == "pretrained_xavier")
    results[lost.key] = made.result(lost, 0.0, diverged=True)
    assert any(record["valid loss"] is not None for record in results[lost.key].history)
    scored = [result for result in results.values() if result.spec.sides == lost.sides and result.best_epoch]
    pretrained = row(report(block, results=results).parts[0], "pretrained_xavier")
    assert pretrained.epoch == sum(result.best_epoch for result in scored) / len(scored)
    assert set(pretrained.losses) == {str(result.spec.seed) for result in scored} == set(pretrained.scores)


def test_a_start_without_rivals_in_its_setting_is_not_the_best() -> None:
    (part,) = report(made.block(recipes=("xavier",))).parts
    assert [start.best for start in part.rows] == [False]
    assert any(start.best for start in report(made.block(recipes=("xavier", "pretrained"))).parts[0].rows)


def test_equal_means_are_both_best() -> None:
    block, found = at(
        {"xavier": [37.0, 38.0, 37.5], "pretrained": [38.0, 37.0, 37.5], "pretrained_xavier": [30, 31, 32]}, 3
    )
    (part,) = report(block, results=found).parts
    assert [one.best for one in part.rows] == [True, True, False]


def test_the_best_is_the_lowest_where_lower_is_better() -> None:
    block = replace(made.block(seeds=range(6)), score="valid loss")
    found = {}
    for planned, level in zip(block.runs, [2.0] * 6 + [3.0] * 6 + [1.5] * 6 + [3.1] * 6, strict=True):
        loss = {"test": {"valid loss": level + 0.01 * planned.spec.seed}}
        found[planned.spec.key] = replace(made.result(planned.spec, 1.0), scores=loss)
    # Equal differences leave no spread, so one seed is moved.
    key = block.runs[12].spec.key
    found[key] = replace(found[key], scores={"test": {"valid loss": 1.45}})
    summary = report(block, results=found)
    better = row(summary.parts[0], "pretrained_xavier")
    assert better.best
    assert better.difference.verdict == "better"  # type: ignore[union-attr]
    assert better.difference.improvement == 1.0  # type: ignore[union-attr]
    (verdict,) = summary.answer.verdicts
    assert isinstance(verdict, UseStart)
    assert verdict.best.start == "pretrained_xavier"
    assert verdict.best.differences[0].mean == pytest.approx(-0.5, abs=0.02)


def test_settings_are_compared_with_their_own_baseline() -> None:
    runs, found = [], {}
    for recipe in ("xavier", "pretrained"):
        for norm, lift in (("post", 0.0), ("pre", 5.0)):
            for seed in range(6):
                spec = made.spec(recipe, seed, norm=norm)
                runs.append(Planned(spec, (("recipe", recipe), ("model.norm", norm))))
                gain = 1.0 if (recipe, norm) == ("pretrained", "pre") else 0.0
                found[spec.key] = made.result(spec, 30 + lift + gain + made.noise(recipe, seed))
    summary = report(Block("norms", tuple(runs), "bleu", "test"), results=found)
    (part,) = summary.parts
    assert [one.label for one in part.rows] == [
        "xavier · post-LN", "pretrained · post-LN", "xavier · pre-LN", "pretrained · pre-LN",
    ]  # fmt: skip
    assert [one.best for one in part.rows].count(True) >= 2
    assert row(part, "pretrained · post-LN").difference.verdict == ""  # type: ignore[union-attr]
    assert row(part, "pretrained · pre-LN").difference.verdict == "better"  # type: ignore[union-attr]
    (verdict,) = summary.answer.verdicts
    assert isinstance(verdict, StartTallies)
    assert (verdict.unit, verdict.tallies) == ("setting", (StartTally("pretrained", 1, 0, 2),))


def test_a_classifier_is_scored_by_both_criteria_for_the_epoch() -> None:
    block = made.block("SST-2", recipes=("xavier", "pretrained"), task="sst2", seeds=range(3))
    found = made.results(block)
    for key, one in found.items():
        history: list[dict[str, float | None]] = [
            {"accuracy": 0.70, "valid loss": 0.6},
            {"accuracy": 0.75, "valid loss": 0.5},
            {"accuracy": 0.80 + one.spec.seed / 100, "valid loss": 0.7},
        ]
        found[key] = replace(one, history=history)
    (part,) = report(block, results=found).parts
    best, lowest = part.rows[0].epoch_choices
    assert (best.criterion, best.epoch, best.score.mean) == ("highest score", 3.0, pytest.approx(81.0))
    assert (lowest.criterion, lowest.epoch, lowest.score.mean) == ("lowest loss", 2.0, pytest.approx(75.0))
    table = tables.epoch_choices(part)
    assert table is not None
    assert [str(cell) for cell in table.rows[0]] == ["xavier", "3.0", "81.0 ± 1.0", "2.0", "75.0 ± 0.0"]
    (translation,) = report(made.block()).parts
    assert tables.epoch_choices(translation) is None


def test_data_without_test_rows_is_judged_on_its_validation_rows() -> None:
    block = made.block("reviews", task="reviews", split="test", score="accuracy", paper=())
    found = made.results(replace(block, split="valid"))
    summary = report(block, results=found)
    (part,) = summary.parts
    assert part.metric.split == "valid"
    assert [len(one.scores) for one in part.rows] == [5] * 4
    assert part.rows[0].difference is None and part.rows[1].difference is not None
    assert summary.caveats[0].startswith("The data has no test rows")
    both = summarize(made.experiment(block, made.block()), found | made.results())
    assert [one.metric.split for one in both.parts] == ["valid", "test"]
    assert both.caveats[0].startswith("The data of reviews has no test rows")


def test_a_block_without_runs_and_a_score_that_no_split_has_stay_as_they_are() -> None:
    block = made.block()
    assert report(block, results={}).parts[0].metric.split == "test"
    other = report(replace(block, score="chrf"), results=made.results(block))
    assert other.parts[0].metric.split == "test"
    assert not any("no test rows" in said for said in other.caveats)


def test_the_commands_are_whole_and_quoted_for_a_shell() -> None:
    block = made.block()
    options = ["--runs", "my runs", "--data", "texts"]
    summary = summarize(made.experiment(block), {}, file="a b/it's.toml", options=options)
    assert [shlex.split(command) for command in summary.commands] == [
        ["embinit", verb, "a b/it's.toml", *options] for verb in ("run", "report")
    ]


def test_a_run_is_hashed_once_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    block, hashed = made.block(), list[object]()
    found = made.results(block)
    again = replace(block, runs=tuple(replace(one, spec=replace(one.spec)) for one in block.runs))
    digest = spec_module.digest

    def counting(content: object) -> str:
        hashed.append(content)
        return digest(content)

    monkeypatch.setattr(spec_module, "digest", counting)
    assert report(again, results=found).parts[0].rows[0].statistic is not None
    assert len(hashed) <= len(block.runs)


def test_an_axis_of_one_value_is_in_no_label() -> None:
    block = made.block()
    runs = tuple(replace(planned, axes=(("task", "multi30k"), *planned.axes)) for planned in block.runs)
    (part,) = report(replace(block, runs=runs)).parts
    assert [one.label for one in part.rows] == list(made.RECIPES)
    assert all(one.paper for one in part.rows[:3])


def test_on_other_data_the_papers_number_is_shown_without_a_difference() -> None:
    block = made.block("Tatoeba for IWSLT", task="captions", paper=("1", "iwslt2017", "glove"))
    (part,) = report(block).parts
    shown = row(part, "xavier").paper
    assert shown is not None
    assert (shown.mean, shown.difference, shown.within) == (31.8, None, None)
    said = "The paper's numbers are on other data or over other tokens, and so are shown without a difference."
    assert said in part.notes
    # Nor is there one on the paper's own test, by a model that learned from other data.
    also = replace(block, split="iwslt2017_test")
    found = {
        key: replace(one, scores={"iwslt2017_test": one.scores["test"]}) for key, one in made.results(block).items()
    }
    beside = row(report(also, results=found).parts[0], "xavier").paper
    assert beside is not None
    assert (beside.mean, beside.difference, beside.within) == (31.8, None, None)


def test_losses_are_told_against_the_baselines_seed_by_seed() -> None:
    block = made.block(recipes=("xavier", "pretrained"))
    results = made.results(block)
    for key, result in results.items():
        more = 0.2 + 0.002 * (result.spec.seed % 2) if result.spec.sides[0][1].recipe == "pretrained" else 0.0
        loss = 1.5 + 0.1 * result.spec.seed + more
        results[key] = replace(result, history=[{**record, "valid loss": loss} for record in result.history])
    (part,) = report(block, results=results).parts
    # Seeds differ by 0.1, pairs by 0.002.
    assert part.notes[-1] == "Validation loss against xavier; lower is better: pretrained +0.201 [+0.199, +0.202]."
    one_seed = made.block(recipes=("xavier", "pretrained"), seeds=range(1))
    assert not any("validation loss" in note for note in report(one_seed, results=results).parts[0].notes)


def test_bleu_over_other_tokens_is_not_compared_and_accuracy_is() -> None:
    block = made.block(paper=("1", "multi30k", "mT5"))
    assert row(report(block).parts[0], "xavier").paper.difference is None  # type: ignore[union-attr]
    own = replace(block, runs=tuple(_with_tokenizer(planned, "google/mt5-base") for planned in block.runs))
    assert row(report(own).parts[0], "xavier").paper.difference is not None  # type: ignore[union-attr]
    labels = made.block(task="sst2", paper=("1", "sst2", "t5"))
    assert row(report(labels).parts[0], "xavier").paper.difference is not None  # type: ignore[union-attr]


def _with_tokenizer(planned: Planned, name: str) -> Planned:
    spec = replace(planned.spec, task=replace(planned.spec.task, tokenizer=name))
    return replace(planned, spec=spec)


def test_mismatched_accuracy_lies_beside_the_papers() -> None:
    block = made.block("MNLI", task="mnli", paper=("1", "mnli", "bert"))
    found = {
        key: replace(one, scores={**one.scores, "valid_mismatched": {"accuracy": 0.6}})
        for key, one in made.results(block).items()
    }
    (part,) = report(block, results=found).parts
    assert row(part, "pretrained").paper.mean == 66.3  # type: ignore[union-attr]
    assert row(part, "pretrained").others_paper[ScoreName("valid_mismatched", "accuracy")].mean == 66.8


def test_random_rows_alone_do_not_make_a_block_that_lacks_its_vectors() -> None:
    block = made.block(missing="needs glove.840B.300d.txt")
    random = {key: one for key, one in made.results(block).items() if one.spec.sides[0][1].recipe == "xavier"}
    summary = report(block, results=random)
    assert summary.parts[0].missing == "needs glove.840B.300d.txt"
    assert summary.answer.verdicts == (InBlock("Multi30k, GloVe", NotRun("needs glove.840B.300d.txt")),)


def test_a_block_of_random_rows_alone_is_shown_where_its_data_is_not() -> None:
    block, found = made.crossed({(n, "xavier"): 37.0 for n in ("1", "3")}, ("model.layers", "recipe"))
    (part,) = report(replace(block, missing="needs the data set"), results=found).parts
    assert part.missing == ""
    assert all(row.statistic for row in part.rows)


def test_many_missing_blocks_are_one_caveat() -> None:
    blocks = [made.block(f"block {i}", missing=f"needs file {i}") for i in range(5)]
    assert report(*blocks, results={}).caveats == ("5 of 5 blocks were not run; each block names its reason.",)
    assert report(*blocks[:2], results={}).caveats == (
        "block 0 not run: needs file 0.", "block 1 not run: needs file 1.",
    )  # fmt: skip


def test_without_a_baseline_nothing_is_compared() -> None:
    block = made.block(recipes=("pretrained", "pretrained_xavier"))
    summary = report(block)
    assert all(one.difference is None for one in summary.parts[0].rows)
    (verdict,) = summary.answer.verdicts
    assert isinstance(verdict, HighestMean)
    assert (verdict.start, verdict.baselines) == ("pretrained_xavier", (Baseline("xavier"),))


def test_what_came_from_elsewhere_is_shown_even_where_it_cannot_be_run() -> None:
    block = made.block(missing="needs the data set multi30k")
    assert report(block).parts[0].missing == ""
    empty = report(block, results={})
    assert empty.parts[0].missing == "needs the data set multi30k"
    assert empty.parts[0].answer.verdicts == (NotRun("needs the data set multi30k"),)


# ---------------------------------------------------------------- matrices, examples


def test_matrices_are_those_of_each_recipe_beside_the_papers_sigma() -> None:
    (part,) = report(made.block()).parts
    assert [(shape.series, shape.side) for shape in part.shapes[:2]] == [("xavier", "source"), ("xavier", "target")]
    raw = next(shape for shape in part.shapes if (shape.series, shape.side) == ("pretrained", "source"))
    assert raw.paper == 0.37
    assert raw.ratio == pytest.approx(0.378 * 300**0.5 / 0.5**0.5)
    assert (raw.types, raw.tokens) == (0.912, 0.987)
    assert len(raw.edges) == len(raw.counts) + 1


def test_positions_that_are_not_added_have_no_ratio() -> None:
    spec = made.spec("pretrained", positions="rotary")
    block = Block("rotary", (Planned(spec, (("recipe", "pretrained"),)),), "bleu", "test")
    (part,) = report(block, results={spec.key: made.result(spec, 30.0)}).parts
    assert {shape.ratio for shape in part.shapes} == {None}


def test_examples_are_sentences_on_which_models_differ_with_source_and_reference() -> None:
    block = made.block()
    sources = [f"quelle {i}" for i in range(6)]
    summary = summarize(
        made.experiment(block),
        made.results(block),
        texts=lambda spec, split: SplitTexts(sources, made.SENTENCES, str.upper),
    )
    shown = summary.parts[0].examples
    assert 0 < len(shown) <= 5
    first = shown[0]
    assert list(first.outputs) == list(made.RECIPES)
    assert len(set(first.outputs.values())) > 1
    assert first.source == f"quelle {first.number - 1}"
    assert first.reference == made.SENTENCES[first.number - 1]
    assert first.outputs["pretrained_xavier"] == made.SENTENCES[first.number - 1].upper()


def test_sentences_that_all_models_put_alike_are_no_examples() -> None:
    block = made.block(recipes=("xavier", "pretrained"))
    alike = {key: replace(one, outputs={"test": ["the same"] * 9}) for key, one in made.results(block).items()}
    assert report(block, results=alike).parts[0].examples == ()


# ---------------------------------------------------------------- to run it again


def test_what_made_the_numbers_is_there() -> None:
    block = made.block()
    summary = summarize(made.experiment(block), made.results(block), file="experiments/paper/table1.toml")
    assert summary.commands == (
        "embinit run experiments/paper/table1.toml",
        "embinit report experiments/paper/table1.toml",
    )
    assert summary.cost.devices == ("NVIDIA H200",)
    assert summary.cost.versions["torch"] == "2.6.0"
    assert summary.cost.seconds == pytest.approx(20 * 250 / 20)  # 20 trained side by side in 250 s each time
    assert summary.cost.finished == "2025-01-02T03:04:04"
    assert summary.parts[0].settings["model.dim"] == "300"
    assert "seed" not in summary.parts[0].settings
    assert "nrefs:1" in summary.parts[0].signatures["bleu"]
    assert summary.recipes["pretrained_xavier"].startswith("the source's rows")


def test_a_report_is_json() -> None:
    block = made.block()
    found = made.results(block)
    found.popitem()
    text = json.dumps(report(block, results=found).as_json(), allow_nan=False)
    assert json.loads(text)["parts"][0]["rows"][0]["label"] == "xavier"
