"""Damaged prepared tasks: told apart from sound ones when they are opened, and made again from the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embinit.corpora.generated import captions
from embinit.prepared.folder import Prepared, checksum_of, fingerprint, is_intact, open_prepared
from embinit.prepared.prepare import Settings, prepare
from embinit.records import Damaged
from tests.refusal import refused


def made(out: Path) -> tuple[Prepared, bool]:
    settings = Settings("captions", ("whitespace", "whitespace"), True, 1, ("en", "de"))
    return prepare(captions(100, 0, "en-de"), settings, out)


def flipped(path: Path) -> None:
    """Change one bit in the middle of a file."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def test_one_changed_bit_in_any_file_is_seen_and_prepared_again(tmp_path: Path) -> None:
    prepared, new = made(tmp_path)
    assert new
    before = fingerprint(prepared.path)
    names = [file.name for file in prepared.path.iterdir()]
    assert len(names) > 10
    for name in names:
        assert is_intact(prepared.path)
        flipped(prepared.path / name)
        assert not is_intact(prepared.path), name
        again, new = made(tmp_path)
        assert (again.path, new) == (prepared.path, True), name
        assert fingerprint(again.path) == before
    assert made(tmp_path)[1] is False


def test_another_fingerprint_is_not_the_expected_one(tmp_path: Path) -> None:
    prepared, _ = made(tmp_path)
    assert is_intact(prepared.path, fingerprint(prepared.path))
    assert not is_intact(prepared.path, "0" * 64)
    assert not is_intact(tmp_path)


def test_a_manifest_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    prepared, _ = made(tmp_path)
    file = prepared.path / "manifest.json"
    content = json.loads(file.read_text("utf-8"))
    del content["checksum"], content["contents"]
    file.write_text(json.dumps(content), "utf-8")
    assert open_prepared(prepared.path).splits == prepared.splits
    assert is_intact(prepared.path)
    assert made(tmp_path)[1] is False


WRONG: list[Any] = [[], None, {"version": 1}, {"version": 1, "task": 3, "splits": [], "vocabularies": 7}]


@pytest.mark.parametrize("content", [*map(json.dumps, WRONG), "{", "[" * 9000, ""])
def test_a_manifest_that_is_none_is_one_sentence(content: str, tmp_path: Path) -> None:
    prepared, _ = made(tmp_path)
    (prepared.path / "manifest.json").write_text(content)
    with refused(prepared.path / "manifest.json", "damaged", error=Damaged):
        open_prepared(prepared.path)


@pytest.mark.parametrize("key", ["task", "labels", "vocabularies", "splits", "settings", "name", "notes"])
def test_a_manifest_without_one_of_its_parts_is_one_sentence(key: str, tmp_path: Path) -> None:
    prepared, _ = made(tmp_path)
    file = prepared.path / "manifest.json"
    content = json.loads(file.read_text("utf-8"))
    del content[key]
    content["checksum"] = checksum_of(content)
    file.write_text(json.dumps(content), "utf-8")
    with refused(file, key, error=Damaged):
        open_prepared(prepared.path)


@pytest.mark.parametrize("name", ["source.vocabulary.json", "valid.references.json", "train.source.ids.npy"])
@pytest.mark.parametrize("content", ["", "[1]", "{" * 9000])
def test_a_damaged_part_is_one_sentence(name: str, content: str, tmp_path: Path) -> None:
    prepared, _ = made(tmp_path)
    (prepared.path / name).write_text(content)
    opened = open_prepared(prepared.path)
    with refused(prepared.path / name, error=Damaged):
        if name.startswith("source"):
            assert opened.vocabularies
        elif name.startswith("valid"):
            opened.references("valid")
        else:
            opened.packed("train", "source")
