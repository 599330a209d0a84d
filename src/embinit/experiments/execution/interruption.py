"""Ctrl-C: the first one finishes the step and writes a checkpoint, the second one stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

#: The signals that ask a program to stop: of Ctrl-C, and of `kill`, `timeout` and batch systems.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Context in which the first signal only sets a flag. Call the object to read the flag."""

    def __init__(self, report: Callable[[str], None] = lambda _: None) -> None:
        self.asked = False
        self._report = report
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Return whether a signal asked to stop."""
        return self.asked

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._received) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _received(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._report("stopping after this step, with a checkpoint; press Ctrl-C again to stop at once")
