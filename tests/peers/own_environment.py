"""Peers whose dependencies do not go with ours: each in a virtual environment of its own, made once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]


def environment(name: str, *installs: list[str]) -> Path:
    """Return the Python of `.venv-NAME` with these pip installs done in turn; skip, with pip's reason, where one fails."""
    folder = _ROOT / f".venv-{name}"
    ready = folder / ".ready"
    wanted = json.dumps(installs)
    if not ready.is_file() or ready.read_text() != wanted:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], f"no environment for {name}")
        for packages in installs:
            _run([str(folder / "bin/python"), "-m", "pip", "install", "-q", *packages], f"{name} cannot be installed")
        ready.write_text(wanted)
    return folder / "bin/python"


def sources(requirement: str, folder: Path) -> Path:
    """Return the source archive of a package, downloaded and not installed; skip where that fails."""
    options = ["-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", str(folder)]
    _run([sys.executable, "-m", "pip", "download", *options, requirement], f"{requirement} cannot be downloaded")
    (archive,) = folder.glob("*.tar.gz")
    return archive


def answer(python: Path, script: str, *arguments: object) -> Any:
    """Run a script of the peer's and return the last line that it prints, which is JSON."""
    done = subprocess.run([python, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        pytest.skip(f"{failure}: {lines[-1] if lines else 'no reason given'}")
