"""The script that downloads tables explains itself wherever Python runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "fetch_vectors.py"


@pytest.mark.parametrize(("arguments", "status"), [(["--help"], 0), (["-h"], 0), ([], 2)])
def test_help_needs_no_package(arguments: list[str], status: int) -> None:
    # -I -S leave out every installed package.
    command = [sys.executable, "-I", "-S", str(SCRIPT), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == status
    assert "glove-840b" in done.stdout
    assert not done.stderr
