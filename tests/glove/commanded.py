"""`embinit glove` as a command of another process."""

from __future__ import annotations

import sys


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", "from embinit.cli import main; main()", "glove", *map(str, words)]
