"""A user's own files, and data sets as the hub has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embinit.corpora.examples import Corpus
from embinit.corpora.tasks import read_hub
from embinit.corpora.user import read_files
from embinit.errors import EmbinitError, Unavailable
from embinit.prepared.prepare import Settings, prepare
from tests.corpora.layouts import ENGLISH, GERMAN, lines, multi30k_jsonl, write
from tests.refusal import refused


def test_parallel_text_with_splits(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.source.txt", lines(GERMAN))
        write(tmp_path / f"{split}.target.txt", lines(ENGLISH))
    corpus = read_files(tmp_path, "de-en")
    assert corpus.task == "translation"
    assert corpus.splits.keys() == {"train", "valid"}
    assert corpus.splits["valid"].texts == (GERMAN, ENGLISH)
    assert corpus.languages == ("de", "en")


def pairs(folder: Path, count: int, names: tuple[str, str] = ("source.txt", "target.txt"), start: int = 0) -> Path:
    """Write parallel text of distinct sentences, and return its folder."""
    folder.mkdir(exist_ok=True)
    for name, letter in zip(names, "st", strict=True):
        write(folder / name, lines([f"{letter}{i}" for i in range(start, start + count)]))
    return folder


def sizes(corpus: Corpus) -> dict[str, int]:
    return {name: len(rows) for name, rows in corpus.splits.items()}


@pytest.mark.parametrize(("count", "held_out"), [(3_000, 300), (20_000, 500), (100_000, 1_000)])
def test_rows_without_splits_give_splits_that_can_be_scored(count: int, held_out: int, tmp_path: Path) -> None:
    corpus = read_files(pairs(tmp_path, count))
    assert sizes(corpus) == {"train": count - 2 * held_out, "valid": held_out, "test": held_out}
    assert corpus.held_out == ("valid", "test")
    targets = [set(rows.texts[1]) for rows in corpus.splits.values()]
    assert len(set.union(*targets)) == count
    assert len(corpus.notes) == 1
    assert f"{held_out:,} for validation and {held_out:,} for the test" in corpus.notes[0]


def test_a_sentence_is_in_one_split_and_added_rows_move_few(tmp_path: Path) -> None:
    before = read_files(pairs(tmp_path / "a", 3_000)).splits
    after = read_files(pairs(tmp_path / "b", 3_100)).splits
    assert len(set(before["test"].texts[1]) & set(after["test"].texts[1])) > 250
    write(tmp_path / "data.tsv", "text\tlabel\n" + "".join(f"row {i // 3}\t{i % 2}\n" for i in range(900)))
    write(tmp_path / "data.tsv", (tmp_path / "data.tsv").read_text() + "often\t1\n" * 400)
    splits = read_files(tmp_path).splits
    texts = [set(rows.texts[0]) for rows in splits.values()]
    assert not texts[0] & texts[1] and not texts[1] & texts[2] and not texts[0] & texts[2]
    assert "often" in texts[0]  # it alone would fill a split
    assert all(100 < len(splits[name]) <= 130 for name in ("valid", "test"))


def test_training_rows_alone_are_split_and_a_missing_test_is_not(tmp_path: Path) -> None:
    alone = pairs(tmp_path / "alone", 2_500, ("train.source.txt", "train.target.txt"))
    assert sizes(read_files(alone)) == {"train": 2_000, "valid": 250, "test": 250}
    with_test = pairs(pairs(tmp_path / "t", 2_500, ("train.src", "train.tgt")), 300, ("test.src", "test.tgt"), 9_000)
    assert sizes(read_files(with_test)) == {"train": 2_250, "valid": 250, "test": 300}
    with_valid = pairs(pairs(tmp_path / "v", 2_500, ("train.src", "train.tgt")), 300, ("dev.src", "dev.tgt"), 9_000)
    corpus = read_files(with_valid)
    assert sizes(corpus) == {"train": 2_500, "valid": 300}
    assert corpus.notes == corpus.held_out == ()


def test_splits_too_small_to_be_scored_are_noted(tmp_path: Path) -> None:
    small = read_files(pairs(tmp_path / "small", 1_500))
    assert [note.partition(" has ")[0] for note in small.notes[1:]] == ["valid", "test"]
    tiny = read_files(pairs(tmp_path / "tiny", 8))
    assert sizes(tiny) == {"train": 8}
    assert "no validation rows" in tiny.notes[0]


def test_pairs_named_by_their_languages_are_read_as_they_are(tmp_path: Path) -> None:
    folder = pairs(tmp_path / "a", 50, ("train.de", "train.en"))
    pairs(folder, 5, ("val.de", "val.en"), 900)
    corpus = read_files(folder, "de-en")
    assert sizes(corpus) == {"train": 50, "valid": 5}
    assert corpus.splits["train"].texts[0][0] == "s0"
    assert read_files(folder, "en-de").splits["train"].texts[0][0] == "t0"
    with pytest.raises(EmbinitError, match=r"train\.de and train.en; say which is the source"):
        read_files(folder)
    with pytest.raises(EmbinitError, match=r"train\.fr and train\.en"):
        read_files(folder, "fr-en")
    moses = pairs(tmp_path / "b", 50, ("corpus.de-en.de", "corpus.de-en.en"))
    assert len(read_files(moses, "de-en").splits) == 3


def test_two_files_and_a_table_are_read_by_their_names(tmp_path: Path) -> None:
    pairs(tmp_path, 50, ("news.de", "news.en"))
    corpus = read_files([tmp_path / "news.en", tmp_path / "news.de"])
    assert corpus.languages == ("en", "de")
    assert corpus.splits["train"].texts[0][0].startswith("t")
    write(tmp_path / "reviews.tsv", "text\tlabel\n" + "".join(f"row {i}\t{i % 2}\n" for i in range(500)))
    assert sizes(read_files(tmp_path / "reviews.tsv")) == {"train": 400, "valid": 50, "test": 50}
    with pytest.raises(EmbinitError, match="neither a folder nor a table"):
        read_files(tmp_path / "news.de")
    with pytest.raises(Unavailable, match="no such file or folder"):
        read_files([tmp_path / "news.de", tmp_path / "none.en"])


def test_the_order_of_two_files_decides_the_prepared_task(tmp_path: Path) -> None:
    pairs(tmp_path, 60, ("a.txt", "b.txt"))
    settings = Settings("files", ("whitespace", "whitespace"), False, 1, ("xx", "xx"))
    both = [tmp_path / "a.txt", tmp_path / "b.txt"]
    one, other = (prepare(read_files(paths), settings, tmp_path / "out")[0] for paths in (both, both[::-1]))
    assert one.path != other.path
    assert "s1" in one.vocabularies["source"].tokens
    assert "s1" in other.vocabularies["target"].tokens


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
            "the first line names the columns wrong, columns, but a classification needs label and text, and a",
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
    with pytest.raises(EmbinitError, match="'de' is not SOURCE-TARGET"):
        read_files(tmp_path, "de")
    write(tmp_path / "valid.tsv", "text\tlabel\na\t1\n")
    with pytest.raises(EmbinitError, match="differ in kind"):
        read_files(tmp_path)


def test_damaged_parquet_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is in the extra `data`")
    (tmp_path / "train.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(EmbinitError, match="cannot be read as Parquet"):
        read_files(tmp_path)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embinit.text.vocabulary.LONGEST_LINE", 1000)
    (tmp_path / "train.de").write_text("ein Satz\n" * 9 + "x" * 2000)
    (tmp_path / "train.en").write_text("a sentence\n" * 10)
    with refused(tmp_path / "train.de", "line 10 is longer than"):
        read_files(tmp_path, "de-en")
