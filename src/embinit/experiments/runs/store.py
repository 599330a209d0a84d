"""The folder of runs: finished runs, and the experiments that they belong to."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from embinit.corpora.data_sets import tasks, text_sets
from embinit.experiments.experiment import Experiment
from embinit.experiments.runs.result import Result, read_result
from embinit.experiments.spec import Spec
from embinit.experiments.spec_reader import read_spec
from embinit.models.architecture import Architecture, default_heads
from embinit.records import Damaged


class Results(dict[str, Result]):
    """The finished runs of an experiment: the planned spec's key -> its result."""

    #: one sentence for each run that is left out because its folder is damaged
    damaged: tuple[str, ...] = ()


def results_of(experiment: Experiment, runs: Path) -> Results:
    """Return the finished runs of an experiment; damaged ones are left out and named in `damaged`.

    If the experiment was read without its data, its specs have no fingerprints. A run is then found by everything else that
    its spec contains. Of several runs that differ only in their data or rows, the one that was finished last counts. A run
    on the user's own files is also found if it has another name for the same data (see `content_key`).
    """
    planned = {planned.spec.key: planned.spec for block in experiment.blocks for planned in block.runs}
    damaged: list[str] = []
    results: dict[str, Result] = {}
    for key in planned:
        if is_done(runs / key):
            result = _result(runs / key, damaged)
            if result is not None:
                results[key] = result
    sought = {key: name for key, spec in planned.items() if key not in results and (name := _other_key(spec))}
    if sought:
        results.update(_by_other_key(sought, runs, damaged))
    ordered = Results((key, results[key]) for key in planned if key in results)
    ordered.damaged = tuple(dict.fromkeys(damaged))
    return ordered


def finished_folders(experiment: Experiment, runs: Path) -> dict[str, Path]:
    """Return the folder of each finished run of an experiment, by the planned spec's key; folders are not read.

    A run whose data or rows are not prepared is found by everything else that its spec contains, and a run on the user's own
    files by its content, as in `results_of`.
    """
    specs = {planned.spec.key: planned.spec for block in experiment.blocks for planned in block.runs}
    folders = {key: runs / key for key in specs if is_done(runs / key)}
    sought = {key: name for key, spec in specs.items() if key not in folders and (name := _other_key(spec))}
    if sought:
        candidates = {name: path for path, spec in stored(runs) for name in known_keys(spec)}
        folders.update((key, candidates[name]) for key, name in sought.items() if name in candidates)
    return folders


def _result(path: Path, damaged: list[str]) -> Result | None:
    try:
        return read_result(path)
    except Damaged as error:
        damaged.append(str(error))
        return None


def _other_key(spec: Spec) -> str:
    """Return the key, besides its own, under which a planned run is found; an empty text if there is none."""
    return content_key(spec) if spec.resolved else spec.key


def _by_other_key(sought: dict[str, str], runs: Path, damaged: list[str]) -> dict[str, Result]:
    candidates: dict[str, list[Path]] = {}
    for path, spec in stored(runs, damaged):
        for name in known_keys(spec):
            candidates.setdefault(name, []).append(path)
    results = {}
    for key, name in sought.items():
        sound = [result for path in candidates.get(name, []) if (result := _result(path, damaged)) is not None]
        if sound:
            results[key] = max(sound, key=lambda result: str(result.run.get("finished", "")))
    return results


def known_keys(spec: Spec) -> list[str]:
    """Return the keys, besides its own, under which a finished run is found: without fingerprints, and by its content."""
    own = content_key(spec)
    return [*blank_keys(spec), *([own] if own else [])]


def blank_keys(spec: Spec) -> list[str]:
    """Return the keys of a run in a file that is read without its data: with the dimension, and without.

    If a file states neither the dimension nor the heads, its specs have the heads of most dimensions until it is known.
    """
    keys, model = [spec.blank(dim).key for dim in (True, False)], dict(spec.model)
    if "dim" in model and model.get("heads") == default_heads(model["dim"]):
        usual = tuple(sorted({**model, "heads": Architecture.heads}.items()))
        keys.append(replace(spec, model=usual).blank(dim=False).key)
    return keys


def content_key(spec: Spec) -> str:
    """Return the key of a run on the user's own files without the name of its task, which the file's author chose.

    The fingerprint of the data identifies the task. Earlier versions named the task by the path of its data, and such runs
    are found too. The text is empty for a known data set and for a spec without the fingerprint.
    """
    if not spec.task.data or spec.task.name in (*tasks(), *text_sets()) or spec.task.name.startswith("captions"):
        return ""
    return replace(spec, task=replace(spec.task, name="")).key


def stored(runs: Path, damaged: list[str] | None = None, left_out: Container[str] = ()) -> Iterator[tuple[Path, Spec]]:
    """Yield the folder and the spec of every finished run, by name, except the keys in `left_out`.

    A damaged run is left out and added to `damaged`.
    """
    for path in sorted(runs.iterdir()) if runs.is_dir() else []:
        if path.name not in left_out and is_done(path):
            try:
                yield path, read_spec(path / "spec.json")
            except Damaged as error:
                if damaged is not None:
                    damaged.append(str(error))


def is_done(path: Path) -> bool:
    """Return whether a folder holds a finished run."""
    with suppress(OSError):
        return (path / "run.json").is_file()
    return False
