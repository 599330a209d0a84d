"""The page on reliability: each test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "explanation" / "reliability.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/\S+\.py)::(test_\w+)`( \(long\))?", PAGE)


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| fault |")]
    assert len(rows) == len(NAMED) > 30


@pytest.mark.parametrize(("file", "name", "long"), NAMED, ids=lambda value: value.strip() or "usual")
def test_a_named_test_is_there(file: str, name: str, long: str) -> None:
    content = (ROOT / file).read_text("utf-8")
    found = re.search(rf"((?:^@.*\n(?:^[ )].*\n)*)*)^def {name}\(", content, re.MULTILINE)
    assert found, f"{file} has no {name}"
    assert ("pytest.mark.long" in found[1]) == bool(long)
