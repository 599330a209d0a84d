"""How tests run a command: as a person does, in a terminal of 80 columns."""

from __future__ import annotations

import os
import subprocess
import sys


def run(*words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "embinit", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "80", **(env or {})}
    )
