"""Damaged run folders and plans: named and left out, never a traceback."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from embinit.errors import EmbinitError
from embinit.experiments.definition.reader import read_draft
from embinit.experiments.execute import main
from embinit.experiments.execution.engine import execute
from embinit.experiments.inputs.outline import read_experiment
from embinit.experiments.inputs.resolve import resolve
from embinit.experiments.jobs import read_jobs
from embinit.experiments.plan import specs_of, write_plan
from embinit.experiments.runs.collect import collect
from embinit.experiments.runs.registry import stale
from embinit.experiments.runs.store import results_of
from embinit.experiments.status import state_of
from embinit.records import Damaged, read_json, typed
from embinit.reports.summarize import summarize
from embinit.reports.writers.html import page
from tests.experiments.made import Places, planned
from tests.refusal import refused

WRONG: list[Any] = [
    None, True, -1, 10**400, 1.5, "", "x", [], {}, [1], {"x": 1}, [[[]]], "\u0000", "\ud800", {"counts": [], "edges": []},
]  # fmt: skip
DEEP = "[" * 5_000 + "]" * 5_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("made")
    execute(planned(folder), folder / "runs", workers=1)
    return folder


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside of a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield from places_in(one, (*path, name))


def changed(value: Any, path: tuple[Any, ...], rng: random.Random) -> Any:
    """Return the value with one change at a path: removed, added to, or replaced by something else."""
    if not path:
        return rng.choice(WRONG)
    copy = json.loads(json.dumps(value))
    holder = copy
    for name in path[:-1]:
        holder = holder[name]
    kind = rng.random()
    if kind < 0.3:
        del holder[path[-1]]
    elif kind < 0.4 and isinstance(holder, dict):
        holder["unknown"] = rng.choice(WRONG)
    else:
        holder[path[-1]] = rng.choice(WRONG)
    return copy


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Return the bytes of a JSON file with one damage."""
    kind = rng.random()
    if kind < 0.1:
        return raw[: rng.randrange(len(raw))]
    if kind < 0.2:
        place = rng.randrange(len(raw))
        return raw[:place] + bytes([raw[place] ^ 1 << rng.randrange(8)]) + raw[place + 1 :]
    if kind < 0.22:
        return DEEP.encode()
    value = json.loads(raw)
    return json.dumps(changed(value, rng.choice(list(places_in(value))), rng)).encode()


def test_a_damaged_run_is_named_and_the_others_are_reported(made: Path, tmp_path: Path) -> None:
    experiment = read_experiment(made / "made.toml", Places())
    shutil.copytree(made / "runs", tmp_path / "runs")
    victim = sorted(path for path in (tmp_path / "runs").iterdir() if len(path.name) == 16)[0]
    rng = random.Random(1)
    files = sorted(victim.glob("*.json"))
    damaged = 0
    for _ in range(120):
        file = rng.choice(files)
        before = file.read_bytes()
        file.write_bytes(mutated(before, rng))
        results = results_of(experiment, tmp_path / "runs")
        damaged += len(results.damaged)
        assert len(results) >= 3
        assert (
            len(results) == 4
            or any(victim.name in text and "\n" not in text for text in results.damaged)
            or (file.name == "spec.json")
        )
        summary = summarize(experiment, results)
        if len(results) == 4:  # the damage is none that can be seen: what follows takes it
            page(summary)
        assert stale({made / "made.toml": experiment}, tmp_path / "runs") in ([], [victim])
        try:
            collect(tmp_path / "runs", tmp_path / "collected")
        except EmbinitError as error:
            assert "\n" not in str(error)
        file.write_bytes(before)
    assert damaged > 50


def test_a_damaged_list_of_jobs_is_one_sentence(made: Path, tmp_path: Path) -> None:
    raw, rng, refusals = (made / "work" / "jobs.json").read_bytes(), random.Random(2), 0
    path = tmp_path / "jobs.json"
    for _ in range(250):
        path.write_bytes(mutated(raw, rng))
        try:
            read_jobs(path)
        except EmbinitError as error:
            refusals += 1
            assert "\n" not in str(error)
            assert str(path) in str(error)
    assert refusals > 200


