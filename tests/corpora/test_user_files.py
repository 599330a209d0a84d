"""A user's own files, and data sets as the hub has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embinit.corpora.tasks import read_hub
from embinit.corpora.user import read_files
from embinit.errors import EmbinitError
from tests.corpora.layouts import ENGLISH, GERMAN, lines, multi30k_jsonl, write


def test_parallel_text_with_splits(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.source.txt", lines(GERMAN))
        write(tmp_path / f"{split}.target.txt", lines(ENGLISH))
    corpus = read_files(tmp_path, "de-en")
    assert corpus.task == "translation"
    assert corpus.splits.keys() == {"train", "valid"}
    assert corpus.splits["valid"].texts == (GERMAN, ENGLISH)
    assert corpus.languages == ("de", "en")


def test_parallel_text_without_splits_is_split(tmp_path: Path) -> None:
    write(tmp_path / "source.txt", lines([f"s{i}" for i in range(2000)]))
    write(tmp_path / "target.txt", lines([f"t{i}" for i in range(2000)]))
    corpus = read_files(tmp_path)
    assert sum(len(rows) for rows in corpus.splits.values()) == 2000
    assert all(0 < len(corpus.splits[name]) < 60 for name in ("valid", "test"))


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_labelled_tables(ending: str, tmp_path: Path) -> None:
    rows = [("fine, really", "good"), ("dull", "bad"), ("fine\nagain" if ending != "tsv" else "again", "good")]
    if ending == "jsonl":
        content = lines([json.dumps({"text": text, "label": label}) for text, label in rows])
    else:
        mark = "," if ending == "csv" else "\t"
        quoted = [f'"{text}"' if ending == "csv" else text for text, _ in rows]
        content = lines(
            [f"text{mark}label", *(f"{text}{mark}{row[1]}" for text, row in zip(quoted, rows, strict=True))]
        )
    write(tmp_path / f"train.{ending}", content)
    write(tmp_path / f"valid.{ending}", content.replace("dull", "strange").replace("bad", "unheard"))
    corpus = read_files(tmp_path)
    assert corpus.labels == ("bad", "good")
    assert corpus.splits["train"].texts == ([text for text, _ in rows],)
    assert corpus.splits["train"].labels is not None
    assert corpus.splits["train"].labels.tolist() == [1, 0, 1]
    assert corpus.splits["valid"].reading.rejected == {"unknown label 'unheard'": 1}


def test_two_sentences(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "premise\thypothesis\tlabel\nA.\tB.\tyes\n")
    assert read_files(tmp_path).splits["train"].texts == (["A."], ["B."])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("wrong\tcolumns\na\tb\n", "no column 'source'; one of columns, wrong"),
        ("source\ttarget\n\t\n", "train: no good row"),
        (None, "holds no training rows: expected train.source.txt"),
    ],
)
def test_wrong_files(content: str | None, sentence: str, tmp_path: Path) -> None:
    if content is not None:
        write(tmp_path / "train.tsv", content)
    with pytest.raises(EmbinitError) as caught:
        read_files(tmp_path)
    assert sentence in str(caught.value)


def test_the_hubs_files_are_read_as_the_folders_are(tmp_path: Path) -> None:
    multi30k_jsonl(tmp_path)
    asked = []

    def download(repository: str, file: str, revision: str | None) -> Path:
        asked.append((repository, file, revision))
        return tmp_path / file

    corpus = read_hub("multi30k", download)
    assert corpus.splits["test"].texts == (GERMAN, ENGLISH)
    assert asked[0] == ("bentrevett/multi30k", "train.jsonl", None)
    with pytest.raises(EmbinitError, match="tatoeba is not on the hub"):
        read_hub("tatoeba", download)


def test_the_hubs_parquet_is_read(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `data`")
    pyarrow = pytest.importorskip("pyarrow")

    def download(repository: str, file: str, revision: str | None) -> Path:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if repository == "IWSLT/iwslt2017":
            assert revision == "refs/convert/parquet"
            rows = [{"translation": {"de": de, "en": en}} for de, en in zip(GERMAN, ENGLISH, strict=True)]
        else:
            rows = [{"sentence": "fine", "label": 1, "idx": 0}]
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path

    assert read_hub("iwslt2017", download).splits["valid"].texts == (GERMAN, ENGLISH)
    labels = read_hub("sst2", download).splits["train"].labels
    assert labels is not None
    assert labels.tolist() == [1]
