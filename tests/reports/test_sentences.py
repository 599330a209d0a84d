"""One golden sentence for each kind of verdict; every other test asserts on verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from embinit.experiments.experiment import SAME, Baseline
from embinit.reports import verdicts as kinds
from embinit.reports.analysis.rows import difference
from embinit.reports.metrics import metric
from embinit.reports.scores import Choice, Difference
from embinit.reports.sentences import answer, baselines_text, sentences
from embinit.reports.verdicts import BlockVerdict, InBlock
from embinit.statistics import MeanInterval

BLEU, ACCURACY, PERPLEXITY = metric("bleu", "test"), metric("accuracy", "valid"), metric("perplexity", "test")
XAVIER = (Baseline("xavier"),)
BOTH = (*XAVIER, Baseline("pretrained_xavier"))
PINNED = tuple(Baseline(one.recipe, (("model.positions", "sinusoidal"),)) for one in BOTH)


def gain(by: float, seeds: int = 6, baseline: str = "xavier") -> Difference:
    """Return a difference with this mean, and an interval of ±0.1 or so."""
    base = {str(seed): 30.0 for seed in range(seeds)}
    scores = {seed: 30 + by + 0.1 * (-1) ** int(seed) for seed in base}
    found = difference(scores, base, baseline, BLEU)
    assert found is not None
    return found


def start(name: str, *differences: Difference) -> kinds.StartDifferences:
    return kinds.StartDifferences(name, differences, BLEU)


def mean(value: float) -> MeanInterval:
    return MeanInterval(mean=value, std=0.5, n=3, low=value - 1, high=value + 1, method="pooled")


def choice(block: str, label: str, verdict: str, named: bool = False) -> Choice:
    one = replace(gain(1.0), verdict=verdict)
    return Choice(block, BLEU, label, () if named else ("101",), None if named else mean(38), True, mean(38), (one,))


NONE_BETTER = kinds.NoneBetter(XAVIER, BLEU, (), False, (), None, 0.62, 6, ())
UP, DOWN = "+1.0 BLEU [+0.9, +1.1]", "−1.0 BLEU [−1.1, −0.9]"
GOLDEN: list[tuple[kinds.ReportVerdict, str]] = [
    (kinds.NotRun("needs glove.txt"), "Not run: needs glove.txt."),
    (kinds.NothingYet("runs"), "No run is finished yet."),
    (kinds.NothingYet("measurements"), "Nothing has been measured yet."),
    (kinds.NothingYet("blocks"), "There is nothing in this experiment."),
    (
        kinds.NothingLearned(BLEU, 0.43, 1.0, "bleu"),
        "Nothing was learned: the highest mean is 0.4 BLEU. Train longer, or check the data.",
    ),
    (
        kinds.NothingLearned(ACCURACY, 70.1, 0.0, "matthews"),
        "Nothing was learned: the highest mean is 70.1 points, and the predictions of the best start have no "
        "correlation with the labels beyond noise. Train longer, change the rate, or check the data.",
    ),
    (
        kinds.NothingLearned(ACCURACY, 70.1, 70.0, "majority"),
        "Nothing was learned: the highest mean is 70.1 points, and the largest class alone gives 70.0. Train longer, "
        "change the rate, or check the data.",
    ),
    (
        kinds.NothingLearned(PERPLEXITY, 634_408_902.89, 8000, "uniform"),
        "Nothing was learned: the lowest mean is 6.34e+08 perplexity, and no run has a perplexity below that of a uniform "
        "guess (8,000). Train longer, change the rate, or check the data.",
    ),
    (
        kinds.RunsNotLearned((kinds.StartNotLearned("raw", 3, 3, 8000), kinds.StartNotLearned("wide", 1, 3, 8000))),
        "3 of 3 runs of raw and 1 of 3 runs of wide did not learn: their perplexity is above that of a uniform guess "
        "(8,000).",
    ),
    (
        kinds.RunsNotLearned(tuple(kinds.StartNotLearned(name, 1, 1, 8000 + ord(name)) for name in "abcde")),
        "1 of 1 run of a, 1 of 1 run of b, 1 of 1 run of c and runs of 2 more starts did not learn: their perplexity is "
        "above that of a uniform guess.",
    ),
    (
        kinds.HighestMean("glove", 38.04, BLEU, XAVIER),
        "Highest mean: glove, 38.0 BLEU. There is no xavier among the starts to compare with.",
    ),
    (
        kinds.OnlyBaselines((("xavier", 37.0),), BLEU),
        "Only xavier (37.0 BLEU) has been run, so there is nothing to compare.",
    ),
    (
        kinds.NoComparison("one seed", XAVIER),
        "One seed cannot be told from chance: run more seeds to compare with xavier.",
    ),
    (
        kinds.NoComparison("no shared seed", XAVIER),
        "There is nothing yet to compare with xavier: no start shares a seed with it.",
    ),
    (
        kinds.NoComparison("no baseline run", XAVIER),
        "There is nothing yet to compare with: xavier has not been run.",
    ),
    (kinds.BlocksNotComparable(5), "None of 5 blocks has anything to compare with."),
    (kinds.UseStart(start("glove", gain(1.0)), ()), f"Use glove: {UP} over xavier, 6 seeds."),
    (
        kinds.UseStart(start("glove", gain(1.0, 6), gain(1.0, 4, "raw")), ("wide", "bert")),
        f"Use glove: {UP} over xavier and +1.0 BLEU [+0.8, +1.2] over raw, 4 seeds, significant only in the t test. "
        "Within noise, wide and bert are as good.",
    ),
    (
        NONE_BETTER,
        "No start is better than xavier beyond noise. With 6 seeds a difference under 0.62 BLEU cannot be seen.",
    ),
    (
        replace(NONE_BETTER, worse=(start("raw", gain(-1.0)),), diverged=("bert",)),
        f"No start is better than xavier beyond noise, and raw ({DOWN}) is worse. "
        "Better by their finished runs, but with diverged runs that have no score: bert. "
        "With 6 seeds a difference under 0.62 BLEU cannot be seen.",
    ),
    (
        replace(NONE_BETTER, worse=(start("raw", gain(-1.0)),), limited="wide"),
        f"No start is better than xavier beyond noise, and raw ({DOWN}) is worse. "
        "For wide, 6 seeds cannot show a difference under 0.62 BLEU.",
    ),
    (
        replace(NONE_BETTER, detectable=2_149_830_556),
        "No start is better than xavier beyond noise. With 6 seeds a difference under 2.1e+09 BLEU cannot be seen.",
    ),
    (
        replace(NONE_BETTER, baselines=BOTH, nearest=start("wide", gain(1.0)), detectable=None, lacking=("raw",)),
        "No start is better than both xavier and pretrained_xavier beyond noise. "
        f"The nearest is wide: {UP} over xavier. Without a run yet: raw.",
    ),
    (
        replace(NONE_BETTER, all_worse=True, detectable=None),
        "Stay with xavier: every other start is worse beyond noise.",
    ),
    (
        kinds.SettingDifferences((start("xavier · pre-LN", gain(1.0)),), 2),
        f"xavier · pre-LN {UP} over xavier. There are 2 more settings.",
    ),
    (
        kinds.StartTallies(
            XAVIER,
            "comparison",
            (
                kinds.StartTally("glove", 2, 0, 2),
                kinds.StartTally("bert", 1, 1, 3),
                kinds.StartTally("t5", 0, 0, 3),
            ),
            3,
        ),
        "glove is better than xavier in both comparisons. bert is better than xavier in 1 and worse in 1 of 3 comparisons. "
        "t5 cannot be told from xavier in any of 3 comparisons.",
    ),
    (
        kinds.StartTallies(XAVIER, "setting", (kinds.StartTally("glove", 0, 3, 3),), 1),
        "No start is better than xavier beyond noise in any setting. glove is worse in 3 of 3.",
    ),
    (
        kinds.StartTallies(BOTH, "block", (kinds.StartTally("glove", 1, 0, 2),), 2),
        "Better than both xavier and pretrained_xavier: glove in 1 of 2 blocks.",
    ),
    (
        kinds.StartTallies(BOTH, "block", (kinds.StartTally("glove", 0, 0, 2),), 2),
        "No start is better than both xavier and pretrained_xavier beyond noise in any of 2 blocks.",
    ),
    (
        kinds.SweepOptima((kinds.SweepOptimum("random", "", 0.4, 38.04, BLEU, 0.1, 0.8),), 1),
        "Best: random at 0.4 (38.0 BLEU, 0.1 to 0.8 as good within noise), and 1 more line; the noise is one σ, estimated "
        "from all places.",
    ),
    (kinds.SweepDifference("meaning", "better", "random", (0.1, 1.0)), "meaning is better than random at 0.1 and 1."),
    (
        kinds.BestPlaces((kinds.SweepOptimum("random", "a", 0.4, 38, BLEU, 0.4, 0.4),) * 3),
        "Best at 0.4 in all 3 sweeps.",
    ),
    (
        kinds.BestPlaces(
            (
                kinds.SweepOptimum("random", "a", 0.4, 38, BLEU, 0.4, 0.4),
                kinds.SweepOptimum("meaning", "b", 9.0, 30, BLEU, 9, 9),
            )
        ),
        "Best at 0.4 in a (random, 38.0 BLEU), 9 in b (meaning, 30.0 BLEU).",
    ),
    (
        kinds.SizeChanges("random", 0.1, 30.0, (kinds.SizeChange("no positions", mean(-11.7), BLEU),)),
        "Change for random from 0.1 to 30: −11.7 BLEU [−12.7, −10.7] (no positions); the intervals use one σ, estimated "
        "from all lines of a block.",
    ),
    (
        kinds.JudgedChoices((choice("A", "wide", "better"),), BOTH),
        f"wide, chosen on other seeds for A, is better than both xavier and pretrained_xavier: {UP} over xavier.",
    ),
    (
        kinds.JudgedChoices((choice("A", "wide", "better", True), choice("B", "wide", "", True)), BOTH, second=True),
        "Of 2 starts named beforehand, 1 is better than these baselines beyond noise: wide in A.",
    ),
    (
        kinds.AwaitedChoices((choice("A", "wide", ""), choice("B", "gentle", ""))),
        "Not judged on other seeds yet: wide for A and gentle for B.",
    ),
    (
        kinds.NamedStart(choice("A", "wide", "", True)),
        "wide, named beforehand, is not better beyond noise than all of its baselines. "
        "What follows is corrected for all runs of this report.",
    ),
    (kinds.MatrixAgreement(1, 3, 4), "In 1 of 3 matrices, σ agrees with the paper's to 3 % or as printed."),
    (kinds.MatrixAgreement(0, 0, 1), "1 matrix measured."),
    (
        kinds.AnalogiesKept((("scaled + positions", 0.874),)),
        "Analogies that stay right once positions are added: scaled + positions 87.4 %.",
    ),
    (kinds.MatrixAdvice((("glove", "source", "standardize"),)), "glove (source): standardize."),
    (
        kinds.AdviceCounts((("standardize", 2), ("keep", 1))),
        "Of 3 matrices it advises 'standardize' for 2 and 'keep' for 1.",
    ),
    (InBlock("Multi30k", kinds.NotRun("needs glove.txt")), "Multi30k: Not run: needs glove.txt."),
]  # fmt: skip


@pytest.mark.parametrize(("verdict", "text"), GOLDEN)
def test_each_kind_of_verdict_has_its_sentences(verdict: kinds.ReportVerdict, text: str) -> None:
    assert str(answer([verdict])) == text


def test_no_kind_of_verdict_lacks_a_golden_sentence() -> None:
    assert {type(verdict) for verdict, _ in GOLDEN} == {*get_args(BlockVerdict), InBlock}


def test_a_verdict_without_sentences_is_an_error() -> None:
    with pytest.raises(TypeError, match="object"):
        sentences(object())


def test_baselines_in_words() -> None:
    assert baselines_text(BOTH[:1]) == "xavier"
    assert baselines_text(BOTH) == "both xavier and pretrained_xavier"
    assert baselines_text((*BOTH, Baseline("pretrained"))) == "each of xavier, pretrained_xavier and pretrained"
    assert baselines_text(PINNED) == "both xavier and pretrained_xavier with sinusoidal positions"
    assert baselines_text((BOTH[0], PINNED[0])) == "xavier (also with sinusoidal positions)"
    same = Baseline(SAME, (("model.positions", "sinusoidal"),))
    assert baselines_text((*BOTH, same)) == "both xavier and pretrained_xavier and itself with sinusoidal positions"
