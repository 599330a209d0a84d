"""The real data sets that EMBINIT_DATA names: their rows, and the fingerprints of the runs that were made from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embinit.corpora.data_sets import task_data
from embinit.corpora.tasks import read_corpus
from embinit.experiments.definition.settings import TaskSettings
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.tasks import ready
from embinit.prepared.folder import fingerprint
from embinit.prepared.prepare import Settings, prepare

ROOT = Path(__file__).parents[2]

ROWS = {
    "ted": {"train": 53_590, "valid": 7_284, "test": 6_750},
    "mnli": {"train": 65_591, "valid": 9_815, "valid_mismatched": 9_832},
    "mnli-98k": {"train": 98_242, "valid": 9_815, "valid_mismatched": 9_832},
    "cola": {"train": 8_551, "valid": 1_043},
    "mrpc": {"train": 3_668, "valid": 408, "test": 1_725},
    "rte": {"train": 2_490, "valid": 277},
    "wnli": {"train": 635, "valid": 71},
    "stsb": {"train": 5_749, "valid": 1_500, "test": 1_379},
}


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_read(name: str, real_data: Path) -> None:
    corpus = read_corpus(name, real_data)
    assert {split: len(rows) for split, rows in corpus.splits.items()} == ROWS[name]
    assert not any(rows.reading.rejected for rows in corpus.splits.values())
    sizes = [note for note in corpus.notes if "officially" in note]
    assert all(note.startswith("train has") for note in sizes)
    assert bool(sizes) == name.startswith("mnli")


@pytest.mark.parametrize("name", [name for name in ROWS if name != "ted"])
def test_every_label_occurs(name: str, real_data: Path) -> None:
    for rows in read_corpus(name, real_data).splits.values():
        assert rows.labels is not None
        assert np.bincount(rows.labels, minlength=len(task_data(name).labels)).min() > 0


def test_wikitexts_words_are_all_there(real_data: Path) -> None:
    corpus = read_corpus("wikitext2", real_data)
    words = {name: sum(len(line.split()) for line in split.texts[0]) for name, split in corpus.splits.items()}
    assert words == {"train": 2_051_910, "valid": 213_886, "test": 241_211}
    assert len({word for line in corpus.splits["train"].texts[0] for word in line.split()} | {"<eos>"}) == 33_278
    assert not corpus.notes


def test_tiny_shakespeare_is_read_whole(real_data: Path) -> None:
    parts = [split.texts[0] for split in read_corpus("tinyshakespeare", real_data).splits.values()]
    assert sum(len(line) + 1 for part in parts for line in part) == 1_115_394


def test_mnlis_subset_keeps_the_fingerprint_of_its_runs(real_data: Path, tmp_path: Path) -> None:
    specs = list(_tasks(json.loads((ROOT / "results" / "table1.results.json").read_text("utf-8"))))
    known = {
        spec["data"] for spec in specs if (spec["name"], spec["tokenizer"], spec["rows"]) == ("mnli", "spacy", 65_591)
    }
    assert len(known) == 1
    settings = Settings("mnli", ("spacy:en",), True, 2, ("en",), rows=65_591, longest=120)
    prepared, _ = prepare(read_corpus("mnli", real_data), settings, tmp_path)
    assert known == {fingerprint(prepared.path)}


def _tasks(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the task of every spec in a results file."""
    if isinstance(content, dict) and {"name", "tokenizer", "data"} <= content.keys():
        yield content
    for inner in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _tasks(inner)


def test_tatoebas_split_keeps_the_fingerprint_of_its_runs(real_data: Path, tmp_path: Path) -> None:
    specs = list(_tasks(json.loads((ROOT / "results" / "table1.results.json").read_text("utf-8"))))
    known = {spec["data"] for spec in specs if (spec["name"], spec["tokenizer"]) == ("tatoeba", "spacy")}
    assert len(known) == 1
    task = TaskSettings("tatoeba", longest=250, also=("iwslt2017:test",))
    assert known == {ready(task, Places(real_data, work=tmp_path), tmp_path, lambda *_: None).data}
