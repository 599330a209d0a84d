"""The paper's numbers from real data: what PAPER.md says reproduces exactly, does."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from embinit.alignment import Matching, align
from embinit.diagnosis.analogy import Score, answerable, evaluate, known_words, read_questions, table4, total_score
from embinit.diagnosis.diagnose import Diagnosis, diagnose
from embinit.recipes.recipe import recipe
from embinit.seeds import stream
from embinit.text.tokenizers import tokenizer
from embinit.text.vocabulary import from_text, read_lines
from embinit.types import Aligned, Vocabulary, xavier_std


def multi30k(real_data: Path, language: str) -> Vocabulary:
    lines = read_lines([real_data / "multi30k" / f"train.{language}.gz"])
    return from_text(lines, tokenizer(f"spacy:{language}"), lower=True, min_count=2)


@pytest.fixture(scope="module")
def english(real_data: Path) -> Vocabulary:
    return multi30k(real_data, "en")


#: without punctuation, whether or not the file with its rows lies beside it
GLOVE = Path("glove-840b", "glove.840B.300d.33k.txt")


@pytest.fixture(scope="module")
def glove(real_vectors: Path, english: Vocabulary) -> Aligned:
    return align(real_vectors / GLOVE, english, matching=Matching(case=False, markers=False, compose=False))


def test_vocabularies_of_multi30k(real_data: Path, english: Vocabulary) -> None:
    assert len(english) == 5_893
    assert len(multi30k(real_data, "de")) == 7_853


def test_xavier_row_of_table_6() -> None:
    assert math.sqrt(6 / (7_853 + 300)) == pytest.approx(0.0271, abs=5e-5)
    assert xavier_std(7_853, 300) == pytest.approx(0.0157, abs=5e-5)


def test_glove_rows_of_multi30k(glove: Aligned) -> None:
    assert glove.rows.std() == pytest.approx(0.378, abs=5e-4)
    assert glove.rows.min() == pytest.approx(-3.92, abs=5e-3)
    assert glove.rows.max() == pytest.approx(4.19, abs=5e-3)


def test_table_4(glove: Aligned, real_data: Path) -> None:
    asked = read_questions(real_data / "analogy" / "questions-words.txt", lower=True)
    assert len(asked) == 19_544
    assert len(answerable(asked, glove.vocabulary.index)) == 1_631
    matrix = recipe("pretrained")(glove, stream(0, "matrix"))
    places, index = known_words(glove)
    assert total_score(evaluate(matrix[places], index, asked)) == Score(1_424, 1_631)
    rows = {row.name: row for row in table4(glove, matrix, asked)}
    for name in ("vectors", "vectors, scaled", "Xavier-standardized", "Xavier-standardized, scaled"):
        assert rows[name].right == (1_424,)
    assert 100 * rows["vectors, scaled + positions"].accuracy == pytest.approx(87.4, abs=0.3)
    for name in ("Xavier-standardized, scaled + positions", "vectors, scaled + positions × σp/σx"):
        row = rows[name]
        error = 100 * statistics.stdev(row.right) / row.asked / math.sqrt(len(row.right))
        assert 100 * row.accuracy == pytest.approx(11.6, abs=4 * error)


def judged(real_vectors: Path, name: str, english: Vocabulary) -> Diagnosis:
    return diagnose(align(real_vectors / (GLOVE if name == "glove-840b" else name), english))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("glove-840b", "standardize"),
        ("minilm", "as is or lightly scaled"),
        ("distilbert-cased", "as is or lightly scaled"),
        ("flan-t5-small", "standardize"),
        ("potion-8m", "standardize"),
        ("use-multilingual", "standardize"),
    ],
)
def test_verdicts_agree_with_the_findings(name: str, advice: str, real_vectors: Path, english: Vocabulary) -> None:
    seen = judged(real_vectors, name, english)
    assert seen.verdict.advice == advice
    if name == "flan-t5-small":
        assert seen.verdict.case == "absorbed"
        assert "rounding_elsewhere" in {finding.kind for finding in seen.verdict.findings}
        assert seen.absorption is not None
        assert seen.absorption.rounding_loss["bfloat16"] > 0.2
        assert seen.counts["rows beyond the tokenizer, cut"] == 28
