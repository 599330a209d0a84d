"""Whatever bytes a file holds, its reader returns or raises EmbinitError; nothing else escapes.

Inputs are sound files with a few changes. An input that let something else escape is kept in `finds/` and tried for ever:
`EMBINIT_FUZZ_SECONDS=600 pytest tests/fuzz -m long` looks for more, and `EMBINIT_FUZZ_SEED` chooses other changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from embinit.errors import EmbinitError
from tests.fuzz.targets import TARGETS, Target

FINDS = Path(__file__).with_name("finds")
BY_NAME = {target.name: target for target in TARGETS}
KEY_FOLDER = "0123456789abcdef"
FEW, SECONDS = 60, float(os.environ.get("EMBINIT_FUZZ_SECONDS", "60"))
SEED = int(os.environ.get("EMBINIT_FUZZ_SEED", "0"))

#: Bytes that mean something to one of the readers.
PARTS = [
    b"\n", b"\r", b"\x0c", b"\0", b" ", b"\t", b",", b'"', b"'", b"{", b"}", b"[", b"]", b"=", b":", b".", b"-", b"/", b"\\",
    b"../", b"nan", b"inf", b"1e999", b"-1", b"0", b"9" * 25, b"null", b"true", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\\ud800", b"\\u0000", "\u2028\x85".encode(), b"[" * 3000, b"{a=" * 2000, b"\xff" * 8, b"\x7f" * 4, b"\x80", b"",
]  # fmt: skip
NUMBERS = (b"-1", b"0", b"1e999", b"9" * 30, b"nan", b"1.5", b'"x"')
WRONG: list[Any] = [
    None, True, -1, 0, 2**31, 2**63, 10**400, 1.5, 1e308, "", "x", "../x", "\0", "\ud800", [], [[]], {}, {"x": 1}, [None],
]  # fmt: skip


def changed(raw: bytes, rng: random.Random) -> bytes:
    """Return a file with some changes."""
    if rng.random() < 0.4:
        try:
            return json.dumps(changed_value(json.loads(raw), rng)).encode()
        except (ValueError, RecursionError):
            pass
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at = rng.randrange(len(data) + 1)
        end = at + rng.choice((1, 2, 8, 40))
        match rng.randrange(7):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                data[at:at] = rng.choice(PARTS)
            case 2:
                data[at:end] = rng.choice(PARTS)
            case 3:
                del data[at:end]
            case 4:
                data[at:at] = data[at:end] * rng.choice((1, 3, 200))
            case 5:
                data[at : at + 8] = rng.choice((0, 1, 255, 2**31, 2**40, 2**63, 2**64 - 1)).to_bytes(8, "little")
            case 6:
                numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(data)))
                if numbers:
                    place = rng.choice(numbers)
                    data[place.start() : place.end()] = rng.choice(
                        (b"-1", b"0", b"1e999", b"9" * 30, b"nan", b"1.5", b'"x"')
                    )
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data)


def changed_value(value: Any, rng: random.Random) -> Any:
    """Return a JSON value in which one value inside is another one, or is gone."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return rng.choice(WRONG)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [*value[:at], *([] if rng.random() < 0.2 else [changed_value(value[at], rng)]), *value[at + 1 :]]
    key = rng.choice(list(value))
    rest = {name: inner for name, inner in value.items() if name != key}
    how = rng.random()
    if how < 0.2:
        return rest
    if how < 0.25:
        return {**value, "unknown": rng.choice(WRONG)}
    return {**rest, key: changed_value(value[key], rng)}


def check(target: Target, content: bytes, folder: Path) -> None:
    """Read a file of these bytes; anything but an answer or an EmbinitError escapes."""
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        path = Path(inner, KEY_FOLDER, target.file)
        path.parent.mkdir()
        path.write_bytes(content)
        try:
            target.read(path)
        except EmbinitError as error:
            assert str(error)


def attempt(target: Target, rng: random.Random, folder: Path) -> None:
    """Try one changed file; keep it if something escapes."""
    content = changed(rng.choice(target.seeds), rng)
    try:
        check(target, content, folder)
    except BaseException:
        name = f"{target.name.replace(' ', '_')}.{hashlib.sha256(content).hexdigest()[:12]}"
        found = Path(os.environ.get("EMBINIT_FUZZ_FINDS", folder)) / name
        found.write_bytes(content)
        print(f"kept as {found}")
        raise


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_the_files_to_begin_from_are_sound(target: Target, tmp_path: Path) -> None:
    for seed in target.seeds:
        path = tmp_path / KEY_FOLDER / target.file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(seed)
        target.read(path)


@pytest.mark.parametrize("name", sorted(path.name for path in FINDS.iterdir()))
def test_what_was_found_once_stays_repaired(name: str, tmp_path: Path) -> None:
    target = BY_NAME[name.rpartition(".")[0].replace("_", " ")]
    check(target, (FINDS / name).read_bytes(), tmp_path)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_few_changed_files(target: Target, tmp_path: Path) -> None:
    rng = random.Random(f"{SEED} {target.name}")
    for _ in range(FEW):
        attempt(target, rng, tmp_path)


@pytest.mark.long
def test_many_changed_files(tmp_path: Path) -> None:
    """Run for EMBINIT_FUZZ_SECONDS: the time bounds the search and decides nothing else."""
    rng, end, tried = random.Random(f"many {SEED}"), time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        attempt(TARGETS[tried % len(TARGETS)], rng, tmp_path)
        tried += 1
    print(f"{tried:,} changed files")
    assert tried > len(TARGETS)
