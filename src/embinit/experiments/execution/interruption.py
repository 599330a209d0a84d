"""Ctrl-C, once: the step is finished and a checkpoint written. Twice: it stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

#: What asks a program to stop: Ctrl-C, and `kill`, `timeout` or a batch system.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """While entered, the first signal only sets a flag; call the object to read it."""

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        self.asked = False
        self._say = say
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Return whether somebody asked to stop."""
        return self.asked

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._heard) for one in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for one, before in self._before.items():
            signal.signal(one, before)
        self._before = {}

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._say("stopping after this step, with a checkpoint; once more stops at once")
