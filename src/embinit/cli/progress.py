"""Progress of training on stderr: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embinit.cli.console import console, table
from embinit.experiments.execution.observer import Watch, speed_text
from embinit.format import duration, plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from embinit.experiments.jobs import Group

_SECONDS_BETWEEN_LINES = 10.0
#: The score of an epoch that is shown: the first one that its record has.
_SHOWN = ("bleu", "accuracy", "valid loss")


@dataclass
class _Training:
    """A group in training: its progress, and the records of its last two epochs."""

    group: Group
    moment: Any = None
    records: list[dict[str, float]] = field(default_factory=list)
    before: list[dict[str, float]] = field(default_factory=list)
    #: time of the last line
    printed: float = 0.0


class Progress(Watch):
    """Observer that shows the progress of an executor."""

    def __init__(self) -> None:
        self._screen = console(err=True)
        self._live: Any = None
        self._runs = self._done = self._failed = 0
        self._training: dict[str, _Training] = {}

    def __enter__(self) -> Progress:
        if self._screen.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._screen, refresh_per_second=4, transient=True, get_renderable=self._table)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def planned(self, groups: list[Group], done: int) -> None:
        """Count the runs."""
        self._runs, self._done = done + sum(len(group.jobs) for group in groups), done

    def started(self, group: Group) -> None:
        """Show that the training of a group begins."""
        # A group that did not fit the memory begins again as halves.
        halves = set(group.keys)
        self._training = {
            name: known for name, known in self._training.items() if not halves.issubset(known.group.keys)
        }
        self._training[group.name] = _Training(group, printed=time.monotonic())
        if self._live is None:
            together = " side by side" if len(group.jobs) > 1 else " begins"
            waiting = f"; {plural(self._waiting, 'run')} to follow" if self._waiting else ""
            self.message(f"{named(group)}: {plural(len(group.jobs), 'run')}{together}{waiting}")

    def moment(self, group: Group, moment: Any) -> None:
        """Show the progress of a group."""
        known = self._training.setdefault(group.name, _Training(group))
        known.moment = moment
        if moment.records is not None:
            known.before, known.records = known.records, moment.records
        if self._live is None and time.monotonic() - known.printed >= _SECONDS_BETWEEN_LINES:
            known.printed = time.monotonic()
            self.message(f"{named(group)}: {_progress_text(group, moment)}")

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Show that a group is finished."""
        self._training.pop(group.name, None)
        self._done += len(folders)
        self.message(f"{named(group)}: {plural(len(folders), 'run')} done, {self._done} of {self._runs}")

    def failed(self, group: Group, reason: str) -> None:
        """Show that a group failed."""
        self._training.pop(group.name, None)
        self._failed += len(group.jobs)
        self.message(f"{named(group)}: failed: {reason}")

    def message(self, text: str) -> None:
        """Show any other message."""
        self._screen.print(text, markup=False, soft_wrap=True)

    @property
    def _waiting(self) -> int:
        """Return the number of runs whose training has not begun."""
        begun = sum(len(known.group.jobs) for known in self._training.values())
        return max(0, self._runs - self._done - self._failed - begun)

    def _table(self) -> RenderableType:
        """Return the groups in training, with a line for each start: the mean over its seeds."""
        from rich.console import Group as Lines
        from rich.text import Text

        waiting = f", {self._waiting} to follow" if self._waiting else ""
        lines: list[RenderableType] = [Text(f"{self._done} of {self._runs} runs done{waiting}")]
        for known in list(self._training.values()):
            progress = _progress_text(known.group, known.moment) if known.moment is not None else "beginning"
            lines.append(Text(f"{named(known.group)}: {plural(len(known.group.jobs), 'run')}, {progress}"))
            if known.records:
                lines.append(_records(known))
        return Lines(*lines)


def _records(known: _Training) -> RenderableType:
    from rich.text import Text

    name = next(name for name in _SHOWN if name in known.records[0])
    columns = table("start", "seeds", "train loss", "valid loss", name, "change")
    for start, members in _starts(known.group).items():
        values = [_mean(known.records, members, shown) for shown in ("train loss", "valid loss", name)]
        change = values[-1] - _mean(known.before, members, name)
        texts = [f"{value:.3f}" for value in values]
        columns.add_row(Text(start), str(len(members)), *texts, f"{change:+.3f}" if change == change else "")
    return columns


def named(group: Group) -> str:
    """Return a short name of a group: its task, its tokenizer and the size of its model."""
    spec = group.jobs[0].spec
    model = dict(spec.model)
    task = "-".join(part for part in (spec.task.name, spec.task.pair) if part)
    return f"{task}, {spec.task.tokenizer}, {model['layers']} x {model['dim']}"


def _progress_text(group: Group, moment: Any) -> str:
    speed = f", {speed_text(group, moment)}" if moment.sentences_per_second else ""
    done = moment.epoch - 1 + moment.step / max(1, moment.steps)
    left = moment.seconds / done * (moment.epochs - done) if done > 0 else 0.0
    return (
        f"epoch {moment.epoch} of {moment.epochs}, step {moment.step} of {moment.steps}{speed}, {duration(left)} left"
    )


def _starts(group: Group) -> dict[str, list[int]]:
    """Return the members of each start by its name."""
    members: dict[str, list[int]] = {}
    for place, job in enumerate(group.jobs):
        names = dict.fromkeys(f"{side.recipe} {side.source}".strip() for _, side in job.spec.sides)
        members.setdefault(" + ".join(names), []).append(place)
    return members


def _mean(records: list[dict[str, float]], members: list[int], name: str) -> float:
    values = [records[place].get(name, float("nan")) for place in members if place < len(records)]
    return sum(values) / len(values) if values else float("nan")
