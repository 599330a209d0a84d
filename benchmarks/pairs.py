"""Two groups at once on one card, each in its own process, with and without NVIDIA's MPS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks import clock
from benchmarks.cases import BARRIER, Case, Timing

_CONTROL = "nvidia-cuda-mps-control"
_ROOT = Path(__file__).parents[1]


def two_groups(case: Case, environment: Mapping[str, str] | None = None) -> Timing:
    """Return the time of the whole trainings of two groups, each with half of the case's members.

    The result is in seconds per step of all members, from the sum of both groups' rates.
    """
    clock.prepare_device(case)  # frees the card's memory of earlier cases
    half = replace(case, what="embinit, end to end", members=case.members // 2)
    command = [sys.executable, "-m", "benchmarks.row", half.to_json()]
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join([str(_ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        variables = {**os.environ, "PYTHONPATH": paths, **(environment or {}), BARRIER: folder}
        processes = [
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT, env=variables
            )
            for _ in range(2)
        ]
        try:
            timings = [_timing(process) for process in processes]
        finally:
            for process in processes:
                process.kill()
    seconds = 2 / sum(1 / timing.seconds for timing in timings)
    memory = sum(timing.memory for timing in timings)
    return Timing(seconds, memory, timings[0].parameters, " and ".join(timing.note for timing in timings))


def _timing(process: subprocess.Popen[str]) -> Timing:
    output, errors = process.communicate(timeout=400)
    if process.returncode:
        raise RuntimeError(errors.strip().splitlines()[-1] if errors.strip() else "no error message")
    return Timing(**json.loads(output.splitlines()[-1]))


def two_groups_under_mps(case: Case) -> Timing:
    """Return the time of `two_groups` under MPS, which runs kernels of both processes concurrently."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        subprocess.run([_CONTROL, "-d"], check=True, env={**os.environ, **variables}, timeout=60)
        try:
            return two_groups(case, variables)
        finally:
            subprocess.run(
                [_CONTROL], input="quit\n", text=True, check=False, env={**os.environ, **variables}, timeout=60
            )
