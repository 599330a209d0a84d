"""The benchmark runs, and finds every peer's results equal, on small made files."""

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
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "results are equal" in done.stdout
