"""The verdict: the paper's findings on vectors of the paper's scales."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from embinit.alignment import align
from embinit.diagnosis.diagnose import diagnose
from embinit.diagnosis.verdict import thresholds, verdict
from embinit.format import percent
from embinit.hosts import host
from embinit.recipes.recipe import Recipe, Step, recipe
from embinit.seeds import stream
from embinit.types import Aligned, Embeddings
from tests.diagnosis.random_vectors import vectors


@pytest.mark.parametrize(
    ("source", "std", "dim", "advice", "recommended"),
    [
        ("Xavier", 0.016, 300, "as is", "pretrained"),
        ("GloVe", 0.37, 300, "standardize", "pretrained_xavier"),
        ("BERT", 0.04, 768, "as is or lightly scaled", "pretrained"),
        ("mBERT", 0.05, 768, "as is or lightly scaled", "pretrained"),
        ("T5", 22.6, 512, "standardize", "pretrained_xavier"),
        ("mT5", 11.5, 768, "standardize", "pretrained_xavier"),
        ("tiny", 0.001, 300, "enlarge", "pretrained | center | scale ratio=0.4"),
    ],
)
def test_findings_1_and_2(source: str, std: float, dim: int, advice: str, recommended: str) -> None:
    diagnosis = diagnose(vectors(std, dim))
    assert diagnosis.verdict.advice == advice
    assert diagnosis.verdict.recipe == recommended


def test_t5_is_absorbed_and_rounded_away_in_bfloat16() -> None:
    diagnosis = diagnose(vectors(22.6, 512))
    assert {finding.name for finding in diagnosis.verdict.findings if finding.severity == "harm"} == {"absorption"}
    (rounding,) = (finding for finding in diagnosis.verdict.findings if finding.name == "rounding")
    assert (rounding.severity, rounding.kind, rounding.numbers["format"]) == ("note", "rounding_elsewhere", "float32")
    assert max(rounding.numbers["lost"], key=rounding.numbers["lost"].get) == "bfloat16"
    trained_so = diagnose(vectors(22.6, 512), host=replace(host("tutorial"), numbers="bfloat16"))
    assert "rounding" in {finding.name for finding in trained_so.verdict.findings if finding.severity == "harm"}
    assert diagnosis.after is not None
    assert diagnosis.after.rounding_loss["bfloat16"] < 1e-4


@pytest.mark.parametrize("std", [0.37, 11.0, 0.001])
def test_the_advised_recipe_needs_no_other(std: float) -> None:
    rows = vectors(std, 300)
    advised = diagnose(rows).verdict.recipe
    again = diagnose(rows, recipe=advised)
    assert again.verdict.advice == "as is"
    assert recipe(again.verdict.recipe).steps == recipe(advised).steps


@pytest.mark.parametrize("model", ["gpt2", "llama", "tutorial"])
def test_a_verdict_makes_its_matrix_for_its_own_model(model: str, aligned: Aligned) -> None:
    rows = replace(aligned, vectors=aligned.vectors * 10)
    diagnosis = diagnose(rows, host=model)
    made = diagnosis.verdict.matrix(rows, seed=3)
    assert (made == recipe(diagnosis.verdict.recipe)(rows, stream(3, "matrix"), model)).all()
    assert made[rows.found].std() == pytest.approx(host(model).initial_std(*made.shape), rel=1e-3)


def test_a_verdict_keeps_the_fill_and_the_steps_that_were_diagnosed(aligned: Aligned) -> None:
    own = Recipe("gentle", (Step("pretrained"), Step("scale", (("ratio", 1.4),))), "zeros")
    advised = diagnose(aligned, recipe=own, task="classification").verdict
    assert (advised.recipe, advised.at_full_rate) == ("pretrained_xavier", "pretrained | scale ratio=1.4")
    slow, usual = advised.matrix(aligned), advised.matrix(aligned, full_rate=True)
    assert not slow[~aligned.found].any()
    assert (usual == own(aligned, stream(0, "matrix"), "tutorial")).all()
    assert usual.std() > 2 * slow.std()


def test_a_recipe_without_a_name_is_diagnosed_and_written_out() -> None:
    own = Recipe("gentle", (Step("pretrained"), Step("scale", (("ratio", 0.4),))))
    diagnosis = diagnose(vectors(0.37, 64), recipe=own, host="tutorial")
    assert diagnosis.verdict.advice == "as is"
    assert recipe(diagnosis.verdict.recipe).steps == own.steps


def test_a_vocabulary_so_large_that_xavier_would_bury_the_rows_gets_a_ratio() -> None:
    few = vectors(0.37, 300, rows=2000)
    tokens = [*few.vocabulary.tokens, *(f"x{i}" for i in range(60_000))]
    large = align(Embeddings(few.vocabulary.tokens, few.vectors, few.origin), tokens)
    diagnosis = diagnose(large)
    assert diagnosis.verdict.recipe == "pretrained | center | scale ratio=0.4"
    assert "coverage" in {finding.name for finding in diagnosis.verdict.findings}


def test_models_without_added_positions_are_judged_by_their_own_scale() -> None:
    assert diagnose(vectors(0.02, 256), host=host("llama")).verdict.advice == "as is"
    assert diagnose(vectors(0.4, 256), host=host("llama")).verdict.advice == "standardize"
    assert diagnose(vectors(0.4, 256), host=host("t5")).verdict.advice == "as is"
    diagnosis = diagnose(vectors(0.4, 256), host=host("llama"))
    assert diagnosis.absorption is None
    assert diagnosis.verdict.recipe == "pretrained | center | scale to=host"
    assert diagnose(vectors(0.4, 256), host=host("llama"), recipe=diagnosis.verdict.recipe).verdict.advice == "as is"


def test_positions_are_called_weak_only_where_they_are_hard_to_read() -> None:
    diagnosis = diagnose(vectors(0.04, 768))
    assert diagnosis.absorption is not None

    def kind(readout: float | None) -> str:
        basis = replace(diagnosis.basis, absorbed=replace(diagnosis.absorption, position_readout=readout))  # type: ignore[type-var]
        advised = verdict(basis)
        assert advised.advice == "as is or lightly scaled"
        return advised.findings[0].kind

    assert kind(0.89) == "larger_weak"
    assert kind(0.9) == kind(1.0) == "larger_readable"
    assert kind(None) == "larger"


def test_a_finding_tells_whether_its_thresholds_were_measured_with_such_a_model() -> None:
    for name, tested in (("bert", False), ("tutorial", True)):
        absorption = diagnose(vectors(0.4, 256), host=host(name)).verdict.findings[0]
        assert (absorption.name, absorption.numbers["tested"]) == ("absorption", tested)


def test_odd_rows_are_named(aligned: Aligned) -> None:
    def names(rows: Aligned, **more: object) -> set[str]:
        return {finding.name for finding in diagnose(rows, **more).verdict.findings}  # type: ignore[arg-type]

    assert "mean" in names(vectors(0.1, 64, mean=0.1))
    assert "isotropy" in names(vectors(0.1, 64, mean=0.3))
    odd = vectors(0.1, 64).vectors.copy()
    odd[:, 3] *= 50
    odd[1] = 0
    odd[5] = odd[6]
    strange = replace(vectors(0.1, 64), vectors=odd)
    assert {"outlier dimensions", "zero rows", "duplicate rows"} <= names(strange)
    numbers = {finding.name: finding.numbers for finding in diagnose(strange).verdict.findings}
    assert numbers["outlier dimensions"] == {"count": 1, "dimensions": (3,)}
    assert numbers["zero rows"] == numbers["duplicate rows"] == {"count": 1}
    assert "missing rows" in names(aligned, recipe=recipe("pretrained", "zeros"))
    assert "missing rows" not in names(aligned)
    assert "logits" in names(vectors(5, 64), host=host("marian"))


def test_everything_is_plain_data() -> None:
    content = json.loads(json.dumps(diagnose(vectors(0.37, 64)).as_dict()))
    assert content["verdict"]["advice"] == "standardize"
    assert content["host"]["name"] == "tutorial"
    scaled = content["distribution"]["found"]["scaled"]["std"]
    assert scaled == pytest.approx(8 * content["distribution"]["found"]["raw"]["std"])


def test_the_thresholds_are_in_order() -> None:
    limit = thresholds()["ratio"]
    assert limit["buried"] < limit["aim"] < limit["good"] < limit["border"]
    limit = thresholds()["classification"]
    assert limit["low"] < limit["aim"] < limit["high"]


def test_percent() -> None:
    shares = (0, 0.0004, 0.012, 0.5, 0.994, 0.996, 0.99897, 0.99997, 1)
    texts = ["0 %", "0.04 %", "1 %", "50 %", "99 %", "99.6 %", "99.9 %", "99.997 %", "100 %"]
    assert [percent(share) for share in shares] == texts


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture_is_drawn(ending: str, tmp_path: Path) -> None:
    from embinit.diagnosis.plot import plot

    path = tmp_path / f"picture.{ending}"
    plot(diagnose(vectors(0.37, 64, rows=500)), path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size > 4000
