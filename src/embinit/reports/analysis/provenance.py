"""How an experiment was run and how to run it again: settings, versions, devices, time, commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from embinit.experiments.experiment import Block, Experiment
from embinit.experiments.runs.result import Result
from embinit.experiments.spec import Spec
from embinit.reports.analysis.rows import Results
from embinit.reports.model import ExperimentCost


def commands(file: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the commands that run an experiment and report on it, ready for a shell.

    >>> commands("my file.toml", ["--runs", "done"])
    ("embinit run 'my file.toml' --runs done", "embinit report 'my file.toml' --runs done")
    """
    return (shlex.join(["embinit", "run", file, *options]), report_command(file, options))


def report_command(file: str, options: Sequence[str] = ()) -> str:
    """Return the command that reports on a file, ready for a shell."""
    return shlex.join(["embinit", "report", file, *options])


def settings(block: Block, results: Results) -> dict[str, str]:
    """Return the settings that all runs of a block share: dotted name -> text. Only finished runs count if there are any."""
    planned = [run.spec for run in block.runs]
    done = [(spec.task.name, results[spec.key].spec) for spec in planned if spec.key in results]
    # An old run on the user's own files has the path of its data as the name of its task; the name in the file is shown.
    renamed = [replace(spec, task=replace(spec.task, name=name)) for name, spec in done]
    flat = [_flat(spec) for spec in renamed or planned]
    if not flat:
        return {}
    shared = {name: value for name, value in flat[0].items() if all(other.get(name) == value for other in flat[1:])}
    return {name: value for name, value in shared.items() if value != ""}


def _flat(spec: Spec) -> dict[str, str]:
    content = spec.as_json()
    pairs: list[tuple[str, Any]] = [(f"task.{name}", value) for name, value in content["task"].items()]
    pairs += [(f"{side}.{name}", value) for side, fields in content["sides"].items() for name, value in fields.items()]
    pairs += [(f"{group}.{name}", value) for group in ("model", "training") for name, value in content[group].items()]
    return {name: _text(value)[:16] if name.endswith((".data", ".rows")) else _text(value) for name, value in pairs}


def _text(value: Any) -> str:
    if value is None:
        return "by default"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def cost(experiment: Experiment, results: Results) -> ExperimentCost:
    """Return the cost of all runs; a run of several blocks counts once."""
    keys = {
        planned.spec.key: None
        for block in experiment.blocks
        for planned in block.runs
        if not block.missing or planned.spec.key in results
    }
    done = [results[key] for key in keys if key in results]
    return ExperimentCost(
        runs=len(done),
        planned=len(keys),
        seconds=sum(_seconds(result) for result in done),
        shares={result.key: round(_seconds(result), 3) for result in done},
        devices=_distinct(result.run.get("device") for result in done),
        versions=_versions(done),
        expected=experiment.cost,
        commits=_distinct(result.run.get("commit") for result in done),
        finished=max((str(result.run.get("finished") or "") for result in done), default=""),
        spans={result.key: span for result in done if (span := _span(result)) is not None},
    )


def busy(costs: Iterable[ExperimentCost]) -> float:
    """Return the seconds for which devices were busy; runs that overlap on one device count once.

    Members of a group have one span, and the spans of processes that share a device overlap. A run without known times
    counts with its share.
    """
    spans: dict[str, tuple[str, float, float]] = {}
    rest: dict[str, float] = {}
    for cost in costs:
        spans |= cost.spans
        rest |= {key: seconds for key, seconds in cost.shares.items() if key not in cost.spans}
    total = sum(seconds for key, seconds in rest.items() if key not in spans)
    reached: dict[str, float] = {}
    for device, begin, end in sorted(spans.values()):
        total += max(0.0, end - max(begin, reached.get(device, begin)))
        reached[device] = max(end, reached.get(device, end))
    return total


def _span(result: Result) -> tuple[str, float, float] | None:
    seconds = float(result.run.get("seconds") or 0)
    try:
        end = datetime.fromisoformat(str(result.run.get("finished") or ""))
    except ValueError:
        return None
    at = (end if end.tzinfo else end.replace(tzinfo=UTC)).timestamp()
    return str(result.run.get("device") or ""), at - seconds, at


def _seconds(result: Result) -> float:
    """Return a run's share of the time that its group took."""
    return float(result.run.get("seconds") or 0) / max(1, int(result.run.get("members") or 1))


def _distinct(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(value) for value in values if value))


def _versions(done: Sequence[Result]) -> dict[str, str]:
    by_name: dict[str, dict[str, None]] = {}
    for result in done:
        for name, version in (result.run.get("versions") or {}).items():
            by_name.setdefault(str(name), {})[str(version)] = None
    return {name: ", ".join(versions) for name, versions in sorted(by_name.items())}


def signatures(results: Iterable[Result]) -> dict[str, str]:
    """Return how each score was computed; if in several ways, all of them."""
    by_name: dict[str, dict[str, None]] = {}
    for result in results:
        for name, signature in result.signatures.items():
            by_name.setdefault(name, {})[signature] = None
    return {name: "; ".join(ways) for name, ways in by_name.items()}
