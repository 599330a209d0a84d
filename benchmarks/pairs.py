"""Two groups at once on one card, each in a process of its own, with and without NVIDIA's MPS."""

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
from benchmarks.cases import BARRIER, Case, Timed

_CONTROL = "nvidia-cuda-mps-control"
_ROOT = Path(__file__).parents[1]


def two_groups(case: Case, environment: Mapping[str, str] | None = None) -> Timed:
    """Return the time of whole trainings of two groups with half of the case's members each.

    It is given in seconds a step of all members: the rates of both groups added up.
    """
    clock.ready(case)  # frees what the cases before it held on the card
    half = replace(case, what="embinit, end to end", members=case.members // 2)
    command = [sys.executable, "-m", "benchmarks.row", half.written()]
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join([str(_ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        own = {**os.environ, "PYTHONPATH": paths, **(environment or {}), BARRIER: folder}
        both = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT, env=own)
            for _ in range(2)
        ]
        try:
            found = [_timed(process) for process in both]
        finally:
            for process in both:
                process.kill()
    seconds = 2 / sum(1 / one.seconds for one in found)
    memory = sum(one.memory for one in found)
    return Timed(seconds, memory, found[0].parameters, " and ".join(one.note for one in found))


def _timed(process: subprocess.Popen[str]) -> Timed:
    output, errors = process.communicate(timeout=400)
    if process.returncode:
        raise RuntimeError(errors.strip().splitlines()[-1] if errors.strip() else "no reason given")
    return Timed(**json.loads(output.splitlines()[-1]))


def two_groups_under_mps(case: Case) -> Timed:
    """Return the same under MPS, which lets kernels of both processes run at once."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        subprocess.run([_CONTROL, "-d"], check=True, env={**os.environ, **own}, timeout=60)
        try:
            return two_groups(case, own)
        finally:
            subprocess.run([_CONTROL], input="quit\n", text=True, check=False, env={**os.environ, **own}, timeout=60)
