"""Measure the time and the peak memory of a task in a fresh interpreter."""

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
class Measurement:
    """The cost of a task. Memory is the peak above an interpreter with numpy, in MB (a million bytes each)."""

    tool: str
    seconds: float
    #: including imports
    seconds_with_imports: float
    memory: float
    runs: int
    #: result of the last run
    answer: Any
    vectors: np.ndarray | None


def measure(tool: str, task: str, runs: int = 1, **arguments: Any) -> Measurement:
    """Run a task of `benchmarks.tasks` in fresh processes, and return the least time and memory of all runs."""
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            command = [sys.executable, "-m", "benchmarks.tasks", task, json.dumps(arguments), folder]
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            if process.returncode:
                raise SystemExit(f"{tool}: task {task} failed\n{process.stderr[-3000:]}")
            records.append(json.loads(Path(folder, "measured.json").read_text()))
        array = Path(folder, "vectors.npy")
        vectors = np.load(array) if array.exists() else None
    return Measurement(
        tool,
        min(record["seconds"] for record in records),
        min(record["seconds_with_imports"] for record in records),
        min(record["memory"] for record in records),
        runs,
        records[-1]["answer"],
        vectors,
    )
