"""The paired bootstrap over sentences is sacreBLEU's."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.statistics import paired_bootstrap

sacrebleu = pytest.importorskip("sacrebleu")


def sentences(wrong: float, seed: int = 0, count: int = 80) -> list[str]:
    """Sentences of twelve words, of which a share is wrong."""
    words = np.random.default_rng(1).integers(0, 30, (count, 12))
    spoilt = np.random.default_rng(seed).random((count, 12)) < wrong
    return [
        " ".join("x" if bad else f"w{word}" for word, bad in zip(*row, strict=True))
        for row in zip(words, spoilt, strict=True)
    ]


def test_scores_p_and_signature_are_sacrebleus() -> None:
    system, baseline, references = sentences(0.1, 2), sentences(0.2, 3), sentences(0)
    found = paired_bootstrap(system, baseline, references, resamples=200)
    bleu = sacrebleu.BLEU(force=True)
    assert found.system == pytest.approx(bleu.corpus_score(system, [references]).score)
    assert found.difference == pytest.approx(found.system - bleu.corpus_score(baseline, [references]).score)
    assert found.difference > 0
    assert found.system_interval[0] < found.system < found.system_interval[1]
    assert found.baseline_interval[0] < found.baseline < found.baseline_interval[1]
    assert found.p == pytest.approx(1 / 201)
    assert found.sentences == 80
    assert "bs:200" in found.signature and "tok:13a" in found.signature and "seed:" in found.signature


def test_two_systems_of_the_same_quality_are_not_told_apart() -> None:
    found = paired_bootstrap(sentences(0.2, 4), sentences(0.2, 5), sentences(0), resamples=200)
    assert found.p > 0.05
    back = paired_bootstrap(sentences(0.2, 5), sentences(0.2, 4), sentences(0), resamples=200)
    assert (back.difference, back.p) == (pytest.approx(-found.difference), pytest.approx(found.p))


def test_equal_outputs_are_no_discovery() -> None:
    output, references = sentences(0.2, 4), sentences(0)
    test = sacrebleu.significance.PairedTest(
        [("a", output), ("b", output)], {"BLEU": sacrebleu.BLEU()}, [references], test_type="bs", n_samples=200
    )
    assert test()[1]["BLEU"][1].p_value == pytest.approx(1 / 201)  # why p is not taken over here
    assert paired_bootstrap(output, output, references, resamples=200).p == 1


def test_what_cannot_be_compared_is_an_error() -> None:
    with pytest.raises(EmbinitError, match="1 sentences of the system, 2 of the baseline, 2 references"):
        paired_bootstrap(["a"], ["a", "b"], ["a", "b"])
    with pytest.raises(EmbinitError, match="no sentences"):
        paired_bootstrap([], [], [])
    with pytest.raises(EmbinitError, match="unknown BLEU tokenizer '13b'; did you mean '13a'"):
        paired_bootstrap(["a"], ["a"], ["a"], tokenize="13b")


def test_without_sacrebleu_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    with pytest.raises(EmbinitError, match=r"needs sacrebleu: pip install 'embinit\[train\]'"):
        paired_bootstrap(["a"], ["a"], ["a"])