def test_control_characters_of_a_plan_reach_no_terminal(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads((made / "work" / "jobs.json").read_text("utf-8"))
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({**content, "sources": {"\x1b[2J": 5}}))
    assert main([str(path), "--out", str(tmp_path / "runs")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("embinit: ")
    assert "[2J" in printed
    assert "\x1b" not in printed


def test_damaged_notes_beside_the_runs_are_no_trouble(made: Path, tmp_path: Path) -> None:
    rng, key = random.Random(3), "0" * 16
    folder = tmp_path / ".checkpoints" / key
    folder.mkdir(parents=True)
    files = {
        tmp_path / f"{key}.failed.json": {"key": key, "reason": "ill", "when": "", "traceback": ""},
        folder / "group.json": {"keys": [key]},
        folder / "progress.json": {"epoch": 1, "epochs": 2},
        folder / "lock": {"pid": 1, "host": "elsewhere", "born": "1"},
    }
    for _ in range(200):
        for path, content in files.items():
            path.write_text(json.dumps(content))
        path = rng.choice(list(files))
        path.write_bytes(mutated(path.read_bytes(), rng))
        state = state_of(tmp_path)
        assert {type(text) for text in [*state.failed.values(), *state.stopped.values()]} <= {str}


def test_types_are_checked_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content, kind, words in (
        ('{"a": [1, true]}', dict[str, list[int]], ["a.1", "a whole number"]),
        ('{"a": NaN}', dict[str, float], ["NaN"]),
        (DEEP, dict[str, Any], ["deep"]),
        ('{"a": ' + DEEP[:200] + DEEP[-200:] + "}", dict[str, Any], ["a", "deep"]),
        ("[1, 2, 3]", tuple[int, int], ["a list of 2"]),
    ):
        path.write_text(content)
        with refused(path, *words, error=Damaged):
            read_json(path, kind)
    assert typed({"a": 1, "b": None}, dict[str, float | None]) == {"a": 1, "b": None}
    with refused("larger than 4", error=Damaged):
        read_json(path, list[int], largest=4)


def flipped(path: Path) -> None:
    """Change one bit near the end of a file, where its numbers are."""
    raw = bytearray(path.read_bytes())
    raw[-2] ^= 1
    path.write_bytes(raw)


@pytest.fixture
def sound(tmp_path: Path) -> tuple[Path, list[str], dict[str, bytes]]:
    """Return jobs.json of an experiment, its keys, and the bytes of everything that its runs read."""
    jobs = planned(tmp_path)
    return jobs, [job.key for job in read_jobs(jobs).jobs], read_by(jobs.parent)


def read_by(work: Path) -> dict[str, bytes]:
    """Return what the runs of a folder read. The header of safetensors files has no fixed order, so it is left out."""
    read = {str(file.relative_to(work)): file.read_bytes() for file in work.glob("prepared/*/*")}
    for file in work.glob("sources/*"):
        raw = file.read_bytes()
        read[file.name] = raw[8 + int.from_bytes(raw[:8], "little") :]
    return read


def again(folder: Path) -> list[str]:
    """Plan the experiment of a folder once more, and return its keys."""
    made = resolve([read_draft(folder / "made.toml")], Places(folder / "data", folder / "vectors", folder / "work"))
    path = write_plan(made, specs_of(made), folder / "work", folder / "work")
    return [job.key for job in read_jobs(path).jobs]


@pytest.mark.parametrize("newer", [False, True], ids=["same source", "newer source"])
@pytest.mark.parametrize("pattern", ["prepared/*/train.source.ids.npy", "prepared/*/manifest.json", "sources/*"])
def test_damaged_data_and_rows_are_made_again(
    pattern: str, newer: bool, sound: tuple[Path, list[str], dict[str, bytes]], tmp_path: Path
) -> None:
    _, keys, before = sound
    flipped(next((tmp_path / "work").glob(pattern)))
    assert read_by(tmp_path / "work") != before
    if newer:
        for file in (*tmp_path.glob("data/*/*"), *tmp_path.glob("vectors/*")):
            os.utime(file, (2e9, 2e9))
    assert again(tmp_path) == keys
    assert read_by(tmp_path / "work") == before


def test_a_damaged_copy_in_a_plans_folder_is_replaced(
    sound: tuple[Path, list[str], dict[str, bytes]], tmp_path: Path
) -> None:
    made = resolve(
        [read_draft(tmp_path / "made.toml")], Places(tmp_path / "data", tmp_path / "vectors", tmp_path / "work")
    )
    plan = tmp_path / "plan"
    for pattern in ("prepared/*/train.source.ids.npy", "sources/*", "none"):
        write_plan(made, specs_of(made), plan, tmp_path / "work")
        assert read_by(plan) == sound[2]
        for file in plan.glob(pattern):
            flipped(file)


@pytest.mark.parametrize("content", ["[]", "[" * 9000, '{"folder": 3, "data": [], "rows": {}, "dim": "x"}', "{"])
def test_a_damaged_index_is_made_again(
    content: str, sound: tuple[Path, list[str], dict[str, bytes]], tmp_path: Path
) -> None:
    index = list((tmp_path / "work" / "index").iterdir())
    assert index
    for file in index:
        file.write_text(content)
    assert again(tmp_path) == sound[1]
