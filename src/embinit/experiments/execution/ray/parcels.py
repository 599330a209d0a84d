"""Files as bytes, for machines that share no disk: jobs and their data are sent to a worker, run folders come back."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError

#: Contents of files by their path relative to jobs.json.
Parcel = dict[str, bytes]


@dataclass(frozen=True)
class Order:
    """The content of a jobs.json with some jobs of a plan, and the paths of the files and folders that it names."""

    jobs: bytes
    paths: tuple[str, ...]


def order_of(content: dict[str, Any], keys: Collection[str]) -> Order:
    """Return the part of a jobs.json that describes these runs."""
    jobs = [job for job in content["jobs"] if job["key"] in keys]
    used = [side["rows"] for job in jobs for side in job["sides"].values() if side["rows"] is not None]
    tasks = {job["task"]: content["tasks"][job["task"]] for job in jobs}
    sources = {rows: content["sources"][rows] for rows in used}
    part = {**content, "tasks": tasks, "sources": sources, "jobs": jobs}
    return Order(json.dumps(part, ensure_ascii=False).encode(), (*tasks.values(), *sources.values()))


def parcel_of(root: Path, path: str) -> Parcel:
    """Return a file, or the files of a folder, as bytes."""
    start = root / path
    try:
        files = sorted(start.iterdir()) if start.is_dir() else [start]
        return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}
    except OSError as error:
        raise EmbinitError(f"cannot read {start}: {error.strerror or error}") from None


def unpack(parcel: Parcel, root: Path) -> None:
    """Write a parcel's files below a folder."""
    for name, content in parcel.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def archive_of(folders: Collection[Path]) -> bytes:
    """Return an archive of run folders, each under its own name, for `collect`."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for folder in folders:
            tar.add(folder, folder.name)
    return whole.getvalue()
