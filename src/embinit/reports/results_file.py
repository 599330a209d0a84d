"""Write an experiment with its results as one small JSON file for version control; `results_reader` reads it back.

The file has all digits of scores, four significant digits of histories, and the matrices of each row's lowest seed (without
histograms for sweeps). It has no decoded outputs. Each run is one line, so that version control shows changed runs as
changed lines. The later runs of a table row have only the settings that differ from its first run.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from embinit.experiments.experiment import Axes, Block, Experiment, Planned, implied_target
from embinit.experiments.measured import Measured
from embinit.experiments.runs import length_buckets
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Spec
from embinit.files import replacing
from embinit.reports.analysis.rows import DIGITS, Results, finished, grouped

FORMAT = 1


def write_compact(experiment: Experiment, results: Results, path: Path, file: str = "") -> None:
    """Write an experiment and its finished results; `file` is its TOML, for the commands.

    The file has no sentence of the data and no output of a model, so it can be published if the data cannot.
    """
    with replacing(path) as out:
        out.write(_written(_content(experiment, results, file)).encode())


def write_measured(experiment: Experiment, measured: Measured | None, path: Path, file: str = "") -> None:
    """Write an experiment that trains nothing, with its measurements, without histograms."""
    blocks = [_head(block, experiment) for block in experiment.blocks]
    head = {key: value for key, value in asdict(experiment).items() if key != "blocks"}
    content = {
        "embinit results": FORMAT,
        "file": file,
        "experiment": head,
        "makers": [],
        "signatures": [],
        "measured": _rounded(_without_histograms(measured)),
        "blocks": [{**block, "base": {}, "runs": []} for block in blocks],
    }
    with replacing(path) as out:
        out.write(_written(content).encode())


def _without_histograms(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_histograms(inner) for key, inner in value.items() if key != "histogram"}
    return [_without_histograms(inner) for inner in value] if isinstance(value, list) else value


def _content(experiment: Experiment, results: Results, file: str) -> dict[str, Any]:
    makers = _Pool()
    signatures = _Pool()
    blocks = []
    for block in experiment.blocks:
        first = {id(done[0]) for runs in grouped(block).values() if (done := finished(runs, results))}
        specs = [_spec(planned, results).as_json() for planned in block.runs]
        base = specs[0] if specs else {}
        lines, rows_begin = [], dict[Axes, int]()
        for number, (planned, spec) in enumerate(zip(block.runs, specs, strict=True)):
            like = rows_begin.setdefault(planned.axes, number)
            line: dict[str, Any] = (
                {"axes": dict(planned.axes), "spec": _changes(base, spec)}
                if like == number
                else {"like": like, "spec": _changes(specs[like], spec)}
            )
            result = results.get(planned.spec.key)
            if result is not None:
                # Reports draw no matrices of sweeps.
                matrices = _without_histograms(result.matrices) if block.sweep else result.matrices
                line |= _result(result, matrices if id(result) in first else {}, makers, signatures)
            lines.append(line)
        blocks.append({**_head(block, experiment), "base": base, "runs": lines})
    head = {key: value for key, value in asdict(experiment).items() if key != "blocks"}
    return {
        "embinit results": FORMAT,
        "file": file,
        "experiment": head,
        "makers": makers.values,
        "signatures": signatures.values,
        "blocks": blocks,
    }


def _head(block: Block, experiment: Experiment) -> dict[str, Any]:
    """Return the fields of a block except its runs and the folders of this machine.

    `chooses_for` is written only if the names of the blocks do not imply it, as in old files.
    """
    implied = implied_target(block.name, [other.name for other in experiment.blocks])
    left_out = {"runs", "searched", *(["chooses_for"] if block.chooses_for == implied else [])}
    return {key: value for key, value in asdict(block).items() if key not in left_out}


class _Pool:
    """Values that runs share, each stored once."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def place(self, value: Any) -> int:
        """Return the number of the value."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)


def _spec(planned: Planned, results: Results) -> Spec:
    """Return the spec that was run, which has the fingerprints of its data; otherwise the planned one."""
    result = results.get(planned.spec.key)
    return planned.spec if result is None else result.spec


def _result(result: Result, matrices: dict[str, Any], makers: _Pool, signatures: _Pool) -> dict[str, Any]:
    names = list(dict.fromkeys(name for record in result.history for name in record))
    run = {key: value for key, value in result.run.items() if key in ("device", "versions", "commit")}
    return {
        "scores": result.scores,
        **({"lengths": _rounded(length_buckets.as_json(result.lengths))} if result.lengths else {}),
        "best_epoch": result.best_epoch,
        **({"diverged": True} if result.diverged else {}),
        "history": {name: [_rounded(record.get(name)) for record in result.history] for name in names},
        **({"matrices": _rounded(matrices)} if matrices else {}),
        "signatures": signatures.place(result.signatures),
        "maker": makers.place(run),
        "seconds": _rounded(float(result.run.get("seconds") or 0)),
        "members": result.run.get("members", 1),
        "finished": result.run.get("finished", ""),
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value


def _changes(base: Any, value: Any, place: str = "") -> dict[str, Any]:
    """Return the places where a JSON value differs from another: path with / -> new value."""
    if isinstance(base, dict) and isinstance(value, dict) and base.keys() == value.keys():
        changes: dict[str, Any] = {}
        for key in value:
            changes |= _changes(base[key], value[key], f"{place}/{key}" if place else key)
        return changes
    return {} if base == value else {place: value}


def _written(content: dict[str, Any]) -> str:
    """Return JSON with one line for each run and for each other entry."""
    lines = []
    for key, value in content.items():
        if key == "blocks":
            inner = ",\n".join(_block(block) for block in value)
            lines.append(f'"blocks": [\n{inner}\n]')
        else:
            lines.append(f"{json.dumps(key)}: {_json(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _block(block: dict[str, Any]) -> str:
    about = {key: value for key, value in block.items() if key != "runs"}
    runs = ",\n".join(_json(line) for line in block["runs"])
    return f'{_json(about)[:-1]}, "runs": [\n{runs}\n]}}'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
