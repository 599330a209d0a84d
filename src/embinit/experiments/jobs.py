"""jobs.json: runs as plain JSON, with the prepared tasks and rows that they read beside it.

```
{"version": 1, "commit": "...",
 "tasks": {ID: "prepared/FOLDER"}, "sources": {ID: "sources/ID.safetensors"},
 "jobs": [{"key": KEY, "spec": {...}, "task": ID, "sides": {"source": {"rows": ID or null}, ...}}]}
```

Paths are relative to the file, so that its folder can be carried to another machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError
from embinit.experiments.spec import Spec, digest, from_json
from embinit.files import replacing
from embinit.training.options import PER_MEMBER

VERSION = 1


@dataclass(frozen=True)
class Job:
    """One run to be made: its spec, where its data lies, and where the rows of each side do (None: no source)."""

    key: str
    spec: Spec
    task: Path
    rows: tuple[tuple[str, Path | None], ...]

    @property
    def shape(self) -> str:
        """Return what members of one lockstep batch must have in common: task, model, and training but the rates of rows."""
        content = self.spec.as_json()
        shared = {name: value for name, value in content["training"].items() if name not in PER_MEMBER}
        return digest([content["task"], content["model"], shared])


@dataclass(frozen=True)
class Group:
    """Jobs that train side by side, in this order."""

    jobs: tuple[Job, ...]

    @property
    def name(self) -> str:
        """Return the group's name, which its members give it."""
        return digest([job.key for job in self.jobs])

    @property
    def keys(self) -> list[str]:
        """Return the names of its runs."""
        return [job.key for job in self.jobs]

    def halves(self) -> tuple[Group, Group]:
        """Return the group in two."""
        middle = (len(self.jobs) + 1) // 2
        return Group(self.jobs[:middle]), Group(self.jobs[middle:])


@dataclass(frozen=True)
class Jobs:
    """What jobs.json holds."""

    jobs: tuple[Job, ...]
    #: the commit that planned them, if known, and a hash of its code
    commit: str = ""
    code: str = ""


def read_jobs(path: Path) -> Jobs:
    """Return the jobs of a file; an error where it is none, or where a key is not its spec's."""
    content = _read(path)
    if content["version"] != VERSION:
        raise EmbinitError(f"{path} is of version {content['version']}; version {VERSION} is understood")
    try:
        jobs = tuple(_job(one, content, path.parent) for one in content["jobs"])
    except EmbinitError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise EmbinitError(f"{path} has a job that is damaged; plan it again") from None
    return Jobs(jobs, str(content.get("commit", "")), str(content.get("code", "")))


def _read(path: Path) -> dict[str, Any]:
    """Return what a plan holds; an error where the file is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise EmbinitError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:  # no UTF-8, or no JSON
        content = None
    if not isinstance(content, dict) or not {"version", "jobs"} <= set(content):
        raise EmbinitError(f"{path} is no list of jobs; give the jobs.json of a folder that `embinit run --plan` wrote")
    return content


def _job(one: dict[str, Any], content: dict[str, Any], folder: Path) -> Job:
    spec = from_json(one["spec"])
    if spec.key != one["key"]:
        raise EmbinitError(f"job {one['key']} is not what its spec says ({spec.key}); plan it again")
    rows = tuple(
        (name, None if one["sides"][name]["rows"] is None else folder / content["sources"][one["sides"][name]["rows"]])
        for name, _ in spec.sides
    )
    return Job(spec.key, spec, folder / content["tasks"][one["task"]], rows)


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
