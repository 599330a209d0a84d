"""Which jobs train side by side, and the folder where a group's checkpoint lies while it does.

OUT/.checkpoints/GROUP/ holds `group.json` (its runs), `progress.json`, `lock` while a process is at work on it, and
`state/`, which is the training loop's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from embinit.experiments.execution.cost import group_cost, members_that_fit
from embinit.experiments.jobs import Group, Job
from embinit.experiments.runs.store import is_done
from embinit.files import replacing


def folder_of(out: Path, group: Group) -> Path:
    """Return where a group's checkpoint lies."""
    return out / ".checkpoints" / group.name


def groups_of(jobs: Sequence[Job], out: Path, most: int | None, device: str, workers: int = 1) -> list[Group]:
    """Return the jobs that are not done in groups of equal shape that fit the device, enough for all workers.

    Those that were in training stay together, so that their checkpoint is theirs, and come first; the others are divided
    evenly, in the files' order, or the longest first where there are several workers.
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
    free = max(1, workers - len(groups))
    fresh = []
    for same in shapes.values():
        # Each worker has a part of the memory, and should have a part of the work: on a CPU of each shape; on a card, where
        # many members together are the fastest, of all, and only where there are not shapes enough.
        if device == "cpu":
            share = -(-len(same) // workers)
        else:
            share = len(same) if len(shapes) >= free else -(-len(missing) // free)
        room = max(1, min(members_that_fit(same[0], device) // workers, share, most or len(same)))
        count = -(-len(same) // room)
        bounds = [round(i * len(same) / count) for i in range(count + 1)]
        fresh += [Group(tuple(same[a:b])) for a, b in pairwise(bounds)]
    if workers > 1:
        # Else one worker may be left with the longest when all others have done.
        fresh.sort(key=lambda group: group_cost(group, device), reverse=True)
    return groups + fresh


def _begun(jobs: dict[str, Job], out: Path) -> Iterator[Group]:
    """Yield groups that have a checkpoint and whose members are all among the jobs."""
    for path, keys in announced(out):
        state = path / "state"
        if all(key in jobs for key in keys) and state.is_dir() and any(state.iterdir()):
            group = Group(tuple(jobs[key] for key in keys))
            if group.name == path.name:
                yield group


def announced(out: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folder of every group that was begun and is not finished, with its runs."""
    for path in sorted(out.glob(".checkpoints/*/group.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            yield path.parent, [str(key) for key in json.loads(path.read_text("utf-8"))["keys"]]


def announce(folder: Path, group: Group) -> None:
    """Write down which runs a group trains."""
    with replacing(folder / "group.json") as out:
        out.write(json.dumps({"keys": group.keys}).encode())


def note(folder: Path, moment: Any) -> None:
    """Write down how far a group is, after each epoch."""
    if getattr(moment, "records", None) is not None:
        with replacing(folder / "progress.json") as out:
            out.write(json.dumps({"epoch": moment.epoch, "epochs": moment.epochs}).encode())


def progress_of(folder: Path) -> str:
    """Return in words how far a group is."""
    try:
        known = json.loads((folder / "progress.json").read_text("utf-8"))
        return f"{known['epoch']} of {known['epochs']} epochs"
    except (OSError, ValueError, KeyError):
        return "in its first epoch"
