"""The verdict by what a model is for: what classifiers are told that translators are not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from embinit.diagnosis.basis import Basis, basis_of
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.verdict import thresholds, verdict
from embinit.hosts import host
from embinit.recipes.recipe import recipe
from embinit.types import xavier_std
from tests.diagnosis.random_vectors import vectors
from tests.refusal import refused


@pytest.mark.parametrize(
    ("source", "std", "dim", "at_full_rate"),
    [
        ("small", 0.016, 300, "pretrained | center | scale ratio=1.4"),
        ("GloVe", 0.37, 300, "pretrained | center | scale ratio=1.4"),
        ("BERT", 0.04, 768, "pretrained"),
        ("T5", 22.6, 512, "pretrained | center | scale ratio=1.4"),
    ],
)
def test_a_classifier_gets_standardized_rows_that_learn_slowly_or_larger_rows_at_the_full_rate(
    source: str, std: float, dim: int, at_full_rate: str
) -> None:
    rows = vectors(std, dim, rows=3000)
    seen = diagnose(rows, task="classification").verdict
    assert (seen.advice, seen.recipe, seen.at_full_rate) == ("standardize", "pretrained_xavier", at_full_rate)
    assert "good" not in {one.severity for one in seen.findings if one.name == "absorption"}
    assert "size" in {one.name for one in seen.findings}
    after = diagnose(rows, recipe=seen.recipe, task="classification").verdict
    assert (after.advice, after.recipe, after.rate) == ("as is", "pretrained_xavier", 0.1)
    # Larger rows stay as they are where all weights share one rate, and so does a recipe of one's own.
    larger = diagnose(rows, recipe=at_full_rate, task="classification").verdict
    assert larger.at_full_rate == at_full_rate
    # What translation is told is what is told where no task is named.
    assert diagnose(rows, task="translation").verdict == diagnose(rows).verdict
    # Only sinusoids were tried: models with other positions get the advice that they had.
    for model in ("bert", "llama"):
        told, untold = (diagnose(rows, host=model, task=task).verdict for task in ("classification", None))
        assert (told.case, told.recipe) == (untold.case, untold.recipe)


def test_a_classifier_lets_rows_that_mean_something_learn_slowly() -> None:
    rows = vectors(0.37, 64)
    told = diagnose(rows, task="classification").verdict
    assert told.rate == thresholds()["classification"]["rate"] == 0.1
    assert told.case == "slow"
    assert {"rate", "size"} <= {one.name for one in told.findings}
    assert diagnose(rows, task="classification").as_dict()["verdict"]["rate"] == 0.1
    # Neither random rows, nor a translator's, nor those of models that it was not tried in.
    others = [
        diagnose(rows, recipe="xavier", task="classification"),
        diagnose(rows, recipe="pretrained | shuffle | scale ratio=1.4", task="classification"),
        diagnose(replace(rows, found=np.arange(len(rows.vocabulary)) % 3 == 0), task="classification"),
        diagnose(rows),
        diagnose(rows, host="bert", task="classification"),
        diagnose(rows, host="llama", task="classification"),
    ]
    for seen in others:
        assert (seen.verdict.rate, seen.verdict.at_full_rate) == (1, None)
        assert not {"rate", "size"} & {one.name for one in seen.verdict.findings}
        assert not seen.verdict.case.startswith("slow")


def test_rows_that_are_advised_in_place_of_random_ones_learn_slowly_too() -> None:
    seen = diagnose(vectors(0.37, 64), recipe="xavier | scale ratio=6", task="classification").verdict
    assert (seen.recipe, seen.rate) == ("pretrained_xavier", 0.1)
    assert seen.case == "slow_source"
    assert seen.at_full_rate == "pretrained | center | scale ratio=1.4"


@pytest.mark.parametrize(("ratio", "task"), [(0.75, "classification"), (3.0, "classification"), (2.5, None)])
def test_rows_scaled_to_a_threshold_keep_their_recipe(ratio: float, task: str | None) -> None:
    own = f"pretrained | scale ratio={ratio}"
    seen = diagnose(vectors(0.37, 64), recipe=own, task=task).verdict
    assert (seen.at_full_rate or seen.recipe) == own


def test_both_thresholds_of_classifiers_are_inside_the_good_range() -> None:
    diagnosis = diagnose(vectors(0.37, 64), task="classification")
    assert diagnosis.absorption is not None
    lines = thresholds()
    for ratio, advice in ((0.749, "enlarge"), (0.75, "as is"), (3.0, "as is"), (3.001, "scale down")):
        basis = replace(diagnosis.basis, absorbed=replace(diagnosis.absorption, ratio=ratio))
        assert verdict(_mostly_missing(basis), lines).advice == advice
        assert (verdict(basis, lines).at_full_rate == "pretrained") == (advice == "as is")


@pytest.mark.parametrize(
    ("factor", "advice"), [(0.9, "standardize"), (0.92, "as is"), (1.09, "as is"), (1.11, "standardize")]
)
def test_rows_of_nearly_xaviers_size_count_as_standardized(factor: float, advice: str) -> None:
    basis = diagnose(vectors(0.37, 64), task="classification").basis
    spread = replace(basis.spread, std=factor * xavier_std(basis.rows, 64), rows=basis.rows // 2)
    advised = verdict(replace(basis, spread=spread))
    assert advised.advice == advice
    assert (advised.case == "slow_standardized") == (advice == "as is")


def test_rows_of_xaviers_size_that_are_not_centered_are_not_standardized() -> None:
    basis = diagnose(vectors(0.37, 64), task="classification").basis
    std = xavier_std(basis.rows, 64)
    for mean, advice in ((0.2, "as is"), (3.0, "standardize")):
        assert verdict(replace(basis, spread=replace(basis.spread, std=std, mean=mean * std))).advice == advice


def test_larger_rows_are_named_only_where_they_are_larger() -> None:
    def advised(rows: int, std: float) -> tuple[str, str | None, bool]:
        basis = diagnose(vectors(0.37, 64), task="classification").basis
        advised = verdict(replace(basis, rows=rows, spread=replace(basis.spread, std=std)))
        return advised.recipe, advised.at_full_rate, "size" in {finding.name for finding in advised.findings}

    assert advised(2_000, 0.37) == ("pretrained_xavier", "pretrained | center | scale ratio=1.4", True)
    # Xavier's own σ is larger with 40 rows, and so small with a million that rows are brought between what was tried.
    assert advised(40, 0.37) == ("pretrained_xavier", "pretrained | center | scale ratio=1.4", False)
    recipe, _, larger = advised(1_000_000, 0.37)
    assert (recipe, larger) == ("pretrained | center | scale ratio=0.4", True)
    ratio = 0.4 * 0.5**0.5 / 64**0.5
    assert advised(1_000_000, ratio)[0] == "pretrained"


def test_a_rate_needs_half_of_the_vocabulary() -> None:
    basis = diagnose(vectors(0.37, 64), task="classification").basis
    assert [verdict(replace(basis, coverage=(share, None))).rate for share in (0.49, 0.5)] == [1.0, 0.1]


def test_a_classifier_with_large_rows_gets_a_note_on_word_order() -> None:
    def kinds(std: float) -> dict[str, str]:
        seen = diagnose(vectors(std, 64), task="classification").verdict
        return {finding.name: finding.kind for finding in seen.findings}

    assert kinds(5.0)["order"] == "order"
    assert kinds(5.0)["absorption"] == "classifier_absorbed"
    told_apart = verdict(_told_apart(diagnose(vectors(0.5, 64), task="classification").basis))
    assert "classifier_outweighed" in {finding.kind for finding in told_apart.findings}
    assert "order" not in kinds(0.15)


def _mostly_missing(basis: Basis) -> Basis:
    """Return the same where too few rows mean something for a rate of their own."""
    return replace(basis, coverage=(0.4, None))


def _told_apart(basis: Basis) -> Basis:
    assert basis.absorbed is not None
    return replace(basis, absorbed=replace(basis.absorbed, ratio=4.0, position_readout=0.9))


def test_random_rows_have_no_meaning_to_lose() -> None:
    rows = vectors(0.37, 300)
    for task in (None, "classification"):
        small = diagnose(rows, recipe="xavier | scale ratio=0.1", task=task)
        assert small.verdict.advice == "as is"
        assert small.verdict.case == "random"
        assert recipe(small.verdict.recipe).steps == recipe("xavier | scale ratio=0.1").steps
    meant = "pretrained | scale ratio=0.1"
    assert diagnose(rows, recipe=meant).verdict.advice == "enlarge"
    assert diagnose(rows, recipe=meant, task="classification").verdict.recipe == "pretrained_xavier"


def test_a_classifier_has_no_logits_of_words() -> None:
    def names(task: str | None) -> set[str]:
        return {one.name for one in diagnose(vectors(5, 64), host=host("marian"), task=task).verdict.findings}

    assert names(None) - names("classification") == {"logits"}


def test_the_kind_of_task_is_given_by_name() -> None:
    assert diagnose(vectors(0.37, 64), task="Classification").basis.task == "classification"
    with refused("'tagging'"):
        diagnose(vectors(0.37, 64), task="tagging")


def test_stored_measurements_give_the_same_verdict() -> None:
    diagnosis = diagnose(vectors(0.37, 64), task="classification")
    stored = json.loads(json.dumps(diagnosis.basis.as_json()))
    assert verdict(basis_of(stored)) == diagnosis.verdict
    assert (diagnosis.as_dict()["task"], diagnosis.as_dict()["lines"]) == ("classification", "classification")
    learned = diagnose(vectors(0.37, 64), host="bert", task="classification").as_dict()
    assert (learned["task"], learned["lines"]) == ("classification", "ratio")
    del stored["task"]
    assert verdict(basis_of(stored)) == diagnose(vectors(0.37, 64)).verdict


def _notes_on_size(std: float, model: str = "llama", **more: str) -> list[str]:
    told = {"host": model, "task": "classification", **more}
    findings = diagnose(vectors(std, 256), **told).verdict.findings  # type: ignore[arg-type]
    return [finding.kind for finding in findings if (finding.severity, finding.name) == ("note", "task")]


def test_a_classifier_with_rotary_positions_gets_a_note_on_larger_rows() -> None:
    # Too wide and so brought to the model's own 0.02, too small and likewise, of its own size: all end below 1/√D.
    for std in (0.4, 0.001, 0.02):
        assert _notes_on_size(std) == ["larger_rotary_rows"]
    assert not _notes_on_size(0.07)  # as is, and above 1/√D
    assert not _notes_on_size(0.4, task="translation")
    assert not _notes_on_size(0.4, model="t5")
    assert not _notes_on_size(0.4, recipe="xavier")


@pytest.mark.parametrize("task", ["language_model", "masked_language_model"])
@pytest.mark.parametrize("model", ["gpt2", "llama", "bert", "tutorial"])
def test_a_language_model_gets_the_general_advice_and_is_told_that_no_run_has_tested_it(task: str, model: str) -> None:
    rows = vectors(0.37, 300, rows=3000)
    told, untold = (diagnose(rows, host=model, task=one).verdict for one in (task, None))
    assert (told.case, told.recipe, told.rate) == (untold.case, untold.recipe, untold.rate)
    kinds = [[one.kind for one in verdict.findings] for verdict in (told, untold)]
    assert kinds[0] == [*kinds[1], "untested_language_model"]
