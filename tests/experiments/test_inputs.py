"""From a file to runs: data is prepared and sources are read once, and every spec has its fingerprints."""

from __future__ import annotations

import os
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
from tests.experiments.made import BLOCK, HEAD, places, resolved, written


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
    assert "--data or EMBINIT_DATA" in nowhere[0].missing


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
    assert str(raised.value).startswith("3 things are wrong:")
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
    with pytest.raises(EmbinitError, match="is not what was planned"):
        read_rows(path, stored.vocabulary, "0" * 64)
