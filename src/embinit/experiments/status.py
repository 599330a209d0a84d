"""The state of experiments: finished, running and failed runs, and the estimated cost of the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.execution import checkpoints
from embinit.experiments.execution.cost import group_cost, groups_at_once
from embinit.experiments.execution.locks import Owner, holder
from embinit.experiments.execution.processes import cores
from embinit.experiments.experiment import Axes, Block, Experiment
from embinit.experiments.inputs.resolve import Resolved
from embinit.experiments.jobs import Job
from embinit.experiments.plan import jobs_of, specs_of, unfinished
from embinit.experiments.runs.result import FailureFile
from embinit.experiments.runs.store import finished_folders, is_done
from embinit.experiments.spec import Spec
from embinit.prepared.folder import Prepared, open_prepared
from embinit.records import read_json

#: The dimension in estimates if the sources were never read: GloVe's, or the next multiple of the heads.
_USUAL_DIM = 300


@dataclass(frozen=True)
class StatusLine:
    """Runs of a block that differ only in their seed."""

    experiment: str
    block: str
    #: the axes with their values, as the file writes them
    axes: Axes
    #: None if the data or the vectors are not prepared yet
    keys: tuple[str, ...] | None
    #: the number of runs
    runs: int
    #: names of the folders of finished runs
    done: tuple[str, ...]
    running: tuple[str, ...]
    failed: tuple[str, ...]
    #: the reason why the block cannot be run here
    missing: str


@dataclass(frozen=True)
class State:
    """The runs of a folder that are in training, that were stopped, and that failed."""

    #: key -> the process that trains it, and its progress
    running: dict[str, tuple[Owner, str]]
    #: key -> its progress when it was stopped
    stopped: dict[str, str]
    #: key -> why it failed
    failed: dict[str, str]


@dataclass(frozen=True)
class Estimate:
    """The cost of groups of runs, one after another."""

    runs: int
    groups: int
    seconds: float
    memory: float
    #: whether all data and vectors were prepared; otherwise sizes are estimated from the numbers of lines and words
    prepared: bool = True


def state_of(runs: Path) -> State:
    """Return the runs of a folder that are in training, that were stopped, and that failed."""
    running: dict[str, tuple[Owner, str]] = {}
    stopped: dict[str, str] = {}
    for folder, keys in checkpoints.announced(runs):
        owner, progress = holder(folder / "lock"), checkpoints.progress_of(folder)
        for key in keys:
            if owner is not None:
                running[key] = (owner, progress)
            elif not is_done(runs / key):
                stopped[key] = progress
    failed = {}
    for path in sorted(runs.glob("*.failed.json")):
        key = path.name.removesuffix(".failed.json")
        if not is_done(runs / key):
            failed[key] = "the reason cannot be read"
            with suppress(EmbinitError):
                failed[key] = read_json(path, FailureFile)["reason"]
    return State(running, {key: progress for key, progress in stopped.items() if key not in running}, failed)


def lines_of(experiment: Experiment, runs: Path, state: State) -> list[StatusLine]:
    """Return the experiment's runs; runs that differ only in their seed share a line."""
    done = finished_folders(experiment, runs)
    return [line for block in experiment.blocks for line in _lines(experiment.name, block, done, state)]


def _lines(name: str, block: Block, done: dict[str, Path], state: State) -> list[StatusLine]:
    grouped: dict[Axes, list[Spec]] = {}
    for planned in block.runs:
        grouped.setdefault(planned.axes, []).append(planned.spec)
    return [
        StatusLine(
            name,
            block.name,
            axes,
            tuple(spec.key for spec in specs) if all(spec.resolved for spec in specs) else None,
            len(specs),
            tuple(done[spec.key].name for spec in specs if spec.key in done),
            tuple(spec.key for spec in specs if spec.key in state.running),
            tuple(spec.key for spec in specs if spec.key in state.failed),
            block.explained,
        )
        for axes, specs in grouped.items()
    ]


def estimate(jobs: Sequence[Job], runs: Path, members: int | None, device: str) -> Estimate:
    """Return the cost of the jobs that are not done on a device, with as many processes as `execute` starts."""
    return _estimate(jobs, runs, members, device, {})


def estimate_resolved(resolved: Resolved, runs: Path, members: int | None, device: str) -> Estimate:
    """Return the cost of an experiment's missing runs, from estimated sizes where data is not prepared yet."""
    specs = unfinished(resolved, specs_of(resolved), runs)
    jobs = jobs_of(resolved, [spec for spec in specs if spec.key not in resolved.estimates])
    unprepared: dict[Path, Prepared] = {}
    for spec in specs:
        task = resolved.estimates.get(spec.key)
        if task is not None:
            unprepared[task.path] = task
            model = dict(spec.model)
            heads = int(model["heads"])
            model = {"dim": -(-_USUAL_DIM // heads) * heads, **model}
            spec = Spec(spec.task, spec.sides, spec.seed, tuple(model.items()), spec.training)
            jobs.append(Job(spec.key, spec, task.path, ()))
    return _estimate(jobs, runs, members, device, unprepared)


def _estimate(
    jobs: Sequence[Job], runs: Path, members: int | None, device: str, unprepared: dict[Path, Prepared]
) -> Estimate:
    def opened(path: Path) -> Prepared:
        return unprepared[path] if path in unprepared else open_prepared(path)

    card = device.startswith("cuda")
    groups = checkpoints.groups_of(jobs, runs, members, device, None if card else cores(), opened)
    costs = [group_cost(group, device, opened) for group in groups]
    at_once = groups_at_once(groups, device, opened) if card else cores()
    sizes, shared = sorted((size for _, size in costs), reverse=True), max(1, min(at_once, len(groups)))
    # Groups on one card take turns, so that two at once gain little.
    seconds = sum(time for time, _ in costs) / (1 if card else shared)
    count = sum(len(group.jobs) for group in groups)
    return Estimate(count, len(groups), seconds, sum(sizes[:shared]), not unprepared)
