"""Running text: every line in its order, parts that begin at boundaries, and sentences for bad input."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embinit.corpora.examples import Reading, split_of
from embinit.corpora.generated import caption_text
from embinit.corpora.running_text import in_order, read_text
from embinit.corpora.tasks import read_corpus, read_hub
from embinit.errors import EmbinitError, Unavailable
from tests.corpora.layouts import lines, write

WIKI = ["", " = Title = ", "", " The cat <unk> sat . ", " It slept . ", ""]


@pytest.mark.parametrize("names", [("train", "valid", "test"), ("wiki.train", "wiki.valid", "wiki.test")])
@pytest.mark.parametrize("ending", [".tokens", ".tokens.gz"])
def test_wikitext_keeps_every_line(names: tuple[str, ...], ending: str, tmp_path: Path) -> None:
    for name in names:
        write(tmp_path / f"{name}{ending}", lines(WIKI))
    corpus = read_corpus("wikitext2", tmp_path)
    assert corpus.task == "language_model"
    assert {name: split.texts for name, split in corpus.splits.items()} == dict.fromkeys(
        ("train", "valid", "test"), (WIKI,)
    )


def test_wikitext_on_the_hub_has_a_line_in_each_row(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    asked = []

    def download(repository: str, name: str, revision: str | None) -> Path:
        asked.append((repository, name))
        path = tmp_path / name.replace("/", "-")
        parquet.write_table(arrow.table({"text": [f"{line}\n" if line else "" for line in WIKI]}), path)
        return path

    corpus = read_hub("wikitext2", download)
    assert [split.texts for split in corpus.splits.values()] == [(WIKI,)] * 3
    assert ("Salesforce/wikitext", "wikitext-2-v1/train-00000-of-00001.parquet") in asked


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["", "a b", "a much longer line of words", "x"]), max_size=80))
def test_a_text_without_splits_is_cut_in_order(rows: list[str]) -> None:
    try:
        parts = in_order(split_of([rows], None, Reading(["made"])), "made")
    except EmbinitError as error:
        assert "too short" in str(error)
        return
    assert [line for part in parts.values() for line in part.texts[0]] == rows
    sizes = [sum(len(line) + 1 for line in part.texts[0]) for part in parts.values()]
    longest = max(len(line) + 1 for line in rows)
    assert 0.9 * sum(sizes) <= sizes[0] <= 0.91 * sum(sizes) + 2 * longest
    assert sizes[0] + sizes[1] >= 0.95 * sum(sizes)


def test_a_part_begins_after_a_blank_line_if_one_is_near() -> None:
    rows = [*["a word or two"] * 1805, "", *["a word or two"] * 101, "", *["a word or two"] * 94]
    parts = in_order(split_of([rows], None, Reading(["made"])), "made")
    assert parts["train"].texts[0][-1] == ""
    assert len(parts["train"]) == 1806
    assert parts["valid"].texts[0][-1] == ""
    rows = ["a word or two"] * 2000
    assert [len(part) for part in in_order(split_of([rows], None, Reading(["made"])), "made").values()] == [
        1800,
        100,
        100,
    ]


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_users_text_is_a_file_or_a_folder(packed: str, tmp_path: Path) -> None:
    rows = [f"line {i}" for i in range(40)]
    file = write(tmp_path / f"corpus.txt{packed}", lines(rows))
    whole = read_text(file)
    assert [line for split in whole.splits.values() for line in split.texts[0]] == rows
    folder = tmp_path / "split"
    for name in ("train", "validation", "test"):
        write(folder / f"{name}.txt{packed}", lines([name]))
    assert {name: split.texts[0] for name, split in read_text(folder).splits.items()} == {
        "train": ["train"], "valid": ["validation"], "test": ["test"]
    }  # fmt: skip
    several = tmp_path / "several"
    for number in range(3):
        write(several / f"{number}.txt{packed}", lines(rows))
    assert [line for split in read_text(several).splits.values() for line in split.texts[0]] == rows * 3


def test_a_line_that_is_not_utf_8_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"one\n\xff\xfe\n" + b"two\n" * 40)
    train = read_text(path).splits["train"]
    assert train.reading.rejected == {"not UTF-8": 1}
    assert train.reading.examples == ["corpus.txt, line 2: not UTF-8"]


@pytest.mark.parametrize("text", ["", "\n\n", "one line\n", "one line\nand another\n"])
def test_a_text_without_enough_lines_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match=r"no text in corpus\.txt|too short"):
        read_text(write(tmp_path / "corpus.txt", text))


@pytest.mark.parametrize("files", [[], ["valid.txt"], ["notes.md"]])
def test_a_folder_without_training_text_is_an_error(files: list[str], tmp_path: Path) -> None:
    for name in files:
        write(tmp_path / name, "text\n")
    with pytest.raises(Unavailable, match=r"train\.txt"):
        read_text(tmp_path)


def test_tiny_shakespeare_is_split_in_order(tmp_path: Path) -> None:
    rows = [line for i in range(100) for line in (f"Speaker {i}:", "Some words.", "")]
    write(tmp_path / "input.txt", lines(rows))
    corpus = read_corpus("tinyshakespeare", tmp_path)
    assert [line for split in corpus.splits.values() for line in split.texts[0]] == rows
    assert all(split.texts[0][0].startswith("Speaker") for split in corpus.splits.values())


def test_caption_text_is_one_side_of_the_caption_pairs() -> None:
    text = caption_text(100, 3)
    assert text.task == "language_model"
    assert len(text.splits["train"]) == 100
    assert text.splits["train"].texts[0][:5] == caption_text(200, 3).splits["train"].texts[0][:5]
    assert not set(text.splits["train"].texts[0]) & set(text.splits["test"].texts[0])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff")), min_size=1))
def test_any_lines_are_read_as_they_are(tmp_path_factory: pytest.TempPathFactory, rows: list[str]) -> None:
    folder = tmp_path_factory.mktemp("text")
    (folder / "train.txt").write_bytes("".join(f"{row}\n" for row in rows).encode())
    if any(row.strip() for row in rows):
        assert read_text(folder).splits["train"].texts[0] == rows
