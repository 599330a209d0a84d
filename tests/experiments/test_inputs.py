"""From a file to runs: data is prepared and sources are read once, and every spec has its fingerprints."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embinit.alignment import Matching, align
from embinit.errors import EmbinitError
from embinit.experiments.inputs import tasks, vectors
from embinit.experiments.inputs.locations import Places
from embinit.experiments.inputs.resolve import Resolved
from embinit.experiments.inputs.row_files import read_rows, write_rows
from embinit.experiments.spec import from_json
from embinit.types import Aligned, Vocabulary
from tests.experiments.made import BLOCK, HEAD, WORDS, places, resolved, written


def keys(made: Resolved) -> list[str]:
    return [run.spec.key for one in made.experiments for block in one.blocks for run in block.runs]


def test_fingerprints_are_filled_in_and_specs_go_through_json(tmp_path: Path) -> None:
    made = resolved(written(tmp_path), places(tmp_path))
    (block,) = made.experiments[0].blocks
    assert not block.missing
    assert all(run.spec.resolved for run in block.runs)
    random, trained = block.runs[0].spec, block.runs[2].spec
    assert [side.rows for _, side in random.sides] == ["", ""]
    assert all(len(side.rows) == 64 for _, side in trained.sides)
    assert dict(trained.model)["dim"] == 16
    for run in block.runs:
        assert from_json(run.spec.as_json()) == run.spec
        assert from_json(run.spec.as_json()).key == run.spec.key


def test_a_second_look_reads_neither_data_nor_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = places(tmp_path)
    first = keys(resolved(written(tmp_path), where))

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(tasks, "read_files", forbidden)
    monkeypatch.setattr(vectors, "align", forbidden)
    assert keys(resolved(written(tmp_path), where)) == first


def test_other_data_and_other_vectors_are_other_runs_and_random_ones_stay(tmp_path: Path) -> None:
    where = places(tmp_path)
    before = keys(resolved(written(tmp_path), where))
    assert where.vectors is not None
    assert where.data is not None
    source = where.vectors / "small.txt"
    source.write_text(source.read_text().replace("w5 ", "w5 1"))
    os.utime(source, ns=(1, 1))
    after = keys(resolved(written(tmp_path), where))
    assert after[:2] == before[:2]
    assert not set(after[2:]) & set(before[2:])
    train = where.data / "copying" / "train.source.txt"
    train.write_text(train.read_text().replace("w1", "w2", 1))
    assert not set(keys(resolved(written(tmp_path), where))) & set(after)


def test_a_source_may_say_that_nothing_is_composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def watched(path: str, vocabulary: Vocabulary, matching: Matching) -> Aligned:
        asked.append(matching.compose)
        return align(path, vocabulary, matching=matching)

    monkeypatch.setattr(vectors, "align", watched)
    where = places(tmp_path)
    head = HEAD.replace('path = "small.txt"', 'path = "small.txt"\ncompose = false')
    assert head != HEAD
    first = keys(resolved(written(tmp_path, head=head), where))
    assert set(asked) == {False}
    assert keys(resolved(written(tmp_path), where)) == first  # of words nothing is composed anyway
    assert set(asked) == {False, True}


def test_continuation_pieces_are_composed_only_if_a_source_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def watched(path: str, vocabulary: Vocabulary, matching: Matching) -> Aligned:
        asked.append(matching.continuations)
        return align(path, vocabulary, matching=matching)

    monkeypatch.setattr(vectors, "align", watched)
    where = places(tmp_path)
    first = keys(resolved(written(tmp_path), where))
    assert set(asked) == {False}
    head = HEAD.replace('path = "small.txt"', 'path = "small.txt"\ncontinuations = true')
    assert keys(resolved(written(tmp_path, head=head), where)) == first  # this source has no pieces
    assert set(asked) == {False, True}


def test_keys_do_not_depend_on_where_things_lie(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    assert keys(resolved(written(here), places(here))) == keys(resolved(written(there), places(there)))


def test_a_block_without_its_files_says_what_it_needs_and_the_others_go_on(tmp_path: Path) -> None:
    head = HEAD.replace('path = "other.txt"', 'path = "far.txt"\nofficial = "far.txt of Far"\ndim = 16')
    blocks = BLOCK + '[[block]]\nname = "far"\nsource = "other"\n[[block]]\nname = "data"\ntask = "multi30k"\n'
    made = resolved(written(tmp_path, blocks, head), places(tmp_path)).experiments[0].blocks
    assert [block.missing for block in made] == [
        "",
        "needs far.txt of Far",
        "needs the data set multi30k in multi30k/ below the folder of data",
    ]
    assert all(run.spec.resolved for run in made[0].runs)
    nowhere = resolved(written(tmp_path, blocks, head), Places(work=tmp_path / "work")).experiments[0].blocks
    assert "--data or EMBINIT_DATA" in nowhere[0].searched


def test_a_task_may_need_a_file(tmp_path: Path) -> None:
    head = HEAD.replace('path = "copying"', 'path = "copying"\nneeds = "{}"\nofficial = "all of it"')
    where = places(tmp_path)
    for needs, missing in (("train.source.txt", ""), ("train.*", ""), ("whole.txt", "needs all of it: whole.txt in")):
        (block,) = resolved(written(tmp_path, head=head.replace("{}", needs)), where).experiments[0].blocks
        assert block.missing.startswith(missing)
        assert bool(block.missing) == bool(missing)


SHOWS_LATER = {
    'source = "other"\nmodel.heads = 5': "5 heads do not divide 12 dimensions",
    'encoder.source = "other"': "the dimensions differ: other 12, small 16",
    "model.length = 5": "has a sentence of 5 tokens, and model.length is 5; set it to 7",
}


def test_what_only_shows_with_the_vectors_is_said_at_once_too(tmp_path: Path) -> None:
    blocks = "".join(f'[[block]]\nname = "b{i}"\n{lines}\n' for i, lines in enumerate(SHOWS_LATER))
    with pytest.raises(EmbinitError) as raised:
        resolved(written(tmp_path, blocks), places(tmp_path))
    assert str(raised.value).startswith("3 mistakes:")
    for said in SHOWS_LATER.values():
        assert said in str(raised.value)


def test_a_dimension_that_is_not_the_sources_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmbinitError, match=r"sources\.small\.dim: 8, but the vectors have 16"):
        resolved(written(tmp_path, head=HEAD.replace("dim = 16", "dim = 8")), places(tmp_path))


def test_rows_and_longest_reach_the_prepared_task(tmp_path: Path) -> None:
    head = HEAD.replace("min_count = 1", "min_count = 1\nrows = 20\nlongest = 3", 1)
    made = resolved(written(tmp_path, head=head), places(tmp_path))
    (ready,) = made.tasks.values()
    train = ready.prepared.manifest["splits"]["train"]
    assert train["rows"] == 20
    assert train["sides"]["source"]["longest"] == 3
    assert train["sides"]["source"]["cut"] > 0
    assert made.experiments[0].blocks[0].runs[0].spec.task.rows == 20


def test_vectors_are_trained_once_on_captions(tmp_path: Path) -> None:
    head = """
