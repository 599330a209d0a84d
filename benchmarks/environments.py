"""Virtual environments for peers whose dependencies conflict with ours. Each is created once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

TORCH = ["torch==2.13.0"]
#: JoeyNMT's helpers.py imports importlib_metadata, which 2.3.0 does not declare.
JOEYNMT = (TORCH, ["joeynmt==2.3.0", "protobuf<3.21", "importlib_metadata"])
#: transformers' Trainer needs accelerate.
MARIAN = (TORCH, ["transformers[torch]==5.22.2"])


class Missing(Exception):
    """An environment cannot be created; the message gives the reason."""


def environment(name: str, *installs: list[str]) -> Path:
    """Return the Python of `.venv-NAME` after these calls of `pip install`, one list of arguments each."""
    folder = ROOT / f".venv-{name}"
    ready = folder / ".ready"
    wanted = json.dumps(installs)
    if not ready.is_file() or ready.read_text() != wanted:
        run([sys.executable, "-m", "venv", "--clear", str(folder)], f"no environment for {name}")
        for packages in installs:
            run([str(folder / "bin/python"), "-m", "pip", "install", "-q", *packages], f"{name} cannot be installed")
        ready.write_text(wanted)
    return folder / "bin/python"


def run(command: list[str], failure: str) -> None:
    """Run a command; if it fails, raise `Missing` with the last line of its error output."""
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise Missing(f"{failure}: {lines[-1] if lines else 'no error message'}")
