"""Observers of an executor, and the summary of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embinit.experiments.jobs import Group
from embinit.types import TEXT_TASKS


def speed_text(group: Group, moment: Any) -> str:
    """Return the speed of a group: sentences a second, of a running text blocks a second."""
    unit = "blocks" if group.jobs[0].spec.task.kind in TEXT_TASKS else "sentences"
    return f"{moment.sentences_per_second:,.0f} {unit}/s"


class Watch:
    """Base observer. Every callback is a no-op."""

    def planned(self, groups: list[Group], done: int) -> None:
        """Take the groups that will be trained, and the number of runs that are done already."""

    def started(self, group: Group) -> None:
        """Take a group whose training begins."""

    def moment(self, group: Group, moment: Any) -> None:
        """Take the progress of a group: a `training.loop.Moment`, or an object with its fields."""

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Take a group whose run folders are written."""

    def failed(self, group: Group, reason: str) -> None:
        """Take a group that failed, and the reason."""

    def message(self, text: str) -> None:
        """Take any other message."""


class Watches(Watch):
    """Passes every callback to several observers, in order."""

    def __init__(self, observers: Sequence[Watch]) -> None:
        self._observers = tuple(observers)

    def planned(self, groups: list[Group], done: int) -> None:
        """Pass it to every observer."""
        for observer in self._observers:
            observer.planned(groups, done)

    def started(self, group: Group) -> None:
        """Pass it to every observer."""
        for observer in self._observers:
            observer.started(group)

    def moment(self, group: Group, moment: Any) -> None:
        """Pass it to every observer."""
        for observer in self._observers:
            observer.moment(group, moment)

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Pass it to every observer."""
        for observer in self._observers:
            observer.finished(group, folders)

    def failed(self, group: Group, reason: str) -> None:
        """Pass it to every observer."""
        for observer in self._observers:
            observer.failed(group, reason)

    def message(self, text: str) -> None:
        """Pass it to every observer."""
        for observer in self._observers:
            observer.message(text)


@dataclass
class ExecutionSummary:
    """The outcome of the jobs."""

    #: folders that were written now
    written: list[Path] = field(default_factory=list)
    #: the number of runs that were done before
    already: int = 0
    #: key -> the reason why the run failed
    failed: dict[str, str] = field(default_factory=dict)
    #: runs that another process is training
    elsewhere: list[str] = field(default_factory=list)
    #: whether it stopped after a checkpoint because it was asked to
    stopped: bool = False

    def add(self, other: ExecutionSummary) -> None:
        """Add the outcome of other jobs."""
        self.written += other.written
        self.failed.update(other.failed)
        self.elsewhere += other.elsewhere
        self.stopped |= other.stopped
