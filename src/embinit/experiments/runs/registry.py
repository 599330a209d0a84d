"""The experiments that runs belong to: RUNS/.experiments/ has a small file for each experiment file that planned runs.

A run folder does not name its experiment, because equal runs of several experiments are one run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Experiment
from embinit.experiments.runs.store import blank_keys, content_key, known_keys, stored
from embinit.experiments.spec import Spec
from embinit.experiments.spec_reader import read_spec
from embinit.files import replacing
from embinit.records import read_json

_FOLDER = ".experiments"


class _RegistryFile(TypedDict):
    #: the name of the experiment
    name: str
    #: the keys of its runs, as its file was when it last ran
    planned: list[str]
    #: keys that the file planned before, and those of runs with changed settings for a quick look
    superseded: list[str]


def record(runs: Path, file: Path, name: str, keys: Iterable[str], whole: bool = True, quick: bool = False) -> None:
    """Record the runs that an experiment file plans.

    Parameters
    ----------
    runs
        The folder of runs.
    file
        The experiment file.
    name
        The name of the experiment.
    keys
        The keys of the planned runs.
    whole
        Whether these are all runs of the file. Earlier runs of the file that are not among them are then superseded.
    quick
        Whether the runs have settings that the file does not state, so that they are superseded at once.
    """
    before = _entry(_path(runs, file)) or {"name": name, "planned": [], "superseded": []}
    now = dict.fromkeys(keys)
    planned = dict.fromkeys(before["planned"])
    if not quick:
        planned = now if whole else {**planned, **now}
    known = dict.fromkeys([*before["superseded"], *before["planned"], *now])
    content: _RegistryFile = {
        "name": name,
        "planned": list(planned),
        "superseded": [key for key in known if key not in planned],
    }
    with replacing(_path(runs, file)) as out:
        out.write(json.dumps(content, indent=1).encode() + b"\n")


def experiments_of_runs(runs: Path) -> dict[str, list[str]]:
    """Return the names of the experiments that each run belongs to, by the run's key."""
    names: dict[str, list[str]] = {}
    for _, entry in _entries(runs):
        for key in [*entry["planned"], *entry["superseded"]]:
            names.setdefault(key, []).append(entry["name"])
    return {key: list(dict.fromkeys(several)) for key, several in names.items()}


def stale(plans: Mapping[Path, Experiment], runs: Path) -> list[Path]:
    """Return finished runs that these experiment files planned once and do not plan any more.

    A run that another experiment plans is not stale. If the data or vectors of a planned run are not prepared, its other
    settings identify it.
    """
    return unplanned(plans, runs)[0]


def unplanned(plans: Mapping[Path, Experiment], runs: Path) -> tuple[list[Path], list[Path]]:
    """Return the stale runs of these experiments, and the other finished runs that none of them plans."""
    own = {_path(runs, file) for file in plans}
    entries = dict(_entries(runs))
    once = {key for path in own & entries.keys() for key in (*entries[path]["planned"], *entries[path]["superseded"])}
    elsewhere = {key for path in entries.keys() - own for key in entries[path]["planned"]}
    specs = [planned.spec for experiment in plans.values() for block in experiment.blocks for planned in block.runs]
    named = {key for spec in specs for key in (spec.key, content_key(spec))} - {""}
    folders = [path for path, spec in stored(runs, left_out=named) if named.isdisjoint(known_keys(spec))]
    gone = once - elsewhere
    return [path for path in folders if path.name in gone], [path for path in folders if path.name not in gone]


def quick_looks(file: Path, experiment: Experiment, runs: Path) -> list[Spec]:
    """Return the specs of an experiment's quick looks: finished runs that differ from planned ones in their epochs alone."""
    specs = [planned.spec for block in experiment.blocks for planned in block.runs]
    planned_keys = {key for spec in specs for key in blank_keys(_without_epochs(spec))}
    old = [read_spec(folder / "spec.json") for folder in stale({file: experiment}, runs)]
    return [spec for spec in old if not planned_keys.isdisjoint(blank_keys(_without_epochs(spec)))]


def _without_epochs(spec: Spec) -> Spec:
    return replace(spec, training=tuple(pair for pair in spec.training if pair[0] != "epochs"))


def _path(runs: Path, file: Path) -> Path:
    identity = hashlib.sha256(str(file.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return runs / _FOLDER / f"{file.stem}-{identity}.json"


def _entries(runs: Path) -> Iterator[tuple[Path, _RegistryFile]]:
    for path in sorted(runs.glob(f"{_FOLDER}/*.json")):
        entry = _entry(path)
        if entry is not None:
            yield path, entry


def _entry(path: Path) -> _RegistryFile | None:
    """Return the content of a registry file; None if there is none or it is damaged."""
    entry: _RegistryFile | None = None
    with suppress(EmbinitError):
        entry = read_json(path, _RegistryFile)
    return entry
