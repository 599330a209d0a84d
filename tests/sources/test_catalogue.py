"""The catalogue of well-known files."""

import re

import pytest

from embinit.sources.catalogue import cache_folder, entries, fetched_path, find_entry, is_name
from tests.refusal import refused


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_every_entry_is_whole(entry):
    assert entry.url.startswith("https://")
    assert entry.about
    assert is_name(entry.name)
    assert (entry.sha256 is None) == (entry.published == "")
    if entry.sha256 is not None:
        assert re.fullmatch("[0-9a-f]{64}", entry.sha256)
    assert all(is_name(name) and member.endswith(".txt") for name, member in entry.members.items())


def test_names_are_unique():
    names = [name for entry in entries() for name in (entry.name, *entry.members)]
    assert len(set(names)) == len(names)


def test_find():
    entry, member = find_entry("glove:6B.300d")
    assert (entry.name, member, entry.file) == ("glove:6B", "glove.6B.300d.txt", "glove.6B.zip")
    entry, member = find_entry("fasttext:de")
    assert (entry.name, entry.url.rpartition("/")[2], member) == ("fasttext:de", "cc.de.300.vec.gz", None)
    entry, _ = find_entry("fasttext:de.bin")
    assert (entry.file, entry.unpack) == ("cc.de.300.bin", True)
    assert find_entry("fasttext:crawl")[0].file == "crawl-300d-2M.vec.zip"


@pytest.mark.parametrize(
    ("name", "close"), [("glove:6B.30d", "glove:6B.300d"), ("fasttext:wikinews", "fasttext:wiki-news")]
)
def test_an_unknown_name_gives_a_close_one(name, close):
    with refused(f"unknown name '{name}'; did you mean '{close}'?"):
        find_entry(name)


def test_where_files_lie(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("EMBINIT_CACHE", raising=False)
    assert cache_folder() == tmp_path / "embinit"
    monkeypatch.setenv("EMBINIT_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_a_name_of_several_tables_lists_them(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBINIT_CACHE", str(tmp_path))
    (tmp_path / "glove.6B.zip").write_bytes(b"")
    with refused("glove:6B.50d, glove:6B.100d"):
        fetched_path("glove:6B")
    assert fetched_path("glove:6B.50d") == (tmp_path / "glove.6B.zip", "glove.6B.50d.txt")
