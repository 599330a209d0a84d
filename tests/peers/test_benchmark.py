"""The benchmark of vectors runs on small files, and all peers return equal results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


def test_the_quick_benchmark_runs_and_results_are_equal() -> None:
    for peer in ("pandas", "gensim", "transformers"):
        pytest.importorskip(peer)
    command = [sys.executable, "-m", "benchmarks.vectors", "--quick"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "results are equal" in process.stdout
