"""The card says where a matrix came from and what was done to it, as valid JSON."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embinit
from embinit.export.card import card, digest
from embinit.export.formats import FORMATS, write
from embinit.text.vocabulary import from_tokens
from embinit.types import Aligned, Matrix

WORDS = ["<unk>", "<pad>", "cat", "dog", "bird", "fish"]


@pytest.fixture
def aligned(tmp_path: Path) -> Aligned:
    rng = np.random.default_rng(1)
    lines = [f"{word} {' '.join(f'{x:.5g}' for x in rng.normal(0.1, 0.4, 8))}" for word in ("cat", "dog", "bird")]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\ncat" + " 1" * 8 + "\n")
    return embinit.align(tmp_path / "glove.txt", from_tokens(WORDS))


def made(aligned: Aligned, name: str = "pretrained_xavier") -> tuple[Matrix, dict[str, Any]]:
    recipe = embinit.recipe(name)
    matrix = recipe(aligned, embinit.stream(3, "matrix"))
    return matrix, card(aligned, matrix, recipe, embinit.host(), 3)


def strict(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    content: dict[str, Any] = json.loads(path.read_text(), parse_constant=refuse)
    return content


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_its_card(name: str, aligned: Aligned, tmp_path: Path) -> None:
    matrix, content = made(aligned)
    path = tmp_path / f"out{FORMATS[name].ending}"
    written = write(matrix, aligned.vocabulary, path, format=name, card=content)
    read = strict(written.files[-1])
    assert read["format"] == name
    assert read["left out"] == list(written.left_out)
    assert read["added"] == list(written.added)
    assert {key: read[key] for key in content} == json.loads(json.dumps(content))


def test_it_names_what_is_needed_to_make_the_matrix_again(aligned: Aligned, tmp_path: Path) -> None:
    matrix, content = made(aligned)
    assert content["made by"] == f"embinit {embinit.__version__}"
    assert content["source"]["source"] == str(tmp_path / "glove.txt")
    assert content["recipe"] == {
        "name": "pretrained_xavier",
        "steps": "pretrained | center | scale to=xavier",
        "fill": "target",
    }
    assert content["seed"] == 3
    assert content["shape"] == [6, 8]
    again = embinit.recipe(content["recipe"]["steps"], content["recipe"]["fill"])
    assert digest(again(aligned, embinit.stream(content["seed"], "matrix"))) == content["sha256"]
    assert content["model"]["name"] == embinit.host().name
    assert matrix.shape == (6, 8)


def test_coverage_leaves_specials_aside(aligned: Aligned) -> None:
    coverage = made(aligned)[1]["coverage"]
    assert coverage["types"] == 3 / 4
    assert coverage["tokens"] is None
    assert coverage["matches"]["exact"] == 3
    assert coverage["matches"]["special"] == 2
    assert coverage["matches"]["missing"] == 1


def test_before_and_after_are_of_the_source_and_of_the_matrix(aligned: Aligned) -> None:
    matrix, content = made(aligned)
    assert content["before"]["rows"] == 3
    assert content["before"]["std"] == pytest.approx(float(aligned.rows.std()), rel=1e-5)
    assert content["after"]["rows"] == 6
    assert content["after"]["std"] == pytest.approx(float(matrix.std()), rel=1e-5)
    assert content["after"]["std"] != pytest.approx(content["before"]["std"], rel=0.01)


def test_the_digest_is_of_little_endian_rows(aligned: Aligned) -> None:
    matrix, content = made(aligned)
    expected = hashlib.sha256(matrix.astype("<f4").tobytes()).hexdigest()
    assert content["sha256"] == expected == digest(np.asfortranarray(matrix)) == digest(matrix.astype(">f4"))
    assert digest(matrix + np.float32(1e-3)) != expected


def test_a_matrix_of_one_number_has_a_valid_card(tmp_path: Path) -> None:
    vocabulary = from_tokens(["cat", "dog"])
    flat = Aligned(
        vocabulary,
        np.full((2, 4), 0.5, dtype=np.float32),
        np.ones(2, dtype=bool),
        ("exact", "exact"),
        embinit.types.Origin("here", "array", {"rows": 2}),
    )
    content = card(flat, flat.vectors, embinit.recipe("pretrained"), embinit.host(), 0)
    written = write(flat.vectors, vocabulary, tmp_path / "flat.npy", card=content)
    assert strict(written.files[-1])["after"]["std"] == 0


def test_nothing_found_has_no_before(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("cat 1 2 3\ndog 4 5 7\n")
    aligned = embinit.align(tmp_path / "glove.txt", from_tokens(["zebra", "yak"]))
    matrix = np.ones((2, 3), dtype=np.float32)
    content = card(aligned, matrix, embinit.recipe("pretrained"), embinit.host(), 0)
    assert content["before"] is None
    assert content["coverage"]["types"] == 0
    json.dumps(content, allow_nan=False)


def test_a_card_that_is_no_json_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(np.ones((1, 2), dtype=np.float32), from_tokens(["a"]), tmp_path / "a.npy", card={"std": float("nan")})
    assert not list(tmp_path.glob("*card*"))
