"""A write that fails leaves what was there, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import embinit.export.formats
import embinit.export.static
from embinit.errors import EmbinitError
from embinit.export.formats import FORMATS, write
from embinit.text.vocabulary import from_tokens
from embinit.types import Matrix

FILES = [name for name, form in FORMATS.items() if form.ending]
FOLDERS = [name for name, form in FORMATS.items() if not form.ending]
VOCABULARY = from_tokens(["<unk>", "cat", "dog"])
MATRIX: Matrix = np.arange(12, dtype=np.float32).reshape(3, 4)


def path_of(folder: Path, name: str) -> Path:
    return folder / f"vectors{FORMATS[name].ending}"


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


class Breaks:
    """Stands in for a part of the writing, and fails when it has been called so often."""

    def __init__(self, real: Any, after: int) -> None:
        self.real, self.left = real, after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.left == 0:
            raise OSError(28, "No space left on device")
        self.left -= 1
        return self.real(*args, **kwargs)


#: What each format calls while it writes: a module, a name, and at which call to fail.
MIDDLE: dict[str, tuple[Any, str, int]] = {
    "safetensors": (safetensors.numpy, "save", 0),
    "npy": (np, "save", 0),
    "glove": (embinit.export.formats, "_bytes", 2),
    "word2vec": (embinit.export.formats, "_bytes", 2),
    "word2vec-bin": (embinit.export.formats, "_bytes", 2),
    "model2vec": (embinit.export.static, "_save", 0),
    "sentence-transformers": (embinit.export.static, "_save", 0),
}


def test_every_format_is_broken_in_the_middle_below() -> None:
    assert sorted(MIDDLE) == sorted(FORMATS)


@pytest.mark.parametrize("name", FILES)
def test_an_old_file_outlives_a_failure_in_the_middle(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = path_of(tmp_path, name)
    write(MATRIX, VOCABULARY, path, format=name, card={"seed": 1})
    before = contents(tmp_path)
    module, part, after = MIDDLE[name]
    monkeypatch.setattr(module, part, Breaks(getattr(module, part), after))
    with pytest.raises(EmbinitError, match="No space left on device"):
        write(MATRIX + 1, VOCABULARY, path, format=name, card={"seed": 2})
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FORMATS)
def test_a_failure_in_the_middle_leaves_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, part, after = MIDDLE[name]
    monkeypatch.setattr(module, part, Breaks(getattr(module, part), after))
    with pytest.raises((EmbinitError, OSError), match="No space left on device"):
        write(MATRIX, VOCABULARY, path_of(tmp_path, name), format=name, card={})
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FILES)
def test_an_interrupt_leaves_nothing_behind(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(*MIDDLE[name][:2], interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(MATRIX, VOCABULARY, path_of(tmp_path, name), format=name)
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_the_place_of_the_file_is_an_error(name: str, tmp_path: Path) -> None:
    path = path_of(tmp_path, name)
    path.mkdir()
    with pytest.raises(EmbinitError, match="is a folder; give the name of a file"):
        write(MATRIX, VOCABULARY, path, format=name, card={})
    assert contents(tmp_path) == {path.name: None}


@pytest.mark.parametrize("name", FILES)
def test_where_the_card_cannot_be_written_nothing_is(name: str, tmp_path: Path) -> None:
    path = path_of(tmp_path, name)
    card = path.with_name(path.name + ".card.json")
    card.mkdir()
    with pytest.raises(EmbinitError, match="is a folder"):
        write(MATRIX, VOCABULARY, path, format=name, card={})
    assert contents(tmp_path) == {card.name: None}


@pytest.mark.parametrize("name", ["safetensors", "npy"])
def test_where_the_tokens_cannot_be_written_the_matrix_is_not(name: str, tmp_path: Path) -> None:
    path = path_of(tmp_path, name)
    path.write_bytes(b"old")
    path.with_name(path.name + ".tokens.json").mkdir()
    with pytest.raises(EmbinitError, match="is a folder"):
        write(MATRIX, VOCABULARY, path, format=name)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", FORMATS)
def test_a_parent_that_is_a_file_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("I am a file")
    with pytest.raises(EmbinitError, match=r"cannot write .*vectors"):
        write(MATRIX, VOCABULARY, path_of(tmp_path / "file", name), format=name)
    assert contents(tmp_path) == {"file": b"I am a file"}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_holds_something_is_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    before = contents(tmp_path)
    with pytest.raises(EmbinitError, match="exists already; give a new folder or remove it first"):
        write(MATRIX, VOCABULARY, tmp_path / "out", format=name, card={})
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FOLDERS)
def test_an_empty_folder_is_filled(name: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    written = write(MATRIX, VOCABULARY, tmp_path / "out", format=name)
    assert all(file.is_file() for file in written.files)


@pytest.mark.parametrize("name", FORMATS)
def test_parents_are_made(name: str, tmp_path: Path) -> None:
    written = write(MATRIX, VOCABULARY, path_of(tmp_path / "a" / "b", name), format=name, card={})
    assert all(file.is_file() for file in written.files)


def test_numpys_message_on_a_full_disk_is_said_in_plain_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("100000 requested and 51168 written")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(EmbinitError, match=r"cannot write .*: there is not enough room on the disk$"):
        write(MATRIX, VOCABULARY, path_of(tmp_path, "npy"))
    assert contents(tmp_path) == {}
