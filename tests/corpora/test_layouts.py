"""Data sets in every layout and both directions, and the count of rejected rows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from embinit.corpora.data_sets import data_folder, tasks
from embinit.corpora.tasks import read_corpus
from embinit.errors import EmbinitError
from tests.corpora.layouts import (
    ENGLISH,
    GERMAN,
    LAYOUTS,
    label_first,
    lines,
    mnli_glue,
    mnli_parts,
    multi30k_raw,
    sst2_tsv,
    write,
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read(layout: str, tmp_path: Path) -> None:
    name, make, sizes = LAYOUTS[layout]
    corpus = read_corpus(name, make(tmp_path))
    assert {split: len(rows) for split, rows in corpus.splits.items()} == sizes
    if corpus.task == "translation":
        assert corpus.splits["train"].texts == (GERMAN, ENGLISH)
        assert corpus.splits["train"].labels is None
    else:
        assert corpus.splits["train"].labels is not None
        assert len(corpus.splits["train"].texts) == len(tasks()[name].texts)
    assert all("officially" in note for note in corpus.notes)
    assert corpus.notes  # none of these has the official size


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name.startswith(("multi30k", "iwslt", "ted"))])
def test_translations_go_both_ways(layout: str, tmp_path: Path) -> None:
    name, make, _ = LAYOUTS[layout]
    corpus = read_corpus(name, make(tmp_path), "en-de")
    assert corpus.splits["train"].texts == (ENGLISH, GERMAN)
    assert corpus.languages == ("en", "de")


def test_xml_entities_are_resolved(tmp_path: Path) -> None:
    corpus = read_corpus("iwslt2017", LAYOUTS["iwslt2017, official"][1](tmp_path))
    assert corpus.splits["valid"].texts[1][0] == "A man runs. & so on"


def test_rejected_rows_are_counted_and_the_first_few_are_kept(tmp_path: Path) -> None:
    folder = multi30k_raw(tmp_path, "")
    write(folder / "train.de", lines([*GERMAN, "", "Ohne Seite"]))
    write(folder / "train.en", lines([*ENGLISH, "Empty here", ""]))
    with (folder / "train.de").open("ab") as out:
        out.write(b"\xff\xfe\n")
    with (folder / "train.en").open("ab") as out:
        out.write(b"fine\n")
    reading = read_corpus("multi30k", folder).splits["train"].reading
    assert reading.rejected == {"an empty side": 2, "not UTF-8": 1}
    assert reading.examples == [
        "train.de, line 4: an empty side",
        "train.de, line 5: an empty side",
        "train.de, line 6: not UTF-8",
    ]


def test_unknown_labels_and_wrong_columns_are_counted(tmp_path: Path) -> None:
    folder = sst2_tsv(tmp_path)
    write(folder / "train.tsv", "sentence\tlabel\ngood\t1\nodd\t7\ntoo\tmany\t1\n\t0\nbad\tnegative\n")
    rows = read_corpus("sst2", folder).splits["train"]
    assert rows.texts == (["good", "bad"],)
    assert rows.labels is not None
    assert rows.labels.tolist() == [1, 0]
    assert rows.reading.rejected == {"unknown label '7'": 1, "3 columns, expected 2": 1, "an empty sentence": 1}
    mnli = read_corpus("mnli", mnli_glue(tmp_path / "mnli")).splits["valid"]
    assert mnli.reading.rejected == {"unknown label '-'": 1}


def test_a_file_without_a_usable_row_is_an_error(tmp_path: Path) -> None:
    folder = sst2_tsv(tmp_path)
    write(folder / "train.tsv", "sentence\tlabel\nodd\t7\n")
    with pytest.raises(
        EmbinitError, match=r"sst2, train: no usable row in .*train.tsv: train.tsv, line 2: unknown label '7'"
    ):
        read_corpus("sst2", folder)


def test_sides_of_different_lengths_are_an_error(tmp_path: Path) -> None:
    folder = multi30k_raw(tmp_path, "")
    write(folder / "train.en", lines(ENGLISH[:2]))
    with pytest.raises(EmbinitError, match=r"train.en ends after 2 lines, but train.de has more"):
        read_corpus("multi30k", folder)


def test_tatoeba_is_split_by_target_and_stays_so(tmp_path: Path) -> None:
    rows = [f"Satz {i} {j}\tSentence {i}" for i in range(3000) for j in range(2)]
    write(tmp_path / "tatoeba.de-en.tsv.gz", lines(["de\ten", *rows]))
    corpus = read_corpus("tatoeba", tmp_path)
    targets = {split: set(found.texts[1]) for split, found in corpus.splits.items()}
    assert not targets["train"] & targets["test"]
    assert not targets["train"] & targets["valid"]
    assert 15 < len(targets["test"]) < 50
    assert sum(len(found) for found in corpus.splits.values()) == 6000
    written = json.dumps({split: found.texts for split, found in corpus.splits.items()})
    assert hashlib.sha256(written.encode()).hexdigest()[:16] == "e4db3fa484bdbf19"
    write(tmp_path / "tatoeba.de-en.tsv.gz", lines(["de\ten", *reversed(rows), "Neu\tNew"]))
    again = read_corpus("tatoeba", tmp_path)
    assert set(again.splits["test"].texts[1]) - {"New"} == targets["test"]


@pytest.mark.parametrize(
    ("name", "pair", "sentence"),
    [
        ("multi30", None, "unknown data set 'multi30'; did you mean 'multi30k'"),
        ("multi30k", "de-xx", "unknown pair 'de-xx'; expected SOURCE-TARGET of de, en, fr, cs"),
        ("multi30k", "de", "unknown pair 'de'"),
        ("multi30k", "de-de", "de-de has one language on both sides"),
        ("sst2", "de-en", "sst2 is a classification, and has no language pair"),
        ("multi30k", None, "does not hold multi30k: looked for train.de, train.jsonl (also"),
        ("iwslt2017", "en-de", "looked for train.en-de.tsv, train.tags.en-de.en (also .gz, .bz2, .xz), here"),
        ("tatoeba", None, "looked for tatoeba.de-en.tsv, de-en.tsv"),
        ("sst2", None, "looked for train.tsv, train.jsonl"),
    ],
)
def test_a_wrong_name_pair_or_folder_is_one_sentence(
    name: str, pair: str | None, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(EmbinitError) as caught:
        read_corpus(name, tmp_path, pair)
    assert sentence in str(caught.value)


def test_every_data_set_has_all_its_fields() -> None:
    glue = {"cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli"}
    assert {"multi30k", "iwslt2017", "ted", "tatoeba", "mnli-98k", *glue} <= tasks().keys()
    for data in tasks().values():
        assert data.layouts
        assert data.about
        assert data.min_count == (5 if data.name == "iwslt2017" else 2)
        assert (data.task == "translation") == bool(data.pair)
        if data.task == "classification":
            assert data.texts
            assert data.label
            assert len(data.labels) > 1


@pytest.mark.parametrize(
    ("name", "content", "texts", "labels"),
    [
        (
            "cola",
            "gj04\t1\t\tThe book is fine.\ngj04\t0\t*\tBook the fine.\n",
            (["The book is fine.", "Book the fine."],),
            [1, 0],
        ),
        ("qnli", "index\tquestion\tsentence\tlabel\n0\tWho?\tHe.\tnot_entailment\n", (["Who?"], ["He."]), [1]),
        ("rte", "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\tentailment\n", (["A."], ["B."]), [0]),
        (
            "mrpc",
            'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tSay "a.\tSay b.\n',
            (['Say "a.'], ["Say b."]),
            [1],
        ),
        ("wnli", "index\tsentence1\tsentence2\tlabel\n0\tA.\tB.\t1\n", (["A."], ["B."]), [1]),
        ("cola", "label\tsentence\n1\tFine.\n0\tNot fine.\n", (["Fine.", "Not fine."],), [1, 0]),
        (
            "stsb",
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
            "0\tx\tx\t2012\t1\tx\tx\tA.\tB.\t3.800\n",
            (["A."], ["B."]),
            [4],
        ),
        ("qqp", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tA?\tB?\t0\n", (["A?"], ["B?"]), [0]),
    ],
)
def test_other_glue_tasks(
    name: str, content: str, texts: tuple[list[str], ...], labels: list[int], tmp_path: Path
) -> None:
    write(tmp_path / "train.tsv", content)
    write(tmp_path / "dev.tsv", content)
    rows = read_corpus(name, tmp_path).splits["train"]
    assert rows.texts == texts
    assert rows.labels is not None
    assert rows.labels.tolist() == labels


def test_scores_become_the_nearest_of_six_labels_and_a_note_says_so(tmp_path: Path) -> None:
    scores = ["0.000", "0.499", "2.500", "3.5", "4.999", "5.6", "nan", "high", ""]
    rows = "".join(f"{score}\tA.\tB.\n" for score in scores)
    for name in ("train", "dev", "test_labeled"):
        write(tmp_path / f"{name}.tsv", f"score\tsentence1\tsentence2\n{rows}")
    corpus = read_corpus("stsb", tmp_path)
    train = corpus.splits["train"]
    assert train.labels is not None
    assert train.labels.tolist() == [0, 0, 3, 4, 5]
    assert train.reading.rejected == {f"unknown label {label!r}": 1 for label in ("6", "nan", "high", "")}
    assert corpus.splits.keys() == {"train", "valid", "test"}
    assert corpus.notes[0] == "labels are scores, rounded to the nearest whole number"


def test_parts_are_read_one_after_another_and_the_subset_alone_stays_mnli(tmp_path: Path) -> None:
    mnli_parts(tmp_path / "mnli")
    both = read_corpus("mnli-98k", tmp_path).splits["train"]
    assert both.texts == (["A man runs.", "He sits."], ["A man moves.", "He reads."])
    assert [Path(name).name for name in both.reading.files] == ["train_subset.tsv.gz", "train_more.tsv.gz"]
    assert read_corpus("mnli", tmp_path).splits["train"].texts == (["A man runs."], ["A man moves."])
    (tmp_path / "mnli" / "train_more.tsv.gz").unlink()
    assert "train" not in read_corpus("mnli-98k", tmp_path).splits


@pytest.mark.parametrize("place", ["mrpc", "MRPC", "glue/mrpc", "glue/MRPC", "GLUE/MRPC", "."])
def test_a_data_set_is_found_below_the_folder_of_data(place: str, tmp_path: Path) -> None:
    label_first("mrpc", tmp_path / place)
    assert len(read_corpus("mrpc", tmp_path).splits["test"]) == 2
    if place != ".":
        assert data_folder(tmp_path, "mrpc").resolve() == (tmp_path / place).resolve()


def test_folders_by_their_own_name_come_first_and_hyphens_do_not_count(tmp_path: Path) -> None:
    assert data_folder(tmp_path, "sst2") == tmp_path / "sst2"
    assert data_folder(tmp_path / "absent", "mine") == tmp_path / "absent" / "mine"
    for name in ("glue/SST-2", "SST-2", "sst2", "mnli"):
        (tmp_path / name).mkdir(parents=True)
    assert data_folder(tmp_path, "sst2") == tmp_path / "sst2"
    (tmp_path / "sst2").rmdir()
    assert data_folder(tmp_path, "sst2") == tmp_path / "SST-2"
    assert data_folder(tmp_path, "mnli-98k") == tmp_path / "mnli"
    (tmp_path / "mnli-98k").mkdir()
    assert data_folder(tmp_path, "mnli-98k") == tmp_path / "mnli-98k"
