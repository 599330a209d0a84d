"""Any TOML content is read, or refused with EmbinitError: values, keys and tables of a file are replaced at random."""

from __future__ import annotations

import copy
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embinit.errors import EmbinitError
from embinit.experiments.definition import reader
from tests.experiments.made import BLOCK, HEAD

FILE = f"""
title = "x"
notes = ["a"]
baseline = ["xavier", {{recipe = "pretrained", model.norm = "post"}}]
{HEAD}
[recipes.r]
steps = "xavier | scale ratio={{q}}"
[sources.g]
glove = {{texts = ["captions:de"], dim = 16}}
{BLOCK}
grid.model.norm = ["post", "pre"]
training.betas = [0.9, 0.98]
candidate = {{recipe = "xavier", model.norm = "post"}}
paper = ["table 1", "multi30k", "glove"]
[[block]]
name = "two"
recipe = "r"
sweep = "q"
grid.q = [1, 2]
chooses_for = "copying"
"""
VALUES: list[Any] = [
    3, -1, 2.5, True, "x", "", [], {}, [1], ["x"], {"a": 1}, {"a": {"b": [1]}}, [{}], [[1]], float("inf"), float("nan"),
    10**30, "xavier", "pretrained | ", "{q}", "\x00", "a.toml::b", ".toml", "::", {"recipe": "same"},
]  # fmt: skip
KEYS = ["x", "name", "model", "model.norm", "grid", "seed", "recipe", "fill", "task", "glove", "kind"]
Place = tuple[Any, ...]


def places(content: Any, start: Place = ()) -> Iterator[Place]:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield (*start, key)
        yield from places(value, (*start, key))


def changed(content: Any, rng: random.Random) -> Any:
    """Return content with up to four values removed, replaced or added."""
    content = copy.deepcopy(content)
    for _ in range(rng.randint(1, 4)):
        *path, key = rng.choice(list(places(content)))
        table = content
        for part in path:
            table = table[part]
        change = rng.random()
        if change < 0.2:
            del table[key]
        else:
            table[rng.choice(KEYS) if change < 0.4 and isinstance(table, dict) else key] = copy.deepcopy(
                rng.choice(VALUES)
            )
    return content


@pytest.mark.parametrize("seed", range(4))
def test_any_content_is_read_or_refused_with_a_message(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, content = random.Random(seed), tomllib.loads(FILE)
    refused = 0
    for _ in range(75):
        given = changed(content, rng)
        monkeypatch.setattr(reader, "read_toml", lambda path, given=given: given)
        try:
            assert reader.read_draft(Path("made.toml")).blocks
        except EmbinitError as error:
            assert "made.toml" in str(error)
            assert "another value" not in str(error)  # the text for a mistake that no message is written for
            refused += 1
    assert 0 < refused < 75


def test_the_unchanged_content_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "read_toml", lambda path: tomllib.loads(FILE))
    assert [block.name for block in reader.read_draft(Path("made.toml")).blocks] == ["copying", "two"]
