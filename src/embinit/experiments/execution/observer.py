"""What executors tell whoever watches, and what became of the jobs in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embinit.experiments.jobs import Group


class Watch:
    """Hears what an executor does; this one does not listen."""

    def planned(self, groups: list[Group], done: int) -> None:
        """Hear what will be done, and how many runs are there already."""

    def started(self, group: Group) -> None:
        """Hear that a group begins."""

    def moment(self, group: Group, moment: Any) -> None:
        """Hear how far a group is: `training.loop.Moment`, or something with its fields."""

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Hear that a group's folders are written."""

    def failed(self, group: Group, reason: str) -> None:
        """Hear that a group failed, and why."""

    def said(self, text: str) -> None:
        """Hear anything else, in words."""


@dataclass
class ExecutionSummary:
    """What became of the jobs."""

    #: folders that were written now
    written: list[Path] = field(default_factory=list)
    #: runs that were there already
    already: int = 0
    #: key -> why it failed
    failed: dict[str, str] = field(default_factory=dict)
    #: runs that another process is at work on
    elsewhere: list[str] = field(default_factory=list)
    #: it was asked to stop, and did after a checkpoint
    stopped: bool = False

    def add(self, other: ExecutionSummary) -> None:
        """Take in what became of other jobs."""
        self.written += other.written
        self.failed.update(other.failed)
        self.elsewhere += other.elsewhere
        self.stopped |= other.stopped
