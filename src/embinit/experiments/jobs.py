"""jobs.json: runs as plain JSON, with the prepared tasks and rows that they read beside it.

```
{"version": 1, "commit": "...", "code": "...",
 "tasks": {ID: "prepared/FOLDER"}, "sources": {ID: "sources/ID.safetensors"},
 "jobs": [{"key": KEY, "spec": {...}, "task": ID, "sides": {"source": {"rows": ID or null}, ...}}]}
```

Paths are relative to the file, so that its folder can be carried to another machine. A key is the hash of its spec, and a
spec holds the checksums of the data and of the rows, so that every part of a plan is verified when it is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from embinit.errors import EmbinitError
from embinit.experiments.spec import Spec, digest
from embinit.experiments.spec_reader import check_settings, spec_of
from embinit.files import replacing
from embinit.models import architecture
from embinit.records import Damaged, read_json, typed
from embinit.training import options

VERSION = 1


@dataclass(frozen=True)
class Job:
    """One planned run: its spec, the folder of its data, and the file with the rows of each side (None: no source)."""

    key: str
    spec: Spec
    task: Path
    rows: tuple[tuple[str, Path | None], ...]

    @property
    def shape(self) -> str:
        """Return a hash of the task and of all settings that members of a group must share."""
        content = self.spec.as_json()
        shared = [
            {name: value for name, value in content[part].items() if name not in own}
            for part, own in (("model", architecture.PER_MEMBER), ("training", options.PER_MEMBER))
        ]
        return digest([content["task"], *shared])


@dataclass(frozen=True)
class Group:
    """Jobs that train side by side, in this order."""

    jobs: tuple[Job, ...]

    @property
    def name(self) -> str:
        """Return the group's name, a hash of its members' keys."""
        return digest([job.key for job in self.jobs])

    @property
    def keys(self) -> list[str]:
        """Return the names of its runs."""
        return [job.key for job in self.jobs]

    def halves(self) -> tuple[Group, Group]:
        """Return the two halves of the group."""
        middle = (len(self.jobs) + 1) // 2
        return Group(self.jobs[:middle]), Group(self.jobs[middle:])


@dataclass(frozen=True)
class Jobs:
    """The content of jobs.json."""

    jobs: tuple[Job, ...]
    #: the commit that planned them, if known, and a hash of its code
    commit: str = ""
    code: str = ""


class _SideFile(TypedDict):
    rows: str | None


class _JobFile(TypedDict):
    key: str
    spec: dict[str, Any]
    task: str
    sides: dict[str, _SideFile]


class _JobsFile(TypedDict):
    version: int
    tasks: dict[str, str]
    sources: dict[str, str]
    jobs: list[_JobFile]


def read_jobs(path: Path) -> Jobs:
    """Return the jobs of a file.

    Raises
    ------
    EmbinitError
        If the file is not a list of jobs, is damaged, or has a job that this version cannot train.
    """
    content = read_content(path)
    try:
        jobs = tuple(_job(job, content, path.parent) for job in content["jobs"])
    except EmbinitError as error:
        raise EmbinitError(f"{path}: {error}") from None
    return Jobs(jobs, str(content.get("commit", "")), str(content.get("code", "")))


def read_content(path: Path) -> dict[str, Any]:
    """Return the content of jobs.json, with its version and types checked."""
    content: dict[str, Any] = read_json(
        path, dict[str, Any], "give the jobs.json of a folder that `embinit run --plan` wrote"
    )
    if not {"version", "jobs"} <= content.keys():
        raise EmbinitError(f"{path} is no list of jobs; give the jobs.json of a folder that `embinit run --plan` wrote")
    if content["version"] != VERSION:
        raise EmbinitError(
            f"{path} has version {content['version']!r}, and this embinit reads version {VERSION}; "
            "install the version that planned the jobs, or plan them again"
        )
    try:
        typed(content, _JobsFile)
    except Damaged as error:
        raise Damaged(f"{path} is damaged: {error}; plan it again") from None
    return content


def _job(job: dict[str, Any], content: dict[str, Any], folder: Path) -> Job:
    try:
        spec = spec_of(job["spec"])
    except Damaged as error:
        raise Damaged(f"job {job['key']} is damaged: {error}; plan it again") from None
    if spec.key != job["key"]:
        raise Damaged(f"job {job['key']} is damaged: its spec has the key {spec.key}; plan it again")
    try:
        check_settings(spec)
    except EmbinitError as error:
        raise EmbinitError(f"job {job['key']}: {error}") from None
    rows = []
    for name, _ in spec.sides:
        if name not in job["sides"]:
            raise Damaged(f"job {spec.key} is damaged: it has no side {name!r}; plan it again")
        rows_id = job["sides"][name]["rows"]
        rows.append((name, None if rows_id is None else _inside(folder, content["sources"], rows_id, spec.key)))
    return Job(spec.key, spec, _inside(folder, content["tasks"], job["task"], spec.key), tuple(rows))


def _inside(folder: Path, paths: dict[str, str], name: str, key: str) -> Path:
    """Return the path under a name; it must lie below the folder of jobs.json."""
    if name not in paths:
        raise Damaged(f"job {key} is damaged: it reads {name!r}, which the plan does not list; plan it again")
    parts = PurePosixPath(paths[name]).parts
    if not parts or "\0" in paths[name] or ".." in parts or PurePosixPath(paths[name]).is_absolute():
        raise EmbinitError(f"job {key} reads {paths[name]!r}, which is outside the plan's folder")
    return folder / paths[name]


def write_jobs(specs: Iterable[Spec], tasks: dict[str, str], path: Path, commit: str = "", code: str = "") -> None:
    """Write jobs.json; `tasks` says in which folder below `prepared/` the data of each fingerprint lies."""
    jobs, used, sources = [], {}, {}
    for spec in specs:
        sides: dict[str, dict[str, str | None]] = {}
        for name, side in spec.sides:
            sides[name] = {"rows": side.rows[:16] or None}
            if side.rows:
                sources[side.rows[:16]] = f"sources/{side.rows[:16]}.safetensors"
        task = spec.task.data[:16]
        used[task] = f"prepared/{tasks[spec.task.data]}"
        jobs.append({"key": spec.key, "spec": spec.as_json(), "task": task, "sides": sides})
    content = {"version": VERSION, "commit": commit, "code": code, "tasks": used, "sources": sources, "jobs": jobs}
    with replacing(path) as out:
        out.write(json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")
