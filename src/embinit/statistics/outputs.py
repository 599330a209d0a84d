"""One pair of systems, by their decoded sentences: sacreBLEU's paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embinit.errors import EmbinitError, closest, require


@dataclass(frozen=True)
class PairedBootstrap:
    """BLEU of two outputs over the same sentences. The test is over sentences and says nothing about other seeds.

    sacreBLEU gives an interval for each system, none for the difference.
    """

    #: system less baseline
    difference: float
    p: float
    system: float
    baseline: float
    #: 95 %, around the mean of the resamples
    system_interval: tuple[float, float]
    baseline_interval: tuple[float, float]
    sentences: int
    #: how it was computed, with sacreBLEU's seed and the number of resamples
    signature: str


def paired_bootstrap(
    system: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    resamples: int = 1_000,
) -> PairedBootstrap:
    """Return a test of the difference in BLEU between two outputs, over resampled test sentences (Koehn 2004).

    p is sacreBLEU's, except that it is 1 for equal scores: sacreBLEU counts only resamples that differ by more than the
    systems do, so equal outputs would get the smallest p.
    """
    purpose = "the paired bootstrap"
    metrics = require("sacrebleu.metrics", "train", purpose)
    significance = require("sacrebleu.significance", "train", purpose)
    if not len(system) == len(baseline) == len(references):
        raise EmbinitError(
            f"{len(system)} sentences of the system, {len(baseline)} of the baseline, {len(references)} references; "
            "each needs the same number"
        )
    if not references:
        raise EmbinitError("no sentences to compare")
    if tokenize not in metrics.BLEU.TOKENIZERS:
        raise EmbinitError(f"unknown BLEU tokenizer {tokenize!r}{closest(tokenize, metrics.BLEU.TOKENIZERS)}")
    test = significance.PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        {"BLEU": metrics.BLEU(tokenize=tokenize, force=True)},
        [list(references)],
        test_type="bs",
        n_samples=resamples,
    )
    signatures, scores = test()
    theirs, ours = scores["BLEU"]
    difference = float(ours.score - theirs.score)
    return PairedBootstrap(
        difference=difference,
        p=float(ours.p_value) if difference else 1.0,
        system=float(ours.score),
        baseline=float(theirs.score),
        system_interval=(float(ours.mean - ours.ci), float(ours.mean + ours.ci)),
        baseline_interval=(float(theirs.mean - theirs.ci), float(theirs.mean + theirs.ci)),
        sentences=len(references),
        signature=str(signatures["BLEU"]),
    )
