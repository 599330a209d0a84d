"""What tests of several commands need."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join(["<unk>", "<pad>", *(f"w{i}" for i in range(300)), "lacking"]) + "\n")
    return path
