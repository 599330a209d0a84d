"""One measurement: a task in a fresh interpreter, with its seconds and its peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Measured:
    """What a task took; memory is the peak over an interpreter with numpy, in MB of a million bytes."""

    tool: str
    seconds: float
    #: with the time that its imports take
    seconds_with_imports: float
    memory: float
    runs: int
    #: what the task returned, of the last run
    answer: Any
    vectors: np.ndarray | None


def measure(tool: str, task: str, runs: int = 1, **arguments: Any) -> Measured:
    """Run a task of `benchmarks.tasks` so often, each time in a fresh process; the best time and memory count."""
    best: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            command = [sys.executable, "-m", "benchmarks.tasks", task, json.dumps(arguments), folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{tool}, {task}: failed\n{done.stderr[-3000:]}")
            best.append(json.loads(Path(folder, "measured.json").read_text()))
        array = Path(folder, "vectors.npy")
        vectors = np.load(array) if array.exists() else None
    return Measured(
        tool,
        min(run["seconds"] for run in best),
        min(run["seconds_with_imports"] for run in best),
        min(run["memory"] for run in best),
        runs,
        best[-1]["answer"],
        vectors,
    )
