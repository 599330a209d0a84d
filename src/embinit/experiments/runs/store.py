"""The folder of runs: which are done, and whose they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Experiment
from embinit.experiments.runs.result import Result, read_result
from embinit.experiments.spec import Spec, from_json


def results_of(experiment: Experiment, runs: Path) -> dict[str, Result]:
    """Return what is done of an experiment: the planned spec's key -> its result.

    Where the experiment was read without its data (its specs have no fingerprints), a run is found by everything else that
    its spec says; of several, which differ in their data or rows alone, the one that was finished last.
    """
    planned = {planned.spec.key: planned.spec for block in experiment.blocks for planned in block.runs}
    found = {key: read_result(runs / key) for key in planned if is_done(runs / key)}
    unresolved = [key for key, spec in planned.items() if key not in found and not spec.resolved]
    if unresolved:
        found.update(_by_what_they_say(unresolved, runs))
    return {key: found[key] for key in planned if key in found}


def _by_what_they_say(keys: list[str], runs: Path) -> dict[str, Result]:
    candidates: dict[str, list[Path]] = {}
    for path, spec in stored(runs):
        for key in said(spec):
            candidates.setdefault(key, []).append(path)
    found = {}
    for key in keys:
        results = [read_result(path) for path in candidates.get(key, [])]
        if results:
            found[key] = max(results, key=lambda result: str(result.run.get("finished", "")))
    return found


def said(spec: Spec) -> list[str]:
    """Return the keys that a file gives a run where it is read without its data: with the dimension, and without."""
    return [spec.blank(dim).key for dim in (True, False)]


def stored(runs: Path) -> Iterator[tuple[Path, Spec]]:
    """Yield every finished run's folder with its spec, by name."""
    for path in sorted(runs.iterdir()) if runs.is_dir() else []:
        if is_done(path):
            try:
                yield path, from_json(json.loads((path / "spec.json").read_text("utf-8")))
            except (OSError, ValueError, KeyError, TypeError):
                raise EmbinitError(f"{path / 'spec.json'} is damaged; remove the folder and run it again") from None


def is_done(path: Path) -> bool:
    """Return whether a folder holds a finished run."""
    return (path / "run.json").is_file()
