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
        (
            "wrong\tcolumns\na\tb\n",
            "the columns are wrong, columns; a translation has source or src and target or tgt or trg, a classification "
            "label or gold_label or class and text or",
        ),
        ("source\ttext\na\tb\n", "no column target or tgt or trg; it has source, text"),
        ("txet\tlabel\na\tb\n", "question or question1; it has txet, label"),
        ("source\ttarget\n\t\n", "train: no usable row"),
        (None, "holds no training rows: expected train.source.txt"),
    ],
)
def test_a_wrong_file_is_one_sentence(content: str | None, sentence: str, tmp_path: Path) -> None:
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


def test_odd_csv_rows_are_counted_and_the_others_read(tmp_path: Path) -> None:
    content = 'text,label\na 5" tube,1\n"two\nlines",0\n"never closed,1\n'
    write(tmp_path / "train.csv", content)
    rows = read_files(tmp_path).splits["train"]
    assert rows.texts[0][:2] == ['a 5" tube', "two\nlines"]
    assert sum(rows.reading.rejected.values()) == 1


def test_a_users_own_test_split_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "data.tsv", "text\tlabel\n" + "".join(f"row {i}\t{i % 2}\n" for i in range(500)))
    write(tmp_path / "test.tsv", "text\tlabel\nmine\t1\n")
    assert read_files(tmp_path).splits["test"].texts == (["mine"],)
    write(tmp_path / "train.tsv", "text\tlabel\nmine\t1\n")
    with pytest.raises(EmbinitError, match="rows without a split"):
        read_files(tmp_path)


def test_small_data_has_no_empty_split_and_counts_rejections_once(tmp_path: Path) -> None:
    write(tmp_path / "data.tsv", "text\tlabel\n\t1\n" + "".join(f"r{i}\t{i % 2}\n" for i in range(30)))
    splits = read_files(tmp_path).splits
    assert all(len(rows) for rows in splits.values())
    assert sum(sum(rows.reading.rejected.values()) for rows in splits.values()) == 1


def test_question_and_sentence_are_two_texts(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "question\tsentence\tlabel\nWho?\tHe.\tyes\n")
    assert read_files(tmp_path).splits["train"].texts == (["Who?"], ["He."])


def test_a_field_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "label": None},
        {"text": ["x"], "label": 1},
        {"text": 0, "label": 1},
        {"text": "b", "label": 0},
    ]
    write(tmp_path / "train.jsonl", lines([json.dumps(row) for row in rows]))
    found = read_files(tmp_path)
    assert found.splits["train"].texts == (["0", "b"],)
    assert found.labels == ("0", "1")


def test_other_names_of_the_sides_a_wrong_pair_and_mixed_kinds(tmp_path: Path) -> None:
    write(tmp_path / "train.src", lines(GERMAN))
    write(tmp_path / "train.trg", lines(ENGLISH))
    assert read_files(tmp_path).splits["train"].texts == (GERMAN, ENGLISH)
    with pytest.raises(EmbinitError, match="expected SOURCE-TARGET"):
        read_files(tmp_path, "de")
    write(tmp_path / "valid.tsv", "text\tlabel\na\t1\n")
    with pytest.raises(EmbinitError, match="differ in kind"):
        read_files(tmp_path)


def test_damaged_parquet_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is in the extra `data`")
    (tmp_path / "train.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(EmbinitError, match="cannot be read as Parquet"):
        read_files(tmp_path)
