"""A training that was stopped goes on to the same bits; one of other settings is never taken for it."""

from __future__ import annotations

import io
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from embinit.errors import EmbinitError
from embinit.glove import TrainedVectors, optimizer, train
from embinit.glove.checkpoint import beside, clear
from tests.glove.commanded import command
from tests.glove.topical import topical_text

TEXT = topical_text(400)
SETTINGS = {"dim": 8, "epochs": 3, "threads": 1}


class Stopped(Exception):
    pass


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks an epoch, each followed by a checkpoint."""
    monkeypatch.setattr(optimizer, "_CHUNK", 700)
    monkeypatch.setattr(optimizer, "_SECONDS", 0.0)


def undisturbed() -> TrainedVectors:
    return train(TEXT, **SETTINGS)


def stopped_at(step: int, checkpoint: Path) -> None:
    """Train until the given chunk is done, and stop before its checkpoint is written."""
    seen = 0

    def count(what: str, done: int, total: int | None) -> None:
        nonlocal seen
        seen += what.startswith("epoch")
        if seen == step:
            raise Stopped

    with pytest.raises(Stopped):
        train(TEXT, **SETTINGS, checkpoint=checkpoint, progress=count)


@pytest.mark.usefixtures("small_chunks")
def test_a_training_stopped_anywhere_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = undisturbed()
    chunks = -(-whole.pairs // 700)
    assert chunks > 5
    resumed = []
    for step in range(1, 3 * chunks + 1):
        path = tmp_path / f"{step}"
        stopped_at(step, path)
        done = train(TEXT, **SETTINGS, checkpoint=path)
        assert done.vectors.tobytes() == whole.vectors.tobytes()
        assert done.losses == whole.losses
        resumed.append(done.resumed)
    assert resumed[0] == 0
    assert resumed == sorted(resumed)
    assert len(set(resumed)) > 2 * chunks


def test_a_killed_command_goes_on_to_the_same_file(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(topical_text(3000)), encoding="utf-8")
    words = [text, "--dim", 300, "--epochs", 60, "--threads", 1, "-o"]
    whole, cut = tmp_path / "whole.txt", tmp_path / "cut.txt"
    subprocess.run(command(*words, whole), check=True, capture_output=True)
    kills = 0
    for _ in range(3):
        running = subprocess.Popen(command(*words, cut), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = beside(cut).stat().st_mtime_ns if beside(cut).exists() else 0
        while running.poll() is None and not (beside(cut).exists() and beside(cut).stat().st_mtime_ns > before):
            time.sleep(0.002)
        time.sleep(random.random() / 50)
        running.send_signal(signal.SIGKILL)
        if running.wait() == 0:
            break
        kills += 1
        assert not cut.exists()
    assert kills
    done = subprocess.run(command(*words, cut), check=True, capture_output=True, text=True)
    assert "continued a stopped run" in done.stdout
    assert cut.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.txt", "text.txt", "whole.txt"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dim": 9}, r"dim 8 \(now 9\)"),
        ({"epochs": 5, "lr": 0.01}, r"epochs 3 \(now 5\), lr 0.05 \(now 0.01\)"),
        ({"seed": 1}, r"seed 0 \(now 1\)"),
        ({"threads": 2}, r"threads 1 \(now several\)"),
        ({"window": 3}, "other counts .another text, tokenizer, window or minimum count."),
        ({"min_count": 100}, "other counts"),
    ],
)
@pytest.mark.usefixtures("small_chunks")
def test_other_settings_do_not_go_on(tmp_path: Path, changed: dict[str, float], said: str) -> None:
    path = tmp_path / "checkpoint"
    stopped_at(4, path)
    before = path.read_bytes()
    with pytest.raises(EmbinitError, match=said):
        train(TEXT, **{**SETTINGS, **changed}, checkpoint=path)
    assert path.read_bytes() == before
    started = train(TEXT, **{**SETTINGS, **changed}, checkpoint=path, fresh=True)
    assert started.resumed == 0


@pytest.mark.usefixtures("small_chunks")
def test_another_text_does_not_go_on(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    stopped_at(4, path)
    with pytest.raises(EmbinitError, match="other counts"):
        train([*TEXT, "common1 common2"], **SETTINGS, checkpoint=path)


@pytest.mark.usefixtures("small_chunks")
def test_fresh_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    stopped_at(9, path)
    done = train(TEXT, **SETTINGS, checkpoint=path, fresh=True)
    assert done.resumed == 0
    np.testing.assert_array_equal(done.vectors, undisturbed().vectors)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("damage", ["cut", "empty", "a bit", "a fact", "a shape", "a type"])
def test_after_a_damaged_checkpoint_the_training_begins_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint"
    stopped_at(4, path)
    whole = path.read_bytes()
    with np.load(path) as stored:
        arrays = dict(stored)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    changed = {
        "a fact": {"head": np.array(str(arrays["head"]).replace('"done": ', '"done": "x", "other": '))},
        "a shape": {"words": arrays["words"][:-1]},
        "a type": {"words": arrays["words"].astype("U9")},
    }  # fmt: skip
    if damage in changed:
        with path.open("wb") as file:
            np.savez(file, **{**arrays, **changed[damage]})
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "a bit": bytes(flipped)}[damage])
    done = train(TEXT, **SETTINGS, checkpoint=path)
    assert (done.damaged, done.resumed) == (True, 0)
    assert done.vectors.tobytes() == undisturbed().vectors.tobytes()
    assert not undisturbed().damaged


@pytest.mark.parametrize("damage", ["other", "bytes", "array"])
def test_a_file_that_is_no_checkpoint_stays(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "checkpoint"
    array = io.BytesIO()
    np.save(array, np.zeros(3))
    path.write_bytes({"other": b"not a checkpoint", "bytes": bytes(range(256)) * 9, "array": array.getvalue()}[damage])
    before = path.read_bytes()
    with pytest.raises(EmbinitError, match=f"^{path} is no checkpoint of embinit; move it, or give --fresh"):
        train(TEXT, **SETTINGS, checkpoint=path)
    assert path.read_bytes() == before


def test_after_the_last_epoch_a_checkpoint_is_there_until_the_file_is_written(tmp_path: Path) -> None:
    out = tmp_path / "v[1].txt"
    first = train(TEXT, **SETTINGS, checkpoint=beside(out))
    again = train(TEXT, **SETTINGS, checkpoint=beside(out))
    assert again.resumed == 3 * first.pairs
    assert again.vectors.tobytes() == first.vectors.tobytes()
    (tmp_path / ".v[1].txt.abc.part").touch()
    (tmp_path / ".v[1].txt.checkpoint.abc.part").touch()
    (tmp_path / ".v1.txt.abc.part").touch()
    clear(out)
    assert [path.name for path in tmp_path.iterdir()] == [".v1.txt.abc.part"]
