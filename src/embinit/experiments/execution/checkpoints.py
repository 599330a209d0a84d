"""Divide jobs into groups that train side by side, and keep the checkpoint folder of each group.

OUT/.checkpoints/GROUP/ holds `group.json` (its runs), `progress.json`, `lock` while a process trains it, and `state/`, the
checkpoint of the training loop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

from embinit.errors import EmbinitError
from embinit.experiments.execution.cost import Opening, group_cost, groups_at_once, members_that_fit
from embinit.experiments.jobs import Group, Job
from embinit.experiments.runs.store import is_done
from embinit.files import replacing
from embinit.prepared.folder import open_prepared
from embinit.records import read_json


def folder_of(out: Path, group: Group) -> Path:
    """Return the folder of a group's checkpoint."""
    return out / ".checkpoints" / group.name


def groups_of(
    jobs: Sequence[Job],
    out: Path,
    most: int | None,
    device: str,
    workers: int | None = 1,
    opened: Opening = open_prepared,
) -> list[Group]:
    """Return the unfinished jobs in groups of equal shape that fit the device, enough groups for all workers.

    Groups with a checkpoint stay together and come first. The other jobs are divided evenly, in the order of the files; with
    several workers, the longest group comes first.

    Parameters
    ----------
    jobs
        The jobs; finished ones are left out.
    out
        The folder of finished runs and of checkpoints.
    most
        The largest number of members in a group; None: as many as fit.
    device
        `cpu`, or the name of a CUDA device.
    workers
        The number of processes that share the work; None: the groups are those of one process, and as many processes take
        them as the device works on groups at once.
    opened
        Returns the prepared task of a job's folder.
    """
    unique = {job.key: job for job in jobs}
    missing = {key: job for key, job in unique.items() if not is_done(out / key)}
    begun = [group for group in _begun(unique, out) if most is None or len(group.jobs) <= most]
    groups = []
    for group in begun:
        if any(key in missing for key in group.keys):
            groups.append(group)
            for key in group.keys:
                missing.pop(key, None)
    shapes: dict[str, list[Job]] = {}
    for job in missing.values():
        shapes.setdefault(job.shape, []).append(job)
    asked, workers = workers, workers or 1
    free = max(1, workers - len(groups))
    fresh = []
    for same in shapes.values():
        # Each worker has a share of the memory and should get a share of the work. On a CPU it gets a share of each shape.
        # On a card, where large groups are the fastest, jobs are divided only if there are fewer shapes than workers.
        if device == "cpu":
            share = -(-len(same) // workers)
        else:
            share = len(same) if len(shapes) >= free else -(-len(missing) // free)
        room = max(1, min(members_that_fit(same[0], device, opened) // workers, share, most or len(same)))
        count = -(-len(same) // room)
        bounds = [round(i * len(same) / count) for i in range(count + 1)]
        fresh += [Group(tuple(same[a:b])) for a, b in pairwise(bounds)]
    if (asked or groups_at_once(groups + fresh, device, opened)) > 1:
        # Otherwise one worker may begin the longest group when all others have finished.
        fresh.sort(key=lambda group: group_cost(group, device, opened), reverse=True)
    return groups + fresh


def _begun(jobs: dict[str, Job], out: Path) -> Iterator[Group]:
    """Yield the groups that have a checkpoint and whose members are all among the jobs."""
    for path, keys in announced(out):
        state = path / "state"
        if all(key in jobs for key in keys) and state.is_dir() and any(state.iterdir()):
            group = Group(tuple(jobs[key] for key in keys))
            if group.name == path.name:
                yield group


class _GroupFile(TypedDict):
    keys: list[str]


class _ProgressFile(TypedDict):
    epoch: int
    epochs: int


def announced(out: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folder of every unfinished group, with the keys of its runs."""
    for path in sorted(out.glob(".checkpoints/*/group.json")):
        with suppress(EmbinitError):  # the file is damaged, so its runs begin again
            yield path.parent, read_json(path, _GroupFile)["keys"]


def announce(folder: Path, group: Group) -> None:
    """Record the runs of a group."""
    with replacing(folder / "group.json") as out:
        out.write(json.dumps({"keys": group.keys}).encode())


def note(folder: Path, moment: Any) -> None:
    """Record the progress of a group after each epoch."""
    if getattr(moment, "records", None) is not None:
        with replacing(folder / "progress.json") as out:
            out.write(json.dumps({"epoch": moment.epoch, "epochs": moment.epochs}).encode())


def progress_of(folder: Path) -> str:
    """Return the progress of a group as text."""
    try:
        progress = read_json(folder / "progress.json", _ProgressFile)
    except EmbinitError:
        return "in its first epoch"
    return f"{progress['epoch']} of {progress['epochs']} epochs"
