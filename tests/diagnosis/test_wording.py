"""The sentences of a verdict: one exact text for each template."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from embinit.diagnosis.findings import Finding
from embinit.diagnosis.verdict import Verdict
from embinit.diagnosis.wording import Case, advice_of, headline, templates

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "embinit"
DOCS = Path(__file__).resolve().parents[2] / "docs"

HEADLINES = {
    "absorbed": "Standardize these vectors. As they are, they absorb the positions, and the model will do worse than with "
    "random rows.",
    "outweighed": "Standardize these vectors. As they are, they outweigh the positions, and the model will do worse than "
    "with random rows.",
    "near": "Use these vectors as they are, or scale them lightly. Their size is near the range that does no harm.",
    "fitting": "Use these vectors as they are. Their size fits the positions.",
    "drowned": "Enlarge these vectors. They do no harm, but the positions drown their meaning.",
    "random": "Use these rows as they are. Small rows do no harm, and random rows have no meaning to lose.",
    "classifier_large": "Scale these vectors down to 1.4 times the positions. At the full learning rate, classifiers did "
    "best at about this size.",
    "classifier_fitting": "Use these vectors as they are. At the full learning rate, classifiers did best at about this "
    "size.",
    "classifier_small": "Enlarge these vectors to 1.4 times the positions. Rows this small do no harm, but training soon "
    "overwrites their meaning.",
    "slow": "Standardize these vectors, and train them at a tenth of the other weights' learning rate.",
    "slow_source": "Use the standardized rows of the source instead, and train them at a tenth of the other weights' "
    "learning rate.",
    "slow_standardized": "Use these vectors as they are, because they are already standardized. Train them at a tenth of "
    "the other weights' learning rate.",
    "stream_large": "Standardize these vectors. As they are, they are so large that the model's blocks hardly change them "
    "at first.",
    "stream_small": "Enlarge these vectors. As they are, the outputs of the model's blocks drown them.",
    "stream_fitting": "Use these vectors as they are. Their scale is that of the model's own initialization.",
}
SEEN = {"ratio": 9.253, "readout": 0.071, "neighbours": 0.98, "tested": True}
LOST = {"lost": {"tf32": 0.02, "bfloat16": 0.42}, "format": "float32"}
#: kind -> numbers, sentence
FINDINGS: dict[str, tuple[dict[str, object], str]] = {
    "absorbed": (
        SEEN,
        "The rows absorb the positions, and long sentences suffer most: the scaled σ is 9.25 times the rms of the "
        "positions, a linear read-out finds 7 % of positions (chance is 5 %) and 98 % of nearest neighbours stay.",
    ),
    "outweighed": (
        {**SEEN, "neighbours": None},
        "The rows outweigh the positions, although these can still be read, and long sentences suffer most: the scaled σ is "
        "9.25 times the rms of the positions and a linear read-out finds 7 % of positions (chance is 5 %).",
    ),
    "larger": (
        {"ratio": 1.6, "readout": None, "neighbours": None, "tested": False},
        "The rows are larger than the positions: the scaled σ is 1.6 times the rms of the positions. The thresholds come "
        "from models with sinusoids and post-LN.",
    ),
    "positions_assumed": (
        {"rms": 0.02, "host": "model (bert)"},
        "The size of the positions is assumed (rms 0.02), because model (bert) has no weights of positions to measure. Give "
        "a model or a folder that has them.",
    ),
    "order": (
        {},
        "If all weights share one learning rate and word order matters little, as for sentiment, compare with the vectors "
        "as they are: they may do as well or better.",
    ),
    "slow_rows": (
        {
            "rate": "a tenth",
            "mnli": [1.6, 3.3],
            "sst2": [0.6, 2.0],
            "without_gain": "GloVe on SST-2",
            "docs": "explanation/findings",
        },
        "Standardized rows leave the positions readable, and they seem to keep their meaning if they learn slowly. At a "
        "tenth of the rate they gained 1.6 to 3.3 points on MNLI over the full rate, and 0.6 to 2.0 points on SST-2; only "
        "GloVe on SST-2 gained nothing (see docs/explanation/findings.md).",
    ),
    "larger_slow_rows": (
        {"aim": 1.4, "better": 3, "tests": 8, "mnli": [1.2, 1.9], "docs": "explanation/findings"},
        "Compare with larger rows (1.4 times the positions, or BERT's as they are). At the same low rate they did better in "
        "3 of 8 tests, by 1.2 to 1.9 points on MNLI, and worse beyond noise in none (see docs/explanation/findings.md).",
    ),
    "scale": (
        {"positions": "rotary", "std": 0.4, "ratio": 20.0, "own": 0.02, "host": "llama"},
        "This model does not add positions to its rows (rotary), so the rows cannot absorb them. Their scale still matters: "
        "σ is 0.4, which is 20 times the 0.02 of llama's own initialization.",
    ),
    "untested_language_model": (
        {},
        "No run has tested this advice on a language model yet. It comes from translation, classification and the model's "
        "own initialization. Compare it with the model's own rows: `embinit run` trains language models.",
    ),
    "larger_rotary_rows": (
        {
            "mnli": {"std": "1/√D", "gain": 2.2, "low": 1.5, "high": 2.9},
            "sst2": {"std": "4.7 times Xavier's", "gain": 1.0, "low": 0.3, "high": 1.7},
            "docs": "explanation/findings",
        },
        "A classifier may do better with larger rows. With rotary positions, GloVe at σ = 1/√D gained 2.2 points [1.5, 2.9] "
        "on MNLI over Xavier's σ, and at 4.7 times Xavier's 1.0 points [0.3, 1.7] on SST-2 "
        "(see docs/explanation/findings.md). Compare `pretrained | center | scale to=inverse_sqrt_d`.",
    ),
    "rounding_harmless": ({}, "No number format loses the positions at this scale."),
    "rounding": (
        {"lost": {"bfloat16": 0.42}, "format": "bfloat16"},
        "Rounding removes the positions in bfloat16, the model's number format: 42 % of their signal is lost in bfloat16.",
    ),
    "rounding_elsewhere": (
        LOST,
        "Rounding would remove the positions in another number format than the model's float32: 42 % of their signal is "
        "lost in bfloat16 and 2 % in tf32.",
    ),
    "rounding_little": (
        {"lost": {"tf32": 0.02}, "format": "float32"},
        "Rounding takes a little of the positions: 2 % of their signal is lost in tf32.",
    ),
    "dimension": (
        {"rows": 50, "model": 1024, "host": "model (bert)", "project": "orthogonal"},
        "The rows have 50 dimensions, but model (bert) has 1,024. Project them: `dim=1024, project='orthogonal'` in "
        "`embinit.align`, or `--dim 1024 --project orthogonal`. The advice is for rows of 50 dimensions.",
    ),
    "coverage": ({"share": 0.4}, "Only 40 % of the vocabulary was found. Most rows will be random."),
    "missing_rows": ({"missing": 0.0123, "found": 0.4}, "Missing rows have σ 0.0123, found rows 0.4."),
    "mean": ({"offset": 0.3}, "The mean is 0.30 σ away from zero; `pretrained | center` removes it."),
    "isotropy": (
        {"cosine": 0.81},
        "The rows point in the same direction (mean cosine 0.81); `pretrained | all_but_the_top` spreads them.",
    ),
    "outlier_dimensions": (
        {"count": 7, "dimensions": (3, 5, 8, 13, 21, 34, 55)},
        "Outlier dimensions, which dominate the others: 7 (3, 5, 8, 13, 21).",
    ),
    "zero_rows": ({"count": 1}, "Zero rows: 1."),
    "duplicate_rows": ({"count": 1200}, "Duplicate rows: 1,200."),
    "bad_rows": ({"count": 2}, "Rows with NaN or infinite numbers: 2."),
    "logits": (
        {"std": 40.0},
        "The embeddings are tied and the first logits have σ 40, so the loss starts far too high.",
    ),
}
#: Kinds whose sentence is a claim before the same measurements as that of `absorbed`.
CLAIMS = {
    "larger_readable": "The rows are larger than the positions, which can still be read",
    "larger_weak": "The positions are weak beside the rows, but not lost",
    "fitting": "Rows and positions have about the same size, which does no harm even if few neighbours stay",
    "drowned": "The positions drown the rows",
    "classifier_absorbed": "The rows absorb the positions",
    "classifier_outweighed": "The rows outweigh the positions, although these can still be read",
    "classifier_fitting": "The rows are about as large as the positions, or somewhat larger",
    "classifier_small": "The rows are small beside the positions",
}


def test_every_template_has_an_exact_text_here() -> None:
    assert list(templates()["cases"]) == list(get_args(Case)) == list(HEADLINES)
    assert templates()["findings"].keys() == FINDINGS.keys() | CLAIMS.keys()


@pytest.mark.parametrize("case", get_args(Case))
def test_headlines(case: Case) -> None:
    assert headline(case, 1.4, 0.1) == HEADLINES[case]
    assert advice_of(case) in {"as is", "as is or lightly scaled", "standardize", "scale down", "enlarge"}


@pytest.mark.parametrize("kind", FINDINGS)
def test_findings(kind: str) -> None:
    numbers, text = FINDINGS[kind]
    assert Finding("note", "any", kind, numbers).text == text


@pytest.mark.parametrize("kind", CLAIMS)
def test_findings_about_the_same_measurements(kind: str) -> None:
    _, _, measured = FINDINGS["absorbed"][1].partition(": ")
    assert Finding("note", "any", kind, SEEN).text == f"{CLAIMS[kind]}: {measured}"


def test_json_keeps_its_keys() -> None:
    finding = Finding("note", "mean", "mean", {"offset": 0.3})
    assert Verdict("slow", "pretrained_xavier", (finding,), 0.1, "pretrained").as_dict() == {
        "advice": "standardize",
        "headline": HEADLINES["slow"],
        "recipe": "pretrained_xavier",
        "rate": 0.1,
        "at_full_rate": "pretrained",
        "findings": [{"severity": "note", "name": "mean", "text": FINDINGS["mean"][1]}],
    }


def test_shipped_text_names_documentation_pages_and_no_files_that_are_not_shipped() -> None:
    import re

    text = "\n".join(path.read_text("utf-8") for path in sorted((PACKAGE / "diagnosis").iterdir()) if path.is_file())
    pages = set(re.findall(r"docs: ([\w/]+)|docs = \"([\w/]+)\"", text))
    names = {name for pair in pages for name in pair if name and name != "NAME"}
    assert names
    assert all((DOCS / f"{name}.md").is_file() for name in names)
    assert not re.findall(r"results/|experiments/", text)
