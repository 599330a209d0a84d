"""What is done of an experiment, what is under way, what failed, and what the rest is estimated to take."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.execution import checkpoints
from embinit.experiments.execution.cost import group_cost
from embinit.experiments.execution.locks import Owner, holder
from embinit.experiments.execution.processes import cores
from embinit.experiments.experiment import Axes, Block, Experiment
from embinit.experiments.jobs import Job
from embinit.experiments.runs.result import FailureFile
from embinit.experiments.runs.store import blank_keys, is_done, stored
from embinit.records import read_json


@dataclass(frozen=True)
class StatusLine:
    """Runs of a block that differ in their seed alone."""

    experiment: str
    block: str
    #: the axes with their values, as the file writes them
    axes: Axes
    keys: tuple[str, ...]
    done: tuple[str, ...]
    running: tuple[str, ...]
    failed: tuple[str, ...]
    #: why the block cannot be run here
    missing: str


@dataclass(frozen=True)
class State:
    """What is at work and what has failed in a folder of runs."""

    #: key -> who is at work on it, and how far
    running: dict[str, tuple[Owner, str]]
    #: key -> how far its training was when it was stopped
    stopped: dict[str, str]
    #: key -> why it failed
    failed: dict[str, str]


@dataclass(frozen=True)
class Estimate:
    """What groups of runs would take, one after another."""

    runs: int
    groups: int
    seconds: float
    memory: float


def state_of(runs: Path) -> State:
    """Return what is going on in a folder of runs."""
    running: dict[str, tuple[Owner, str]] = {}
    stopped: dict[str, str] = {}
    for folder, keys in checkpoints.announced(runs):
        owner, far = holder(folder / "lock"), checkpoints.progress_of(folder)
        for key in keys:
            if owner is not None:
                running[key] = (owner, far)
            elif not is_done(runs / key):
                stopped[key] = far
    failed = {}
    for path in sorted(runs.glob("*.failed.json")):
        key = path.name.removesuffix(".failed.json")
        if not is_done(runs / key):
            failed[key] = "the reason cannot be read"
            with suppress(EmbinitError):
                failed[key] = read_json(path, FailureFile)["reason"]
    return State(running, {key: far for key, far in stopped.items() if key not in running}, failed)


def lines_of(experiment: Experiment, runs: Path, state: State) -> list[StatusLine]:
    """Return the experiment's runs, a line for those that differ in their seed alone."""
    return [line for block in experiment.blocks for line in _lines(experiment.name, block, runs, state)]


def _lines(name: str, block: Block, runs: Path, state: State) -> list[StatusLine]:
    grouped: dict[Axes, list[str]] = {}
    for planned in block.runs:
        grouped.setdefault(planned.axes, []).append(planned.spec.key)
    return [
        StatusLine(
            name,
            block.name,
            axes,
            tuple(keys),
            tuple(key for key in keys if is_done(runs / key)),
            tuple(key for key in keys if key in state.running),
            tuple(key for key in keys if key in state.failed),
            block.missing,
        )
        for axes, keys in grouped.items()
    ]


def stale(experiments: Sequence[Experiment], runs: Path) -> list[Path]:
    """Return finished runs that none of these experiments names.

    Where data or vectors are not here, a run is named by everything else that its spec says: none is lost to a lost folder.
    """
    specs = [planned.spec for one in experiments for block in one.blocks for planned in block.runs]
    named = {spec.key for spec in specs}
    return [path for path, spec in stored(runs) if not named & {path.name, *blank_keys(spec)}]


def estimate(jobs: Sequence[Job], runs: Path, members: int | None, device: str) -> Estimate:
    """Return what the jobs that are not done would take on this device, by as many processes as `execute` takes."""
    workers = 1 if device.startswith("cuda") else cores()
    groups = checkpoints.groups_of(jobs, runs, members, device, workers)
    costs = [group_cost(group, device) for group in groups]
    seconds, memory = sum(one for one, _ in costs), max((one for _, one in costs), default=0.0)
    shared = max(1, min(workers, len(groups)))
    return Estimate(sum(len(group.jobs) for group in groups), len(groups), seconds / shared, memory * shared)
