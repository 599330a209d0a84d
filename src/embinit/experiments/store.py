"""The folder of runs: which are done, and whose they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from embinit.errors import EmbinitError
from embinit.experiments.experiment import Experiment
from embinit.experiments.results import Result, read_result
from embinit.experiments.spec import Spec, digest, from_json


def results_of(experiment: Experiment, runs: Path) -> dict[str, Result]:
    """Return what is done of an experiment: the planned spec's key -> its result.

    Where the experiment was read without its data (its specs have no fingerprints), a run is found by everything else that
    its spec says; of several, which differ in their data or rows alone, the one that was finished last.
    """
    planned = {planned.spec.key: planned.spec for block in experiment.blocks for planned in block.runs}
    found = {key: read_result(runs / key) for key in planned if is_done(runs / key)}
    open_specs = {key: spec for key, spec in planned.items() if key not in found and not spec.resolved}
    if open_specs:
        found.update(_by_what_they_say(open_specs, runs))
    return {key: found[key] for key in planned if key in found}


def _by_what_they_say(specs: dict[str, Spec], runs: Path) -> dict[str, Result]:
    candidates: dict[str, list[Path]] = {}
    for path, spec in stored(runs):
        for dim in (True, False):
            candidates.setdefault(digest(spec.blank(dim).as_json()), []).append(path)
    found = {}
    for key, spec in specs.items():
        results = [read_result(path) for path in candidates.get(digest(spec.as_json()), [])]
        if results:
            found[key] = max(results, key=lambda result: str(result.run.get("finished", "")))
    return found


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
