"""Write resolved experiments as a folder that any machine can execute: jobs.json, prepared tasks, rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from filecmp import cmp
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.definition.draft import Draft
from embinit.experiments.execution.provenance import code_of, commit_of
from embinit.experiments.inputs.resolve import Resolved
from embinit.experiments.jobs import Job, write_jobs
from embinit.experiments.runs.store import finished_folders
from embinit.experiments.spec import Spec


def specs_of(resolved: Resolved) -> list[Spec]:
    """Return the runs that can be trained here, each once, in the order of the files."""
    specs: dict[str, Spec] = {}
    for experiment in resolved.experiments:
        if experiment.kind == "training":
            for block in experiment.blocks:
                if not block.missing:
                    specs.update({planned.spec.key: planned.spec for planned in block.runs})
    return list(specs.values())


def unfinished(resolved: Resolved, specs: list[Spec], runs: Path) -> list[Spec]:
    """Return the specs without a finished run; a run on the user's own files is also found under another key."""
    done = {key for experiment in resolved.experiments for key in finished_folders(experiment, runs)}
    return [spec for spec in specs if spec.key not in done]


def with_first_seeds(resolved: Resolved, count: int) -> Resolved:
    """Return the experiments with only the first seeds of each block; experiments that train nothing stay unchanged."""
    experiments = []
    for experiment in resolved.experiments:
        if experiment.kind != "training":
            experiments.append(experiment)
            continue
        blocks = []
        for block in experiment.blocks:
            first = list(dict.fromkeys(planned.spec.seed for planned in block.runs))[:count]
            runs = tuple(planned for planned in block.runs if planned.spec.seed in first)
            blocks.append(replace(block, runs=runs))
        experiments.append(replace(experiment, blocks=tuple(blocks)))
    return replace(resolved, experiments=experiments)


def with_epochs(drafts: list[Draft], epochs: int) -> list[Draft]:
    """Return the experiments with another number of epochs in every run; their runs are other runs."""
    return [
        replace(
            draft,
            blocks=tuple(
                replace(
                    block,
                    runs=tuple(replace(run, training=_with(run.training, "epochs", epochs)) for run in block.runs),
                )
                for block in draft.blocks
            ),
        )
        for draft in drafts
    ]


def _with(values: tuple[tuple[str, Any], ...], name: str, value: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted({**dict(values), name: value}.items()))


def jobs_of(resolved: Resolved, specs: list[Spec]) -> list[Job]:
    """Return runs as jobs that read their data and rows from the folder of work."""
    return [
        Job(
            spec.key,
            spec,
            resolved.tasks[spec.task.data].prepared.path,
            tuple((name, resolved.rows[side.rows].path if side.rows else None) for name, side in spec.sides),
        )
        for spec in specs
    ]


def write_plan(resolved: Resolved, specs: list[Spec], folder: Path, work: Path) -> Path:
    """Write jobs.json below `folder` with the files that it names, and return its path; existing equal files stay."""
    tasks = {data: ready.prepared.path.name for data, ready in resolved.tasks.items()}
    path = folder / "jobs.json"
    try:
        if folder.resolve() != work.resolve():
            for data in dict.fromkeys(spec.task.data for spec in specs):
                _copy(work / "prepared" / tasks[data], folder / "prepared" / tasks[data])
            for rows in dict.fromkeys(side.rows for spec in specs for _, side in spec.sides if side.rows):
                file = resolved.rows[rows].path
                _copy(file, folder / "sources" / file.name)
        write_jobs(specs, tasks, path, commit_of(), code_of())
    except OSError as error:
        raise EmbinitError(f"cannot write {folder}: {error.strerror or error}") from None
    return path


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder, unless an equal one exists; a damaged one is replaced."""
    if _equal(source, target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)
    if source.is_dir():
        shutil.copytree(source, part)
        shutil.rmtree(target, ignore_errors=True)
    else:
        shutil.copyfile(source, part)
    part.replace(target)


def _equal(source: Path, target: Path) -> bool:
    """Return whether two files, or the files of two folders, have the same bytes."""
    if source.is_dir():
        names = sorted(path.name for path in source.iterdir())
        there = sorted(path.name for path in target.iterdir()) if target.is_dir() else []
        return names == there and all(_equal(source / name, target / name) for name in names)
    return target.is_file() and cmp(source, target, shallow=False)
