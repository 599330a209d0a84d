"""`execute`: jobs into run folders, again and again until all are there. Needs torch, numpy, safetensors and sacrebleu.

Every run is a folder that appears when it is whole. A job whose folder is there is skipped, so that the same call goes on
where a killed one was; groups that were in training go on from their checkpoints. Whoever spreads work over machines gives
each a file of jobs of its own and collects the folders.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from embinit.errors import EmbinitError, require
from embinit.experiments.execution import checkpoints
from embinit.experiments.execution.cost import groups_at_once
from embinit.experiments.execution.observer import ExecutionSummary, Watch
from embinit.experiments.execution.processes import cores, in_processes
from embinit.experiments.execution.provenance import code_of, commit_of
from embinit.experiments.execution.worker import Work
from embinit.experiments.jobs import Jobs, read_jobs
from embinit.experiments.runs.store import is_done


def execute(
    jobs: Path,
    out: Path,
    *,
    device: str = "auto",
    members: int | None = None,
    workers: int | None = None,
    watch: Watch | None = None,
    stopping: Callable[[], bool] = lambda: False,
    every: float = 60.0,
    keep_weights: bool = False,
) -> ExecutionSummary:
    """Return what became of the jobs of a file; every finished run is a folder below `out`.

    `members` is the most that train side by side (by default as many as fit), `every` the seconds between checkpoints.
    `workers` is the number of processes: by default one for each core of a CPU, or two on a card if its memory has room for
    two groups at once. With `keep_weights`, a run's folder also gets the weights of its best epoch.
    """
    plan = read_jobs(jobs)
    _check_libraries(plan)
    chosen = device_of(device)
    count = _workers(plan, out, chosen, workers)
    groups = checkpoints.groups_of(plan.jobs, out, members, chosen, count)
    count = count or groups_at_once(groups, chosen)
    listening = watch or Watch()
    commit = commit_of() or _planned(plan)
    work = Work(out, chosen, every, commit, listening, stopping, keep_weights=keep_weights)
    work.summary.already = sum(is_done(out / key) for key in {job.key for job in plan.jobs})
    listening.planned(groups, work.summary.already)
    if count > 1 and len(groups) > 1:
        in_processes(groups, work, min(count, len(groups)))
        return work.summary
    for group in groups:
        work.summary.stopped |= stopping()
        if work.summary.stopped:
            break
        work.run(group)
    return work.summary


def _check_libraries(plan: Jobs) -> None:
    """Raise where a library is not installed that the jobs need, also one that they would need only after training."""
    require("torch", "train", "training")
    if any("target" in dict(job.spec.sides) for job in plan.jobs):
        require("sacrebleu", "train", "scoring translations")


def _planned(plan: Jobs) -> str:
    """Return the commit that planned the jobs, with a ? where the code here is not the same."""
    return plan.commit + "?" * (bool(plan.commit) and plan.code != code_of())


def _workers(plan: Jobs, out: Path, device: str, asked: int | None) -> int | None:
    """Return how many processes share the work; None: as many as the device works on groups at once.

    A CPU's cores do better with a process each than with one on all.
    """
    if asked is None and device != "cpu":
        return None
    missing = sum(not is_done(out / key) for key in {job.key for job in plan.jobs})
    return max(1, min(asked if asked is not None else cores(), missing))


def device_of(name: str) -> str:
    """Return a device by name; `auto` is a GPU where there is one."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise EmbinitError(f"there is no device {name!r} here: {reason}") from None
    return name
