"""Sizes of the real data sets and of the vocabularies that Table 5 prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from embinit.corpora.tasks import read_corpus
from embinit.prepared.prepare import Settings, prepare


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("multi30k", {"train": 29_000, "valid": 1_014, "test": 1_000}),
        ("sst2", {"train": 67_349, "valid": 872}),
        ("mnli", {"valid": 9_815, "valid_mismatched": 9_832}),
        ("iwslt2017", {"valid": 888, "test": 8_079}),
    ],
)
def test_sizes(name: str, sizes: dict[str, int], real_data: Path) -> None:
    corpus = read_corpus(name, real_data / name)
    assert {split: len(corpus.splits[split]) for split in sizes} == sizes
    assert not any(
        note.startswith((*sizes, "none")) and "officially" in note for note in corpus.notes if name != "mnli"
    )


def test_a_sample_is_said_to_be_one(real_data: Path) -> None:
    notes = read_corpus("mnli", real_data / "mnli").notes
    assert notes == ("train has 65,591 rows, officially 392,702 (16.7 %)",)


@pytest.mark.parametrize(
    ("name", "tokenizer", "sizes"),
    [
        ("multi30k", "spacy", {"source": 7_853, "target": 5_893}),
        ("multi30k", "mbert-cased", {"source": 6_257, "target": 5_460}),
        ("sst2", "spacy", {"text": 13_439}),
        ("sst2", "bert-base-uncased", {"text": 11_315}),
        # 8,824 where the tokenizer's own <unk> counts beside the vocabulary's
        ("sst2", "t5", {"text": 8_823}),
    ],
)
def test_vocabularies_of_table_5(
    name: str, tokenizer: str, sizes: dict[str, int], real_data: Path, tmp_path: Path
) -> None:
    corpus = read_corpus(name, real_data / name)
    path = real_data.parent / "tokenizers" / tokenizer
    if tokenizer != "spacy" and not path.is_dir():
        pytest.skip(f"no tokenizers/{tokenizer} beside the data")
    specs = tuple(f"spacy:{language}" if tokenizer == "spacy" else str(path) for language in corpus.languages)
    prepared, _ = prepare(corpus, Settings(name, specs, tokenizer == "spacy", 2, corpus.languages), tmp_path)
    assert prepared.manifest["vocabularies"] == sizes
