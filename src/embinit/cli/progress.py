"""Training as it goes: a live table in a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embinit.cli.console import console, table
from embinit.experiments.execution.observer import Watch, speed_text
from embinit.format import plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from embinit.experiments.jobs import Group

_SECONDS_BETWEEN_LINES = 10.0
#: What of an epoch's record is shown, the first that is there.
_SHOWN = ("bleu", "accuracy", "valid loss")


@dataclass
class _Training:
    """A group in training: how far it is, and the records of its last two epochs."""

    group: Group
    moment: Any = None
    records: list[dict[str, float]] = field(default_factory=list)
    before: list[dict[str, float]] = field(default_factory=list)
    told: float = 0.0


class Progress(Watch):
    """Watches an executor."""

    def __init__(self) -> None:
        self._screen = console(err=True)
        self._live: Any = None
        self._runs = self._done = 0
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
        """Hear what will be done."""
        self._runs, self._done = done + sum(len(group.jobs) for group in groups), done

    def started(self, group: Group) -> None:
        """Hear that a group begins."""
        self._training[group.name] = _Training(group, told=time.monotonic())
        if self._live is None:
            together = " side by side" if len(group.jobs) > 1 else " begins"
            self.said(f"{named(group)}: {plural(len(group.jobs), 'run')}{together}")

    def moment(self, group: Group, moment: Any) -> None:
        """Hear how far a group is."""
        known = self._training.setdefault(group.name, _Training(group))
        known.moment = moment
        if moment.records is not None:
            known.before, known.records = known.records, moment.records
        if self._live is None and time.monotonic() - known.told >= _SECONDS_BETWEEN_LINES:
            known.told = time.monotonic()
            self.said(f"{named(group)}: {_far(group, moment)}")

    def finished(self, group: Group, folders: list[Path]) -> None:
        """Hear that a group's folders are written."""
        self._training.pop(group.name, None)
        self._done += len(folders)
        self.said(f"{named(group)}: {plural(len(folders), 'run')} done, {self._done} of {self._runs}")

    def failed(self, group: Group, reason: str) -> None:
        """Hear that a group failed."""
        self._training.pop(group.name, None)
        self.said(f"{named(group)}: failed: {reason}")

    def said(self, text: str) -> None:
        """Hear anything else."""
        self._screen.print(text, markup=False, soft_wrap=True)

    def _table(self) -> RenderableType:
        """Return the groups in training, a line for each start that their members have: mean over seeds."""
        from rich.console import Group as Lines
        from rich.text import Text

        lines: list[RenderableType] = [Text(f"{self._done} of {self._runs} runs done")]
        for known in list(self._training.values()):
            far = _far(known.group, known.moment) if known.moment is not None else "beginning"
            lines.append(Text(f"{named(known.group)}: {plural(len(known.group.jobs), 'run')}, {far}"))
            if known.records:
                lines.append(_records(known))
        return Lines(*lines)


def _records(known: _Training) -> RenderableType:
    from rich.text import Text

    name = next(name for name in _SHOWN if name in known.records[0])
    made = table("start", "seeds", "train loss", "valid loss", name, "change")
    for start, members in _starts(known.group).items():
        values = [_mean(known.records, members, one) for one in ("train loss", "valid loss", name)]
        change = values[-1] - _mean(known.before, members, name)
        shown = [f"{value:.3f}" for value in values]
        made.add_row(Text(start), str(len(members)), *shown, f"{change:+.3f}" if change == change else "")
    return made


def named(group: Group) -> str:
    """Return in a few words what a group is."""
    spec = group.jobs[0].spec
    model = dict(spec.model)
    task = "-".join(part for part in (spec.task.name, spec.task.pair) if part)
    return f"{task}, {spec.task.tokenizer}, {model['layers']} x {model['dim']}"


def _far(group: Group, moment: Any) -> str:
    speed = f", {speed_text(group, moment)}" if moment.sentences_per_second else ""
    done = moment.epoch - 1 + moment.step / max(1, moment.steps)
    left = moment.seconds / done * (moment.epochs - done) if done > 0 else 0.0
    return f"epoch {moment.epoch} of {moment.epochs}, step {moment.step} of {moment.steps}{speed}, {clock(left)} left"


def clock(seconds: float) -> str:
    """Return a time as a person says it: 45 s, 12 min, 3.4 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _starts(group: Group) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, job in enumerate(group.jobs):
        names = dict.fromkeys(f"{side.recipe} {side.source}".strip() for _, side in job.spec.sides)
        found.setdefault(" + ".join(names), []).append(place)
    return found


def _mean(records: list[dict[str, float]], members: list[int], name: str) -> float:
    values = [records[place].get(name, float("nan")) for place in members if place < len(records)]
    return sum(values) / len(values) if values else float("nan")
