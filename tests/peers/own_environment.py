"""Peers whose dependencies do not go with ours: each in a virtual environment of its own, made once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import environments


def environment(name: str, *installs: list[str]) -> Path:
    """Return the Python of `.venv-NAME` with these pip installs done in turn; skip, with pip's reason, where one fails."""
    try:
        return environments.environment(name, *installs)
    except environments.Missing as reason:
        pytest.skip(str(reason))


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
    try:
        environments.run(command, failure)
    except environments.Missing as reason:
        pytest.skip(str(reason))
