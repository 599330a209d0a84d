"""`execute`: train the jobs of a file and write a folder for each run. Needs torch, numpy, safetensors and sacrebleu.

A run's folder appears once it is complete. A job with a finished folder is skipped, and a group with a checkpoint continues
from it, so the same call continues after a kill. To use several machines, give each one its own file of jobs and collect
the folders.
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
from embinit.experiments.execution.worker import Work, names_memory
from embinit.experiments.jobs import Group, Jobs, read_jobs
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
    """Train the jobs of a file and return their outcome; every finished run is a folder below `out`.

    Parameters
    ----------
    jobs
        The file jobs.json of a plan.
    out
        The folder of finished runs.
    device
        `cpu`, `cuda`, `cuda:1` ...; `auto` takes a GPU if there is one.
    members
        The largest number of runs that train side by side; by default as many as fit the memory.
    workers
        The number of processes; by default one for each core of a CPU, or two on a card if its memory has room for two
        groups at once.
    watch
        The observer of the progress.
    stopping
        Returns whether to stop after the current step.
    every
        The seconds between checkpoints.
    keep_weights
        Whether a run's folder also gets the weights of its best epoch.

    Raises
    ------
    EmbinitError
        If the file is damaged, a library is missing, or the device does not exist.
    """
    plan = read_jobs(jobs)
    _check_libraries(plan)
    chosen = device_of(device)
    count = _workers(plan, out, chosen, workers)
    groups = checkpoints.groups_of(plan.jobs, out, members, chosen, count)
    count = count or groups_at_once(groups, chosen)
    observer = watch or Watch()
    commit = commit_of() or _planned(plan)
    work = Work(out, chosen, every, commit, observer, stopping, keep_weights=keep_weights)
    work.summary.already = sum(is_done(out / key) for key in {job.key for job in plan.jobs})
    observer.planned(groups, work.summary.already)
    if count > 1 and len(groups) > 1:
        in_processes(groups, work, min(count, len(groups)))
        # A run that did not fit the memory beside other groups may fit alone.
        failed = {job.key: job for job in plan.jobs if names_memory(work.summary.failed.get(job.key, ""))}
        groups = [Group((job,)) for job in failed.values()]
    for group in groups:
        work.summary.stopped |= stopping()
        if work.summary.stopped:
            break
        work.run(group)
    return work.summary


def _check_libraries(plan: Jobs) -> None:
    """Raise EmbinitError if the jobs need a library that is not installed, even if they need it only after training."""
    require("torch", "train", "training")
    if any("target" in dict(job.spec.sides) for job in plan.jobs):
        require("sacrebleu", "train", "scoring translations")


def _planned(plan: Jobs) -> str:
    """Return the commit that planned the jobs; a ? follows if the code on this machine differs."""
    return plan.commit + "?" * (bool(plan.commit) and plan.code != code_of())


def _workers(plan: Jobs, out: Path, device: str, asked: int | None) -> int | None:
    """Return the number of processes; None: as many as the device can train groups at once.

    On a CPU, one process for each core is faster than one process on all cores.
    """
    if asked is None and device != "cpu":
        return None
    missing = sum(not is_done(out / key) for key in {job.key for job in plan.jobs})
    return max(1, min(asked if asked is not None else cores(), missing))


def device_of(name: str) -> str:
    """Return a device by name; `auto` is a GPU if there is one."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = "a GPU is called cuda" if name == "gpu" else str(error).partition("\n")[0]
        raise EmbinitError(f"this machine has no device {name!r}: {reason}") from None
    return name
