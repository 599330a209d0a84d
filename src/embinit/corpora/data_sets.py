"""Known data sets: their tasks, their columns, their labels, their sizes and their folders."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from embinit.errors import EmbinitError, closest
from embinit.types import TEXT_TASKS, TaskKind


@dataclass(frozen=True)
class TaskData:
    """A known data set."""

    name: str
    task: TaskKind
    about: str
    layouts: list[dict[str, Any]]
    min_count: int = 2
    languages: list[str] = field(default_factory=list)
    pair: str = ""
    language: str = "en"
    #: the names that each text column may have
    texts: list[list[str]] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    #: the pair that the sizes belong to; other pairs have other sizes
    sizes_of: str = ""
    #: the data set whose folder it shares; empty: its own
    folder: str = ""
    #: whether labels are the nearest whole number of a score
    rounded: bool = False
    hub: dict[str, str] = field(default_factory=dict)
    #: how it is split into words by default
    tokenizer: str = "spacy"


def tasks() -> dict[str, TaskData]:
    """Return the known data sets of sentences by name."""
    return {name: data for name, data in _data_sets().items() if data.task not in TEXT_TASKS}


def text_sets() -> dict[str, TaskData]:
    """Return the known running texts by name."""
    return {name: data for name, data in _data_sets().items() if data.task in TEXT_TASKS}


def data_sets() -> dict[str, TaskData]:
    """Return all known data sets by name: sentences, then running texts."""
    return {**tasks(), **text_sets()}


@cache
def _data_sets() -> dict[str, TaskData]:
    text = resources.files("embinit.corpora").joinpath("tasks.toml").read_text("utf-8")
    return {name: TaskData(name=name, **values) for name, values in tomllib.loads(text).items()}


def task_data(name: str) -> TaskData:
    """Return a known data set, or raise with the closest name."""
    if name not in _data_sets():
        raise EmbinitError(f"unknown data set {name!r}{closest(name, _data_sets())}")
    return _data_sets()[name]


def data_folder(root: Path, name: str) -> Path:
    """Return the folder of a data set below `root`; `root / name` if there is none.

    A data set lies in the folder of its name, or in `glue/`. GLUE's spelling is understood: `mrpc` is also found in
    `glue/MRPC`, `sst2` in `SST-2`.
    """
    data = _data_sets().get(name)
    for wanted in (name, data.folder if data is not None else ""):
        for parent in (root, root / "glue", root / "GLUE") if wanted else ():
            if (parent / wanted).is_dir():
                return parent / wanted
            for path in sorted(parent.iterdir()) if parent.is_dir() else ():
                if path.is_dir() and _plain(path.name) == _plain(wanted):
                    return path
    return root / name


def _plain(name: str) -> str:
    return name.lower().replace("-", "")
