"""The small rooms: named randomness, position tables, whole-or-absent files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embinit import types
from embinit.files import read_toml, read_whole, replacing, replacing_folder
from embinit.positions import SINUSOIDAL_RMS, sinusoidal
from embinit.seeds import stream
from tests.refusal import refused


def test_a_stream_depends_on_seed_and_purpose_alone() -> None:
    first = stream(7, "rows").random(5)
    np.random.seed(0)  # noqa: NPY002 (the global generator is disturbed on purpose)
    stream(7, "columns").random(99)
    assert (stream(7, "rows").random(5) == first).all()
    assert not (stream(8, "rows").random(5) == first).any()
    assert not (stream(7, "columns").random(5) == first).any()


def test_streams_give_the_same_numbers_in_every_version() -> None:
    assert stream(0, "matrix").integers(0, 1000, 4).tolist() == [818, 946, 231, 414]


def test_sinusoids_are_those_of_the_transformer_paper() -> None:
    table = sinusoidal(50, 8)
    assert table[0].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    for position, pair in ((3, 0), (17, 1), (49, 3)):
        angle = position / 10_000 ** (2 * pair / 8)
        assert table[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-6)
        assert table[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-6)
    assert np.sqrt((table.astype(float) ** 2).mean(axis=1)) == pytest.approx(SINUSOIDAL_RMS)


def test_position_mean_is_what_table_6_prints() -> None:
    table = sinusoidal(5000, 300).astype(np.float64)
    assert table.mean() == pytest.approx(0.1314, abs=5e-5)
    assert table.std() == pytest.approx(0.695, abs=5e-4)  # the paper prints 0.67 (PAPER.md 2)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), replacing(path) as out:
        out.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    with replacing(path) as out:
        out.write(b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("write", "call", "make"), [(replacing, "open", Path.touch), (replacing_folder, "mkdir", os.makedirs)]
)
def test_ctrl_c_right_after_a_part_is_made_leaves_nothing(
    write: Callable[[Path], AbstractContextManager[Any]],
    call: str,
    make: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def interrupted(path: Path, *_: object, **__: object) -> None:
        make(path)
        made.extend(tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, call, interrupted)
    with pytest.raises(KeyboardInterrupt), write(tmp_path / "new"):
        pass
    assert [path.suffix for path in made] == [".part"]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with refused("No space left"), replacing(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    with refused("/dev/null"), replacing(Path("/dev/null/file")) as out:
        out.write(b"")


def test_a_folder_is_whole_or_absent_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    with pytest.raises(RuntimeError), replacing_folder(path) as folder:
        (folder / "a").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with replacing_folder(path) as folder:
        (folder / "a").write_text("whole")
    assert (path / "a").read_text() == "whole"
    with refused(path, "exists already"), replacing_folder(path):
        pass


def test_a_link_stays_and_the_file_that_it_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link, target = tmp_path / "link", tmp_path / "far" / "file"
    link.symlink_to("far/file")
    for content in (b"new", b"newer"):  # the link leads nowhere at first
        with replacing(link) as out:
            out.write(content)
        assert link.is_symlink()
        assert not target.is_symlink()
        assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_a_link_to_a_folder_stays_and_the_folder_is_filled(tmp_path: Path) -> None:
    for name in ("there", "not yet there"):
        link, target = tmp_path / f"link to what is {name}", tmp_path / name
        link.symlink_to(target)
        if name == "there":
            target.mkdir()
        with replacing_folder(link) as folder:
            (folder / "a").write_text("whole")
        assert link.is_symlink()
        assert (target / "a").read_text() == "whole"


def test_what_is_no_regular_file_is_never_replaced(tmp_path: Path) -> None:
    pipe, link, circle = tmp_path / "pipe", tmp_path / "link", tmp_path / "circle"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    circle.symlink_to(circle)
    for path in (pipe, link, circle):
        with (
            refused(f"cannot write {path}: it is not a regular file"),
            replacing(path) as out,
        ):
            out.write(b"new")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert circle.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(b"old")
    for path in (taken / "file", taken / "deep" / "file"):
        for write in (replacing, replacing_folder):
            with refused(f"cannot write {path}: {taken} is a file, not a folder"), write(path):
                pass
    assert taken.read_bytes() == b"old"


ENDLESS: dict[str, str] = {
    "lists": "a = " + "[" * 5000 + "]" * 5000,
    "tables": "a = " + "{a = " * 5000 + "1" + "}" * 5000,
    "a key": "[" + ".".join("a" * 100_000) + "]\nx = 1",
    "a key of texts": ".".join(['"a"'] * 100_000) + " = 1",
}


@pytest.mark.parametrize("content", ENDLESS.values(), ids=ENDLESS)
def test_toml_that_is_nested_without_end_is_one_sentence(content: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(content)
    with refused(path, "nested too deeply"):
        read_toml(path)


def test_long_texts_and_names_in_toml_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text(f'text = "{"A sentence. " * 5000}"\n{"x" * 5000} = 1\na.b.c = 2\n')
    content = read_toml(path)
    assert content["a"] == {"b": {"c": 2}}
    assert len(content["text"]) == 60_000


def test_a_file_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    with refused("/dev/zero", "larger than 1 MB"):
        read_whole(Path("/dev/zero"), 1 << 20)
    for path in (tmp_path / "absent", tmp_path, Path("a\0b")):
        with refused("cannot read", repr(str(path))[1:-1]):
            read_whole(path, 1 << 20)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (700, 50), (513, 300), (20_000, 7)])
@pytest.mark.parametrize("summed", [128, 1000, 1 << 20])
def test_the_standard_deviation_is_numpys_to_the_last_bit(
    shape: tuple[int, int], summed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(types, "_SUMMED", summed)
    matrix = stream(0, "any").normal(0.1, 3, shape).astype(np.float32)
    assert types.standard_deviation(matrix) == float(matrix.std(dtype=np.float64))
    assert types.standard_deviation(matrix[:, ::2]) == float(np.ravel(matrix[:, ::2]).std(dtype=np.float64))