[sources.own]
glove = { texts = ["captions:en"], dim = 8, x_max = 10, sentences = 300, min_count = 2 }
[tasks.captions-labelled]
size = 200
tokenizer = "whitespace"
[defaults]
task = "captions-labelled"
source = "own"
model.heads = 2
"""
    where = Places(work=tmp_path / "work")
    made = resolved(written(tmp_path, head=head), where)
    (block,) = made.experiments[0].blocks
    assert not block.missing
    assert dict(block.runs[0].spec.model)["dim"] == 8
    (trained,) = (tmp_path / "work" / "glove").glob("*.txt")
    time, sound = trained.stat().st_mtime_ns, trained.read_bytes()
    assert keys(resolved(written(tmp_path, head=head), where)) == keys(made)
    assert trained.stat().st_mtime_ns == time
    trained.write_bytes(sound[:-3] + b"9\n")
    assert keys(resolved(written(tmp_path, head=head), where)) == keys(made)
    assert trained.read_bytes() == sound


def test_one_tokenizer_a_side(tmp_path: Path) -> None:
    head = HEAD.replace('tokenizer = "whitespace"', 'tokenizer = "spacy:xx, whitespace"', 1)
    made = resolved(written(tmp_path, head=head), places(tmp_path))
    (ready,) = made.tasks.values()
    assert ready.prepared.manifest["settings"]["tokenizers"] == ["spacy:xx", "whitespace"]


@pytest.mark.parametrize("kind", ["any", "half", "few"])
def test_rows_are_stored_small_and_come_back_bit_for_bit(kind: str, tmp_path: Path, aligned: Aligned) -> None:
    vectors = {
        "any": aligned.vectors,
        "half": aligned.vectors.astype(np.float16).astype(np.float32),
        "few": (np.round(aligned.vectors * 50).clip(-100, 100) * np.float32(0.0123)).astype(np.float32),
    }[kind]
    stored = replace(aligned, vectors=vectors)
    found = write_rows(stored, tmp_path)
    (path,) = (tmp_path / "sources").iterdir()
    assert path.name == f"{found[:16]}.safetensors"
    again = read_rows(path, stored.vocabulary, found)
    assert np.array_equal(again.rows, stored.rows)
    assert again.kinds == stored.kinds
    size = stored.rows.size
    assert path.stat().st_size - {"any": 4, "half": 2, "few": 1}[kind] * size < 3000
    with pytest.raises(EmbinitError, match="differs from the plan"):
        read_rows(path, stored.vocabulary, "0" * 64)


def test_the_path_of_a_users_data_is_in_no_key_and_in_no_name(tmp_path: Path) -> None:
    where = places(tmp_path)
    first = resolved(written(tmp_path), where)
    assert where.data is not None
    (where.data / "copying").rename(tmp_path / "elsewhere")
    for path in ("elsewhere", str(tmp_path / "elsewhere")):
        moved = resolved(written(tmp_path, head=HEAD.replace('path = "copying"', f'path = "{path}"')), where)
        assert keys(moved) == keys(first)
    assert {run.spec.task.name for run in first.experiments[0].blocks[0].runs} == {"copying"}
    head = HEAD.replace('path = "small.txt"\nabout = "made vectors"', f'path = "{where.vectors}/small.txt"')
    assert resolved(written(tmp_path, head=head), where).experiments[0].blocks[0].sources == (("small", "small.txt"),)


def test_a_path_is_looked_up_beside_the_file_first(tmp_path: Path) -> None:
    where = places(tmp_path)
    below = keys(resolved(written(tmp_path), where))
    assert where.vectors is not None
    beside = tmp_path / "small.txt"
    beside.write_text((where.vectors / "small.txt").read_text().replace("w5 ", "w5 1"))
    assert keys(resolved(written(tmp_path), where))[2:] != below[2:]
    beside.unlink()
    assert keys(resolved(written(tmp_path), where)) == below
    shutil.copytree(tmp_path / "data" / "copying", tmp_path / "copying")
    assert keys(resolved(written(tmp_path), Places(None, where.vectors, tmp_path / "work"))) == below
    source = tmp_path / "copying" / "train.source.txt"
    source.write_text(source.read_text().replace("w5", "w6"))
    assert not set(keys(resolved(written(tmp_path), where))) & set(below)


def test_two_text_files_or_one_table_are_a_task(tmp_path: Path) -> None:
    where = places(tmp_path, rows=400)
    for side in ("source", "target"):
        text = (tmp_path / "data" / "copying" / f"train.{side}.txt").read_text()
        (tmp_path / ("train.de" if side == "source" else "train.en")).write_text(text)
    shutil.copy(tmp_path / "data" / "sorting" / "train.tsv", tmp_path / "reviews.tsv")
    head = HEAD.replace('path = "copying"', 'path = "train.de, train.en"')
    head = head.replace('path = "sorting"', 'path = "reviews.tsv"')
    blocks = BLOCK + BLOCK.replace('"copying"', '"sorting"').replace("grid.recipe", 'task = "sorting"\ngrid.recipe')
    made = resolved(written(tmp_path, blocks, head), Places(None, where.vectors, tmp_path / "work"))
    for ready in made.tasks.values():
        rows = {name: split["rows"] for name, split in ready.prepared.manifest["splits"].items()}
        assert rows["valid"] == rows["test"] == 40
        assert sum(rows.values()) == 400
        assert any("40 for validation and 40 for the test" in note for note in ready.prepared.manifest["notes"])


WRONG_PATHS = {
    'path = "train.de, train.enn"': ("needs train.enn", "train.en"),
    'path = "copyin"': ("needs copyin", "copying"),
    'path = "nowhere/copying"': ("needs nowhere/copying", ""),
}


@pytest.mark.parametrize("line", WRONG_PATHS)
def test_a_wrong_path_names_every_place_and_the_nearest_name(line: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    for name in ("train.de", "train.en"):
        (tmp_path / name).write_text("a\n")
    made = resolved(written(tmp_path, head=HEAD.replace('path = "copying"', line)), where)
    needed, nearest = WRONG_PATHS[line]
    block = made.experiments[0].blocks[0]
    assert block.missing.startswith(needed)
    assert str(tmp_path) not in block.missing
    name = needed.removeprefix("needs ")
    assert str(tmp_path / name) in block.searched
    assert str(tmp_path / "data" / name) in block.searched
    assert f"{nearest}?" in block.searched if nearest else "did you mean" not in block.searched
    assert not Path("copyin").exists()


def test_a_misspelt_tokenizer_is_named_with_its_nearest_name(tmp_path: Path) -> None:
    where = places(tmp_path)
    head = HEAD.replace('tokenizer = "whitespace"', 'tokenizer = "whitespaces"', 1)
    block = resolved(written(tmp_path, head=head), where).experiments[0].blocks[0]
    assert (block.missing, block.searched) == ("needs the tokenizer whitespaces", "did you mean 'whitespace'?")


def test_glove_learns_from_the_users_own_files(tmp_path: Path) -> None:
    where = places(tmp_path)
    shutil.copy(tmp_path / "data" / "copying" / "train.source.txt", tmp_path / "own.txt")
    glove = 'glove = { texts = ["own.txt", "data/sorting/train.tsv"], dim = 16, min_count = 1, epochs = 1, x_max = 10 }'
    head = HEAD.replace('path = "small.txt"\nabout = "made vectors"', glove)
    made = resolved(written(tmp_path, head=head), where)
    assert not made.experiments[0].blocks[0].missing
    (file,) = (tmp_path / "work" / "glove").glob("*.txt")
    assert {line.split()[0] for line in file.read_text().splitlines()} >= set(WORDS)
    before = keys(made)
    (tmp_path / "own.txt").write_text("w1 w2 w3\n" * 50)
    assert keys(resolved(written(tmp_path, head=head), where))[2:] != before[2:]
    (tmp_path / "own.txt").unlink()
    block = resolved(written(tmp_path, head=head), where).experiments[0].blocks[0]
    assert block.missing.startswith("needs own.txt")
    assert str(tmp_path / "own.txt") in block.searched
    assert str(tmp_path) not in block.missing


def test_the_name_of_a_source_does_not_choose_where_its_vectors_are_written(tmp_path: Path) -> None:
    where = places(tmp_path / "inner")
    (tmp_path / "inner" / "own.txt").write_text("w1 w2 w3\n" * 20)
    name = "../../../outside"
    head = HEAD.replace(
        'path = "small.txt"\nabout = "made vectors"', 'glove = { texts = ["own.txt"], dim = 16, min_count = 1 }'
    )
    head = head.replace("[sources.small]", f'[sources."{name}"]').replace('source = "small"', f'source = "{name}"')
    made = resolved(written(tmp_path / "inner", BLOCK, head), where)
    assert name in " ".join(block.missing + block.explained for block in made.experiments[0].blocks)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner"]
    assert not list((tmp_path / "inner").glob("outside*"))
